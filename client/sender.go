// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
)

// Sender sends messages to one queue or topic. It is safe for concurrent use:
// many goroutines that send at once share round trips.
type Sender struct {
	client  *Client
	entity  string
	options SenderOptions
	link    *lazyValue[*link]
	closed  atomic.Bool
}

// SenderOptions are the settings of a sender; nil is the default.
type SenderOptions struct {
	// Priority is that of messages which have none of their own.
	Priority Priority
	// TTL is that of messages which have none of their own.
	TTL time.Duration
}

// OpenSender opens a sender to a queue or topic; "" means the entity that the
// address names.
func (c *Client) OpenSender(ctx context.Context, entity string, o *SenderOptions) (*Sender, error) {
	s := c.newSender(c.entity(entity))
	if o != nil {
		s.options = *o
	}
	if err := s.options.check(); err != nil {
		return nil, failure("open sender to", s.entity, err)
	}
	err := c.retry(ctx, func(*outage) error {
		_, err := s.open(ctx)
		return err
	})
	if err != nil {
		return nil, failure("open sender to", s.entity, err)
	}
	return s, nil
}

func (c *Client) newSender(entity string) *Sender {
	return &Sender{client: c, entity: entity, link: newLazyValue[*link]()}
}

// Send sends one message and returns when the broker has made it durable.
func (s *Sender) Send(ctx context.Context, m *Message) error {
	out := s.prepare(ctx, m)
	wire, err := out.encode()
	if err != nil {
		err = failure("send to", s.entity, err)
	} else {
		err = s.deliver(ctx, wire)
	}
	return s.hooks().sent(s.entity, err, out)
}

// SendBatch sends many messages in as few transfers as their size allows, in
// order. Each transfer is accepted whole or not at all; SendBatch stops at the
// first that is not.
func (s *Sender) SendBatch(ctx context.Context, ms []*Message) error {
	if len(ms) == 0 {
		return nil
	}
	var limit uint64
	err := s.client.retry(ctx, func(*outage) error {
		l, err := s.open(ctx)
		if err == nil {
			limit = batchLimit(l.sender)
		}
		return err
	})
	if err != nil {
		return failure("send to", s.entity, err)
	}
	all := make([]outgoing, len(ms))
	for i, m := range ms {
		all[i] = s.prepare(ctx, m)
	}
	batches, err := pack(all, limit)
	if err != nil {
		return s.hooks().sent(s.entity, failure("send to", s.entity, err), all...)
	}
	for i, b := range batches {
		if err := s.hooks().sent(s.entity, s.deliver(ctx, b.wire), b.messages...); err != nil {
			for _, left := range batches[i+1:] {
				_ = s.hooks().sent(s.entity, err, left.messages...) // the same for all that follow
			}
			return err
		}
	}
	return nil
}

func (s *Sender) hooks() *Hooks { return &s.client.options.Hooks }

// prepare returns a message as it is to be sent.
func (s *Sender) prepare(ctx context.Context, m *Message) outgoing {
	return s.hooks().sending(ctx, s.entity, s.complete(m))
}

// complete returns m, or a copy of it that has what is missing: an id, and what the
// sender's options say.
func (s *Sender) complete(m *Message) *Message {
	noPriority := m.Priority == "" && s.options.Priority != ""
	noTTL := m.TTL == 0 && s.options.TTL != 0
	if m.ID != "" && !noPriority && !noTTL {
		return m
	}
	out := *m.withID()
	if noPriority {
		out.Priority = s.options.Priority
	}
	if noTTL {
		out.TTL = s.options.TTL
	}
	return &out
}

// check refuses options that no message could be sent with.
func (o *SenderOptions) check() error {
	_, err := (&Message{Priority: o.Priority, TTL: o.TTL}).encode()
	return err
}

// Close ends the sender, within five seconds.
func (s *Sender) Close() error { return s.client.closing(s.Shutdown) }

// Shutdown is Close that takes as long as ctx allows.
func (s *Sender) Shutdown(ctx context.Context) error {
	s.closed.Store(true)
	l, err := s.link.take(ctx)
	if err != nil {
		return failure("close sender to", s.entity, err)
	}
	if l != nil && l.conn.alive() {
		return l.close(ctx)
	}
	return nil
}

// open returns the sender's link, after attaching it if need be.
func (s *Sender) open(ctx context.Context) (*link, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := s.client.connection(ctx)
	if err != nil {
		return nil, err
	}
	return s.link.get(ctx, (*link).usable, func() (*link, error) {
		return authorized(ctx, conn, []string{s.entity}, func() (*link, error) {
			return unlessClosed(&s.closed)(conn.openSender(ctx, s.entity, nil))
		})
	})
}

func (s *Sender) deliver(ctx context.Context, m *amqp.Message) error {
	err := s.client.retry(ctx, func(*outage) error {
		l, err := s.open(ctx)
		if err != nil {
			return err
		}
		return l.send(ctx, m)
	})
	if err != nil {
		return failure("send to", s.entity, err)
	}
	return nil
}

// errNotTaken means that the peer released the message without storing it, so it
// may be sent again.
var errNotTaken = errors.New("client: peer did not take the message")

// send transfers one message and waits until the peer has settled it. go-amqp's
// own Send would take released and modified for success.
func (l *link) send(ctx context.Context, m *amqp.Message) error {
	receipt, err := l.sender.SendWithReceipt(ctx, m, nil)
	if err != nil {
		return l.failed(ctx, err)
	}
	state, err := receipt.Wait(ctx)
	if err != nil {
		return l.failed(ctx, err)
	}
	switch state := state.(type) {
	case *amqp.StateAccepted:
		return nil
	case *amqp.StateRejected:
		if state.Error != nil {
			return state.Error
		}
		return fmt.Errorf("%w: rejected without a reason", ErrInvalid)
	default:
		return errNotTaken
	}
}

// failed notes that a link is gone, if that is what err says. A peer's disposition
// on one message, or an impatient caller, does not harm the link.
func (l *link) failed(ctx context.Context, err error) error {
	if _, disposition := errors.AsType[*amqp.Error](err); disposition && !lost(err) {
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	l.broken.Store(true)
	_ = endSession(ctx, l.session) // it may be gone; we only tidy up
	return err
}

// lost reports whether err says that the link, its session or its connection is
// gone.
func lost(err error) bool {
	_, link := errors.AsType[*amqp.LinkError](err)
	_, session := errors.AsType[*amqp.SessionError](err)
	_, conn := errors.AsType[*amqp.ConnError](err)
	return link || session || conn
}

// withID returns m, or a copy of it that has an id.
func (m *Message) withID() *Message {
	if m.ID != "" {
		return m
	}
	c := *m
	c.ID = rand.Text()
	return &c
}
