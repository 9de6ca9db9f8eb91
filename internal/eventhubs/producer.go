// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/broker"
)

// openTimeout bounds the opening of a receiver, or of an idempotent producer.
const openTimeout = 30 * time.Second

// isIdempotent reports whether a sender wants its batches stored once however often it
// sends them.
func isIdempotent(remote *frame.Attach) bool { return desires(remote, names.IdempotentProducer) }

// openingProducer is an idempotent producer whose attach is not answered yet.
type openingProducer struct{ stop context.CancelFunc }

func (o *openingProducer) cancel() {
	if o.stop != nil {
		o.stop()
	}
}

// attachIdempotent opens the producer beside the connection, since that has to be durable.
func (s *sender) attachIdempotent() error {
	asked, err := producerOf(s.link.Remote())
	if err != nil {
		return err
	}
	c := s.c
	ctx, cancel := context.WithTimeout(c.Context(), openTimeout)
	s.opening.stop = cancel
	c.Attached(s.link, s)
	c.Go(func() {
		defer cancel()
		p, err := s.to.OpenProducer(ctx, asked)
		c.Do(func() { s.opened(p, err) })
	})
	return nil
}

// opened answers the attach; it does nothing if the peer has left meanwhile.
func (s *sender) opened(p broker.Producer, err error) {
	if err == nil {
		err = s.Check() // it may have waited for long
	}
	if err != nil {
		s.link.Refuse(s.c.WireError(s.path, err))
		return
	}
	s.producer = &p
	s.accept(endpoint.Accept{
		Properties:          producerProperties(p),
		OfferedCapabilities: []string{names.IdempotentProducer},
	})
}
