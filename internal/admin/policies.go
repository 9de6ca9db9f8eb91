// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"iter"
	"net/http"
	"strconv"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queue"
)

// Explained is why a message is where it is, also in words.
type Explained struct {
	broker.Explanation
	Text string `json:"text"`
}

var demandQuery = []parameter{
	{"headroom", "number", "Workers beyond the busy ones, as a share of them; default 0.25."},
	{"floor", "integer", "The fewest workers to ask for."},
	{"ceiling", "integer", "The most workers to ask for."},
}

// policyRoutes are the routes for policies and objectives. A subscription is
// named by its address: events%2Fsubscriptions%2Fall.
func (a *api) policyRoutes() []route {
	const one = "/policies/{queue}"
	return []route{
		{
			method: http.MethodGet, path: one, id: "getPolicy",
			summary: "Show the policy of a queue or subscription and what follows from it.", result: broker.PolicyState{},
			handle: func(c *call) (any, error) { return c.Broker.Policy(c.address()) },
		},
		{
			method: http.MethodPut, path: one, id: "setPolicy",
			summary: "Change the policy. What waits is classified anew, each message keeping its age.",
			body:    json.RawMessage(nil), result: broker.PolicyState{},
			handle: func(c *call) (any, error) {
				raw, err := c.raw()
				if err != nil {
					return nil, err
				}
				return c.Broker.SetPolicy(c.Context(), c.address(), raw)
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deletePolicy",
			summary: "Take the policy away: messages have the priority that they ask for.", result: broker.PolicyState{},
			handle: func(c *call) (any, error) { return c.Broker.SetPolicy(c.Context(), c.address(), nil) },
		},
		{
			method: http.MethodPost, path: one + "/dry-run", id: "tryPolicy",
			summary: "Say what a policy would make of the messages now waiting, and change nothing.",
			body:    json.RawMessage(nil), result: broker.DryRun{},
			handle: func(c *call) (any, error) {
				raw, err := c.raw()
				if err != nil {
					return nil, err
				}
				return c.Broker.DryRun(c.Context(), c.address(), raw)
			},
		},
		{
			method: http.MethodGet, path: "/objectives", id: "listObjectives",
			summary: "Show what was measured of every queue and subscription, class by class.", query: listQuery, result: list[broker.Objectives]{},
			handle: listObjectives,
		},
		{
			method: http.MethodGet, path: "/objectives/{queue}", id: "getObjectives",
			summary: "Show what was measured of a queue or subscription, class by class.", result: broker.Objectives{},
			handle: func(c *call) (any, error) { return c.objectives(c.address()) },
		},
		{
			method: http.MethodGet, path: "/demand/{queue}", id: "getDemand",
			summary: "Say how many workers the objectives need now. KEDA's metrics-api scaler reads it at valueLocation value.",
			query:   demandQuery, result: broker.Demand{}, handle: demand,
		},
		explainRoute("/queues/{queue}/messages/{seq}/explain", "Queue"),
		explainRoute("/topics/{topic}/subscriptions/{subscription}/messages/{seq}/explain", "Subscription"),
	}
}

// listObjectives lists what was measured, by the paths of queues and subscriptions.
func listObjectives(c *call) (any, error) {
	paths := func() (iter.Seq[string], error) {
		return func(yield func(string) bool) {
			for path, kind := range c.Broker.Paths() {
				if kind != broker.KindTopic && !yield(path) {
					return
				}
			}
		}, nil
	}
	return page(c, paths, c.objectives)
}

// objectives returns what was measured of a queue or subscription.
func (c *call) objectives(path string) (broker.Objectives, error) {
	o, err := c.Broker.Objectives(c.Context(), path)
	if o.Classes == nil {
		o.Classes = []objective.ClassReport{}
	}
	return o, err
}

// raw reads a policy as it is, and charges what it becomes when it is read.
func (c *call) raw() ([]byte, error) {
	body, err := c.read(limits.Body)
	if err != nil {
		return nil, err
	}
	return body, c.chargeTree(body)
}

func demand(c *call) (any, error) {
	floor, err := c.number("floor", 0, 1e6)
	if err != nil {
		return nil, err
	}
	ceiling, err := c.number("ceiling", 0, 1e6)
	if err != nil {
		return nil, err
	}
	o := broker.DemandOptions{Floor: floor, Ceiling: ceiling}
	if text := c.URL.Query().Get("headroom"); text != "" {
		if o.Headroom, err = strconv.ParseFloat(text, 64); err != nil || o.Headroom < 0 || o.Headroom > 100 {
			return nil, problem.Bad("headroom is %q; it is a share such as 0.25.", text)
		}
		if o.Headroom == 0 {
			o.Headroom = -1 // none, and not the default
		}
	}
	return c.Broker.Demand(c.Context(), c.address(), o)
}

func explainRoute(path, noun string) route {
	return route{
		method: http.MethodGet, path: path, id: "explain" + noun + "Message",
		summary: "Explain a message's position, what is ahead of it, what blocks it, and when to expect delivery.",
		result:  Explained{},
		handle: func(c *call) (any, error) {
			seq, err := strconv.ParseUint(c.PathValue("seq"), 10, 64)
			if err != nil {
				return nil, problem.Bad("%q is not a sequence number.", c.PathValue("seq"))
			}
			x, err := c.Broker.Explain(c.Context(), c.address(), queue.SeqNo(seq))
			if err != nil {
				return nil, err
			}
			return Explained{x, x.Text()}, nil
		},
	}
}
