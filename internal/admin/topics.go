// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"io"
	"iter"
	"net/http"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

func (a *api) topicRoutes() []route {
	const one = "/topics/{topic}"
	type item = Entity[entity.Topic]
	answer := func(c *call, t entity.Topic, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return view(c, t.Name, t)
	}
	return append([]route{
		{
			method: http.MethodGet, path: "/topics", id: "listTopics",
			summary: "List topics by name.", query: listQuery, result: list[item]{},
			handle: func(c *call) (any, error) {
				topics := func() (iter.Seq[string], error) {
					return names(c.Broker.AllTopics(), func(t entity.Topic) string { return t.Name }), nil
				}
				return page(c, topics, func(name string) (item, error) {
					t, err := c.Broker.Topic(name)
					if err != nil {
						return item{}, err
					}
					return view(c, t.Name, t)
				})
			},
		},
		{
			method: http.MethodPost, path: "/topics", id: "createTopic", status: http.StatusCreated,
			summary: "Create a topic; 409 if there is one of that name.", body: entity.Topic{}, result: item{},
			handle: func(c *call) (any, error) {
				var t entity.Topic
				if err := c.decode(&t, limits.Body); err != nil {
					return nil, err
				}
				t, err := c.Broker.CreateTopic(c.Context(), t)
				return answer(c, t, err)
			},
		},
		{
			method: http.MethodGet, path: one, id: "getTopic",
			summary: "Show a topic. Its counts are the scheduled messages of the topic itself.", result: item{},
			handle: func(c *call) (any, error) {
				t, err := c.Broker.Topic(c.PathValue("topic"))
				return answer(c, t, err)
			},
		},
		{
			method: http.MethodPut, path: one, id: "putTopic",
			summary: "Create a topic or replace its definition. Properties that are left out are reset to their defaults.", body: entity.Topic{}, result: item{},
			handle: func(c *call) (any, error) {
				var t entity.Topic
				if err := c.decode(&t, limits.Body); err != nil {
					return nil, err
				}
				if err := named(&t.Name, c.PathValue("topic")); err != nil {
					return nil, err
				}
				t, made, err := createOrUpdate(
					func() (entity.Topic, error) { return c.Broker.CreateTopic(c.Context(), t) },
					func() (entity.Topic, error) { return c.Broker.UpdateTopic(c.Context(), t) })
				if err != nil {
					return nil, err
				}
				return reply(c, t.Name, t, made)
			},
		},
		{
			method: http.MethodPatch, path: one, id: "patchTopic",
			summary: "Change properties of a topic; null resets a property to its default.", body: entity.Topic{}, result: item{},
			handle: func(c *call) (any, error) {
				old, t, err := merge(c, func() (entity.Topic, error) { return c.Broker.Topic(c.PathValue("topic")) })
				if err == nil {
					err = named(&t.Name, old.Name)
				}
				if err == nil {
					t, err = c.Broker.UpdateTopic(c.Context(), t)
				}
				return answer(c, t, err)
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deleteTopic", status: http.StatusNoContent,
			summary: "Delete a topic with its subscriptions and all their messages.",
			handle: func(c *call) (any, error) {
				return nil, c.Broker.DeleteTopic(c.Context(), c.PathValue("topic"))
			},
		},
		{
			method: http.MethodPost, path: one + "/try", id: "tryTopic",
			summary: "Say which subscriptions would take a message, by which rule and why, without sending it.",
			body:    Outgoing{}, result: Trials{}, handle: tryTopic,
		},
	}, a.pauseRoutes(one, "Topic")...)
}

// Trials says what the rules of a topic would do with a message.
type Trials struct {
	Subscriptions []string           `json:"subscriptions"` // that would take it
	Rules         []broker.RuleMatch `json:"rules"`         // all of them
}

func tryTopic(c *call) (any, error) {
	var out Outgoing
	if err := c.decode(&out, limits.Body); err != nil {
		return nil, err
	}
	m, err := out.message()
	if err != nil {
		return nil, err
	}
	rules, err := c.Broker.MatchRules(c.Context(), c.PathValue("topic"), m)
	return tried{c, rules}, err
}

// tried is [Trials] as it is written, rule by rule.
type tried struct {
	c     *call
	rules iter.Seq[broker.RuleMatch]
}

// stream implements streamed.
func (t tried) stream(w io.Writer) error {
	next, stop := iter.Pull(t.rules)
	defer stop()
	matched := []string{}
	between := `{"rules":[`
	for {
		var r broker.RuleMatch
		var ok bool
		var b []byte
		var err error
		t.c.inTurn(func() {
			if r, ok = next(); ok {
				b, err = json.Marshal(r)
			}
		})
		if !ok {
			break
		}
		if n := len(matched); r.Matched && (n == 0 || matched[n-1] != r.Subscription) {
			matched = append(matched, r.Subscription)
		}
		if err == nil {
			err = t.c.recheck()
		}
		if err == nil {
			_, err = w.Write(append([]byte(between), b...))
		}
		if err != nil {
			return err
		}
		between = ","
	}
	if between != "," {
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(w, `],"subscriptions":`); err != nil {
		return err
	}
	b, err := json.Marshal(matched)
	if err == nil {
		_, err = w.Write(append(b, "}\n"...))
	}
	return err
}
