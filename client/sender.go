// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/Azure/go-amqp"
)

// Sender sends messages to one queue or topic. It is safe for concurrent use:
// many goroutines that send at once share round trips.
type Sender struct {
	client *Client
	entity string
	link   *lazyValue[*link]
	closed atomic.Bool
}

// Sender opens a sender to a queue or topic; "" means the entity that the
// address names.
func (c *Client) Sender(ctx context.Context, entity string) (*Sender, error) {
	s := c.newSender(c.entity(entity))
	err := c.retry(ctx, func(*outage) error {
		_, err := s.open(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open sender to %q: %w", s.entity, err)
	}
	return s, nil
}

func (c *Client) newSender(entity string) *Sender {
	return &Sender{client: c, entity: entity, link: newLazyValue[*link]()}
}

// Send sends one message and returns when the broker has made it durable.
func (s *Sender) Send(ctx context.Context, m *Message) error {
	wire, err := m.withID().encode()
	if err != nil {
		return fmt.Errorf("send to %q: %w", s.entity, err)
	}
	return s.deliver(ctx, wire)
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
		return fmt.Errorf("send to %q: %w", s.entity, err)
	}
	batches, err := pack(ms, limit)
	if err != nil {
		return fmt.Errorf("send to %q: %w", s.entity, err)
	}
	for _, b := range batches {
		if err := s.deliver(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the sender.
func (s *Sender) Close(ctx context.Context) error {
	s.closed.Store(true)
	if l := s.link.take(); l != nil && l.conn.alive() {
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
		if err := conn.authorize(ctx, s.entity); err != nil {
			return nil, err
		}
		return conn.openSender(ctx, s.entity, nil)
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
		return fmt.Errorf("send to %q: %w", s.entity, err)
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
