// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
)

// Request sends a message and waits for the reply to it. The reply comes to this
// very client, over a temporary node of its connection; on brokers that have
// none, over a session of [Options.ReplyQueue]. Request overwrites the ReplyTo
// fields.
//
// A request without a TTL lives as long as its caller waits: until the deadline of ctx,
// if it has one. Nobody works on it after that, and a reply that comes later is dropped.
//
// If the connection is lost meanwhile, the request is sent again with the same
// ID, so it may be served twice.
func (c *Client) Request(ctx context.Context, entity string, m *Message) (*Received, error) {
	sender := c.outbox.sender(ctx, c, c.entity(entity))
	out := sender.prepare(ctx, m)
	ask := *out.Message
	var reply *Received
	var told sync.Once
	err := c.retry(ctx, func(o *outage) error {
		// The sender comes first: it brings the token that proves who we are.
		l, err := sender.open(ctx)
		if err != nil {
			return err
		}
		box, err := l.conn.replyInbox(ctx, c.options.ReplyQueue)
		if err != nil {
			return err
		}
		ask.ReplyTo, ask.ReplyToSession = box.address, box.session
		if end, ok := ctx.Deadline(); ok && out.TTL == 0 {
			ask.TTL = max(time.Until(end), time.Millisecond)
		}
		wire, err := ask.encode()
		if err != nil {
			return err
		}
		wait, err := box.expect(ask.ID)
		if err != nil {
			return err
		}
		defer box.forget(ask.ID)
		if err := l.send(ctx, wire); err != nil {
			return err
		}
		told.Do(func() { _ = c.options.Hooks.sent(sender.entity, nil, out) }) // it returns what it is given
		o.reset(time.Now())
		raw, err := box.await(ctx, wait)
		if err != nil {
			return err
		}
		reply = decode(raw)
		return nil
	})
	if err != nil {
		err = failure("request to", sender.entity, err)
		told.Do(func() { _ = c.options.Hooks.sent(sender.entity, err, out) }) // as above
		return nil, err
	}
	_, _ = c.options.Hooks.received(ctx, []*Received{reply}, nil) // as above
	return reply, nil
}

// Reply answers a message that asks for it. It fills in where the answer goes
// and what it answers. In a queue the answer is as urgent as the question, unless
// m has a priority of its own.
func (c *Client) Reply(ctx context.Context, to *Received, m *Message) error {
	if to.ReplyTo == "" {
		return fmt.Errorf("reply to message %d: %w", to.SeqNo, ErrNoReplyTo)
	}
	answer := *m
	answer.Session, answer.CorrelationID = to.ReplyToSession, to.ID
	return c.outbox.sender(ctx, c, to.ReplyTo).Send(ctx, &answer)
}

// retire gives up the sender's link without closing the sender.
func (s *Sender) retire(ctx context.Context) {
	if l, _ := s.link.take(ctx); l != nil && l.conn.alive() {
		_ = l.close(ctx) // no caller waits for it
		l.conn.forget(s.entity)
	}
}

// replyInbox returns where replies to requests on this connection arrive.
func (c *connection) replyInbox(ctx context.Context, queue string) (*inbox, error) {
	return c.replies.get(ctx, (*inbox).usable, func() (*inbox, error) {
		settled := amqp.SenderSettleModeSettled
		l, err := c.openReceiver(ctx, "", &amqp.ReceiverOptions{
			DynamicAddress:            true,
			RequestedSenderSettleMode: &settled,
			Credit:                    inboxCredit,
		})
		if err == nil && l.receiver.Address() != "" {
			return newInbox(l, l.receiver.Address(), ""), nil
		}
		if err != nil && (ctx.Err() != nil || !c.alive()) {
			return nil, err
		}
		if queue == "" {
			return nil, fmt.Errorf("%w: the broker has no temporary nodes and no ReplyQueue is set: %w",
				ErrNotAllowed, err)
		}
		return c.sessionInbox(ctx, queue)
	})
}

// sessionInbox takes a session of its own on the reply queue.
func (c *connection) sessionInbox(ctx context.Context, queue string) (*inbox, error) {
	id := rand.Text()
	settled := amqp.SenderSettleModeSettled
	l, err := authorized(ctx, c, []string{queue}, func() (*link, error) {
		return c.openReceiver(ctx, queue, &amqp.ReceiverOptions{
			RequestedSenderSettleMode: &settled,
			Credit:                    inboxCredit,
			Filters:                   []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, id)},
		})
	})
	if err != nil {
		return nil, err
	}
	return newInbox(l, queue, id), nil
}

// outboxLimit bounds how many senders are kept open for requests and replies.
const outboxLimit = 64

// outbox keeps senders for addresses that are written to now and then. The zero
// value is empty.
type outbox struct {
	mu      sync.Mutex
	senders map[string]*Sender // guarded by mu
	oldest  []string           // addresses in the order they were added; guarded by mu
}

// sender returns the kept sender to an address, which opens its link when it is
// first used. When there are too many, the oldest loses its link; a caller that
// uses that one opens it once more.
func (b *outbox) sender(ctx context.Context, c *Client, address string) *Sender {
	b.mu.Lock()
	s, ok := b.senders[address]
	var surplus *Sender
	if !ok {
		if b.senders == nil {
			b.senders = map[string]*Sender{}
		}
		s = c.newSender(address)
		b.senders[address] = s
		b.oldest = append(b.oldest, address)
		if len(b.oldest) > outboxLimit {
			surplus = b.senders[b.oldest[0]]
			delete(b.senders, b.oldest[0])
			b.oldest = b.oldest[1:]
		}
	}
	b.mu.Unlock()
	if surplus != nil {
		surplus.retire(ctx)
	}
	return s
}
