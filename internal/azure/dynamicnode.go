// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/azure/wire"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

const (
	// dynamicNodeCost is what a message counts beyond its own bytes.
	dynamicNodeCost = 256
)

// nodes are the dynamic nodes of all connections, by path. Messages for them
// are never stored: they live as long as the link that asked for them.
type nodes struct {
	mu sync.RWMutex
	m  map[string]*dynamicNode
}

func newNodes() *nodes { return &nodes{m: map[string]*dynamicNode{}} }

// dynamicNode is the link of a reader that asked for a node of its own. Its name
// cannot be guessed, so that knowing it is the right to send there.
type dynamicNode struct {
	replies // sends, keeps what waits for credit, makes tags
	name    string
	waiting atomic.Int64 // bytes forwarded and not sent yet; charged to the connection
	gone    bool         // detached; belongs to the connection's context
}

func (c *Conn) attachDynamicNode(l *endpoint.Link) error {
	if err := c.grants.requireSome(access.Listen, ""); err != nil {
		return err
	}
	var id [16]byte
	rand.Read(id[:]) // never fails, says its documentation
	name := wire.DynamicPrefix + hex.EncodeToString(id[:])
	if !c.mem.Take(replyLinkCost) {
		return ErrNoMemory
	}
	t := &dynamicNode{name: name, replies: replies{c: c, link: l, node: name, cost: replyLinkCost}}
	t.replies.left = t.left
	c.Attached(l, t)
	c.svc.nodes.add(t)
	source := *l.Remote().Source
	source.Address = name
	l.Accept(endpoint.Accept{Source: &source})
	return nil
}

func (ns *nodes) add(t *dynamicNode) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.m[t.name] = t
}

func (ns *nodes) remove(t *dynamicNode) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	delete(ns.m, t.name)
}

func (ns *nodes) find(addr string) (*dynamicNode, error) {
	ns.mu.RLock()
	defer ns.mu.RUnlock()
	if t, ok := ns.m[wire.PathOf(addr)]; ok {
		return t, nil
	}
	return nil, endpoint.Errorf(endpoint.CondNotFound, "The temporary node '%s' does not exist any more.", addr)
}

// forward hands messages to the reader of a node, on its own connection. If it succeeds
// and one of them never leaves, lost runs, unless it is nil.
func (ns *nodes) forward(addr string, ms []*message.Message, lost func()) error {
	t, err := ns.find(addr)
	if err != nil {
		return err
	}
	for _, m := range ms {
		if !t.takes(len(m.Bytes())) {
			return endpoint.ErrTooLarge
		}
		n := int64(len(m.Bytes()) + dynamicNodeCost)
		if t.waiting.Add(n) > limits.TemporaryNode || !t.c.member.TryTake(n) {
			t.waiting.Add(-n)
			return endpoint.Errorf(endpoint.CondResourceLimitExceeded, "The temporary node '%s' has too many messages waiting.", addr)
		}
		t.c.Post(Event{To: t, Value: &parting{payload: m.Bytes(), lost: lost, charge: n}})
	}
	return nil
}

// Handle takes a message.
func (t *dynamicNode) Handle(e *Event) {
	p := e.Value.(*parting)
	if t.gone {
		t.left(p.charge)
		p.isLost()
		return
	}
	t.backlog = append(t.backlog, *p)
	t.Credit()
}

// left says that messages do not wait any more.
func (t *dynamicNode) left(n int64) {
	t.waiting.Add(-n)
	t.c.member.Release(n)
}

func (t *dynamicNode) Check() error    { return t.c.grants.requireSome(access.Listen, "") }
func (t *dynamicNode) Paths() []string { return nil }

func (t *dynamicNode) Detached() {
	t.c.svc.nodes.remove(t)
	t.gone = true
	t.replies.Detached()
}

// toDynamicNode is a link on which the peer sends to a dynamic node, usually of
// another connection.
type toDynamicNode struct {
	c    *Conn
	link *endpoint.Link
	addr string
}

func (c *Conn) attachToDynamicNode(l *endpoint.Link) error {
	if err := c.grants.requireSome(access.Send, wire.PathOf(l.Address())); err != nil {
		return err
	}
	if _, err := c.svc.nodes.find(l.Address()); err != nil {
		return err
	}
	c.Attached(l, &toDynamicNode{c: c, link: l, addr: l.Address()})
	l.Accept(endpoint.Accept{Credit: SenderCredit})
	return nil
}

func (s *toDynamicNode) Transfer(in *endpoint.Incoming) {
	ms, err := s.c.Unpack(nil, in, s.c.sending.Key, wire.Messages(in.Arriving()))
	if err == nil {
		err = s.c.svc.nodes.forward(s.addr, ms, nil)
	}
	if err != nil {
		s.link.Settle(in.Delivery, frame.Rejected(s.c.WireError(s.addr, err)))
		return
	}
	s.link.Settle(in.Delivery, frame.Accepted())
}

func (s *toDynamicNode) Credit()                       {}
func (s *toDynamicNode) Disposition(*endpoint.Outcome) {}
func (s *toDynamicNode) Check() error {
	return s.c.grants.requireSome(access.Send, wire.PathOf(s.addr))
}
func (s *toDynamicNode) Paths() []string { return nil }
func (s *toDynamicNode) Detached()       {}
