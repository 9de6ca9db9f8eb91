// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

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
	Memory        StoredMemory  `json:"storedMemory"`
	// Warnings is what an operator has to do something about: parts of the configuration
	// that cannot be applied because of what is stored, say.
	Warnings []string `json:"warnings,omitempty"`
}

// StoredMemory is the memory that is used by what clients have made durable, in bytes.
type StoredMemory struct {
	Limit         int64 `json:"limitInBytes"`
	Messages      int64 `json:"messagesInBytes"`      // that wait, with sessions, fair keys and message ids
	MessagesLimit int64 `json:"messagesLimitInBytes"` // senders are refused beyond it
	Definitions   int64 `json:"definitionsInBytes"`
	Groups        int64 `json:"groupsInBytes"`
}

// Connections are clients that are connected now, the longest first.
type Connections struct {
	Connections []Connection `json:"connections"`
	Total       int          `json:"total"`
}

func (a *api) namespaceRoutes() []route {
	return []route{
		{
			method: http.MethodGet, path: "/openapi.json", id: "getDocument",
			summary: "This document.", result: json.RawMessage(nil),
			handle: func(c *call) (any, error) { return json.RawMessage(c.document), nil },
		},
		{
			method: http.MethodGet, path: "/namespace", id: "getNamespace",
			summary: "Show the broker as a whole.", result: Namespace{}, handle: namespace,
		},
		{
			method: http.MethodGet, path: "/connections", id: "listConnections",
			summary: "List AMQP connections with their links, the longest connected first.", query: pageQuery, result: Connections{},
			handle: listConnections,
		},
	}
}

// listConnections answers with a page of the connections.
func listConnections(c *call) (any, error) {
	p, err := c.paging()
	if err != nil {
		return nil, err
	}
	var l connectionsPage
	err = c.gathering(func() error {
		l.conns, l.total = c.Connections(c.Context(), p.skip, p.top)
		return l.charge(c)
	})
	return &l, err
}

// connectionsPage is a page of [Connections] as it is written, link by link.
type connectionsPage struct {
	conns []Connection
	total int
}

// charge charges what the page takes until it is written. Names and addresses are those of
// the links.
func (l *connectionsPage) charge(c *call) error {
	const perConnection, perLink = 128, 64
	n := 0
	for i := range l.conns {
		n += perConnection + perLink*len(l.conns[i].Links)
	}
	return c.charge(int64(n))
}

// stream implements streamed.
func (l *connectionsPage) stream(w io.Writer) error {
	if _, err := io.WriteString(w, `{"connections":[`); err != nil {
		return err
	}
	for i := range l.conns {
		if err := l.conns[i].stream(w, i > 0); err != nil {
			return err
		}
		l.conns[i] = Connection{}
	}
	_, err := io.WriteString(w, `],"total":`+strconv.Itoa(l.total)+"}\n")
	return err
}

func (x *Connection) stream(w io.Writer, more bool) error {
	whole := *x
	whole.Links = []Link{}
	b, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	b = bytes.TrimSuffix(b, []byte("]}")) // the links are the last field
	if more {
		b = append([]byte(","), b...)
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	for i := range x.Links {
		if b, err = json.Marshal(&x.Links[i]); err != nil {
			return err
		}
		if i > 0 {
			b = append([]byte(","), b...)
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "]}")
	return err
}

func namespace(c *call) (any, error) {
	n := Namespace{Name: c.Namespace, StartedAt: c.started.UTC()}
	if c.Memory != nil {
		u := c.Memory()
		n.Memory = StoredMemory{u.StoredLimit, u.StoredMessages, u.MessagesLimit, u.StoredDefinitions, u.StoredGroups}
	}
	if c.Warnings != nil {
		n.Warnings = c.Warnings()
	}
	return &n, c.gathering(func() error { return n.count(c) })
}

// count counts the entities, and what is in them.
func (n *Namespace) count(c *call) error {
	n.Hubs = len(c.Broker.Hubs())
	for path, kind := range c.Broker.Paths() {
		rt, err := c.Broker.Runtime(c.Context(), path)
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
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
	return nil
}

func add(sum *broker.Counts, c broker.Counts) {
	sum.Active += c.Active
	sum.Locked += c.Locked
	sum.Retrying += c.Retrying
	sum.Deferred += c.Deferred
	sum.Scheduled += c.Scheduled
	sum.Dead += c.Dead
	sum.Transfer += c.Transfer
	sum.TransferDead += c.TransferDead
	sum.Bytes += c.Bytes
}
