// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"maps"
	"time"
)

// Hooks are called around messages, for tracing and metrics. Each may be nil. They run
// on the caller's goroutine and must not block.
type Hooks struct {
	// Sending is called before a message is encoded. m is a copy, whose Properties are
	// not nil: a tracer puts traceparent or Diagnostic-Id there. The context that it
	// returns is that of Sent; nil is ctx.
	Sending func(ctx context.Context, entity string, m *Message) context.Context
	// Sent is called when the broker has stored the message, or err says why not.
	Sent func(ctx context.Context, entity string, m *Message, took time.Duration, err error)
	// Received is called for each message that Receive, Poll, ReceiveDeferred or Request
	// returns, and for each event that is read.
	Received func(ctx context.Context, m *Received)
	// Settled is called when a message was settled, or err says why not. The outcome is
	// completed, abandoned, released, deferred or dead-lettered.
	Settled func(ctx context.Context, m *Received, outcome string, took time.Duration, err error)
}

// outgoing is a message on its way, with what Sent needs.
type outgoing struct {
	*Message
	ctx   context.Context
	begun time.Time
}

// sending calls Sending.
func (h *Hooks) sending(ctx context.Context, entity string, m *Message) outgoing {
	out := outgoing{Message: m, ctx: ctx, begun: time.Now()}
	if h.Sending == nil {
		return out
	}
	own := *m
	own.Properties = maps.Clone(m.Properties)
	if own.Properties == nil {
		own.Properties = map[string]any{}
	}
	out.Message, out.ctx = &own, cmp.Or(h.Sending(ctx, entity, &own), ctx)
	return out
}

// sent calls Sent for messages that went together, and passes err on.
func (h *Hooks) sent(entity string, err error, ms ...outgoing) error {
	if h.Sent != nil {
		for _, m := range ms {
			h.Sent(m.ctx, entity, m.Message, time.Since(m.begun), err)
		}
	}
	return err
}

// received calls Received, and passes what was received on.
func (h *Hooks) received(ctx context.Context, ms []*Received, err error) ([]*Received, error) {
	if h.Received != nil && err == nil {
		for _, m := range ms {
			h.Received(ctx, m)
		}
	}
	return ms, err
}
