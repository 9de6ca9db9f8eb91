// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
)

// Namespace is the broker as a whole.
type Namespace struct {
	Name          string        `json:"name"`
	StartedAt     time.Time     `json:"startedAt"`
	Queues        int           `json:"queues"`
	Topics        int           `json:"topics"`
	Subscriptions int           `json:"subscriptions"`
	Hubs          int           `json:"hubs"`
	Counts        broker.Counts `json:"counts"` // of all of them together
}

// Connections are the clients that are connected now.
type Connections struct {
	Connections []Connection `json:"connections"`
}

func (a *api) namespaceRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: "/openapi.json", id: "getDocument",
			summary: "This document.", result: json.RawMessage(nil),
			handle: func(c *call) (any, error) { return json.RawMessage(c.document), nil },
		},
		{
			method: http.MethodGet, path: "/namespace", id: "getNamespace", right: access.Manage,
			summary: "Show the broker as a whole.", result: Namespace{}, handle: namespace,
		},
		{
			method: http.MethodGet, path: "/connections", id: "listConnections", right: access.Manage,
			summary: "List AMQP connections with their links.", result: Connections{},
			handle: func(c *call) (any, error) {
				cs := c.Connections(c.Context())
				if cs == nil {
					cs = []Connection{}
				}
				return Connections{cs}, nil
			},
		},
	}
}

func namespace(c *call) (any, error) {
	n := Namespace{Name: c.Namespace, StartedAt: c.started.UTC(), Hubs: len(c.Broker.Hubs())}
	for path, kind := range c.Broker.Paths() {
		rt, err := c.Broker.Runtime(c.Context(), path)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		switch kind {
		case broker.KindQueue:
			n.Queues++
		case broker.KindTopic:
			n.Topics++
		case broker.KindSubscription:
			n.Subscriptions++
		}
		add(&n.Counts, rt.Counts)
	}
	return n, nil
}

func add(sum *broker.Counts, c broker.Counts) {
	sum.Active += c.Active
	sum.Locked += c.Locked
	sum.Deferred += c.Deferred
	sum.Scheduled += c.Scheduled
	sum.Dead += c.Dead
	sum.Transfer += c.Transfer
	sum.TransferDead += c.TransferDead
	sum.Bytes += c.Bytes
}
