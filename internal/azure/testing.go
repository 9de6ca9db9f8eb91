// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/message"
)

// What tests of personalities need to see or do.

// Held is what a service keeps for its connections.
type Held struct{ Connections, DynamicNodes, Watched int }

// Held returns what the service keeps now; nothing when the last connection is gone.
func (s *Service) Held() Held {
	s.nodes.mu.RLock()
	defer s.nodes.mu.RUnlock()
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	return Held{len(s.registry.all()), len(s.nodes.m), len(s.watchers.conns)}
}

// Unserved returns a connection that is not served, so that nothing runs in its
// context, what it has of the first personality, and what Serve does at its end.
func (s *Service) Unserved(ctx context.Context, ec *endpoint.Conn) (c *Conn, first Links, finish func()) {
	c = newConn(ctx, s, ec, Peer{})
	return c, c.linksOf(0), c.finish
}

// Try runs an operation on the entity at a path as if m were a request for it by
// a peer with the right, and returns the status of the reply.
func (c *Conn) Try(ctx context.Context, op Operation, path string, m *message.Message) (status int32) {
	k := &Call{ctx: ctx, request: &request{from: &requests{c: c}, message: m}, c: c, entity: path, op: op, account: c.pool.account()}
	k.body, _ = m.Value()
	var err error
	if k.run, err = op.Begin(k); err != nil {
		return c.failureOf(path, err).Status
	}
	k.perform()
	if k.charge > 0 {
		k.account.Release(k.charge)
	}
	c.member.Release(k.beyond)
	return k.reply.Status
}
