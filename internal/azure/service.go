// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
)

// Service speaks with the clients of Azure for one broker. Any number of connections
// share it.
type Service struct {
	broker        *broker.Broker
	personalities []Personality
	conditions    *condition.Table
	nodes         *nodes
	memory        *budget.Process
	log           *slog.Logger

	registry registry
	watchers watchers
}

// New returns a service with these personalities for the entities of b, which tells it
// of changes from now on. The first personality also answers for what no entity is
// called. What connections make the process hold is charged to memory.
func New(b *broker.Broker, memory *budget.Process, log *slog.Logger, first Personality, more ...Personality) *Service {
	ps := append([]Personality{first}, more...)
	s := &Service{broker: b, personalities: ps, conditions: newTable(ps), nodes: newNodes(), memory: memory, log: log}
	b.OnChange(func(name string) {
		s.watchers.changed(name)
		b.ReviewMembers()
	})
	return s
}

// Peer is who a connection belongs to, as far as the listener knows.
type Peer struct {
	// Authority decides what the peer may do.
	Authority access.Authority
	// Certificate is the name in the peer's verified client certificate; empty
	// without one.
	Certificate string
	// CertificateEnds is when that certificate does.
	CertificateEnds time.Time
	// OnAuthenticated is called once, in the connection's context, when the peer has
	// authenticated, with what it has shown; nil is fine. Until then a listener may close it
	// in favour of others. If it returns false, there are too many connections of that key.
	OnAuthenticated func(access.Grant) bool
	// Cost is what the transport of the connection takes: it is charged to the peer when it
	// has authenticated. Before that, it is bounded by the number of such connections.
	Cost int64
	// AuthTimeout is how long a peer may take to authenticate after it opened
	// the connection; zero is a default.
	AuthTimeout time.Duration
}

// Serve speaks with the peer on ec until it leaves or ctx ends, and reports why.
// When it returns nothing of the connection is left.
func (s *Service) Serve(ctx context.Context, ec *endpoint.Conn, peer Peer) error {
	c := newConn(ctx, s, ec, peer)
	x := s.registry.enter(c, ec.RemoteAddr().String())
	defer s.registry.leave(x)
	err := ec.Serve(ctx, x)
	c.finish()
	return err
}
