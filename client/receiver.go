// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"
)

// Mode is how a receiver takes messages.
type Mode uint8

const (
	// PeekLock delivers a message with a lock until it is settled. It is the
	// default: no message is lost, but one may come twice.
	PeekLock Mode = iota
	// ReceiveAndDelete removes a message as it is delivered: it comes once, or
	// not at all if the receiver dies.
	ReceiveAndDelete
)

// ReceiverOptions are the settings of a receiver; nil is the default.
type ReceiverOptions struct {
	Mode Mode

	// MinPriority and MaxPriority narrow what the receiver is given: levels,
	// names, or classes of the queue's policy. A dedicated worker asks for its
	// own class; a spare one for nothing below what may preempt.
	MinPriority, MaxPriority Priority

	// Sources are more queues and subscriptions to receive from, in order of
	// preference, the receiver's own being the first. The broker waits at all
	// of them at once; Received.Source tells where a message came from.
	Sources []string
	// SourceSelection is how the broker chooses among the sources.
	SourceSelection SourceSelection

	// TellLevel asks the broker for the level and class of each message:
	// Received.Level and Received.Class.
	TellLevel bool

	// DurableLocks asks for locks that survive a restart of the broker from the beginning:
	// nobody else gets a message before its lock ends, and its holder can settle it on a new
	// connection. Otherwise a lock does from its first renewal on. It costs a record in the
	// broker's log for each delivery. It does not combine with ReceiveAndDelete or a session.
	DurableLocks bool

	// Prefetch is how many messages to fetch before Receive asks for them, which
	// saves it a round trip; default none. They are locked and not started. Our
	// own broker asks for the lowest of them back when it has a more urgent one
	// and no receiver has credit, and for the last one when a receiver without
	// Prefetch waits; the delivery count is unchanged. It does not combine with
	// ReceiveAndDelete, Sources or a session.
	Prefetch int
}

// check refuses options that do not combine, with the names of both. session is the
// function that opens a session with them, "" if none does.
func (o *ReceiverOptions) check(session string) error {
	if o == nil {
		return nil
	}
	var errs []error
	refuse := func(both bool, a, b string) {
		if both {
			errs = append(errs, fmt.Errorf("%w: %s does not combine with %s", ErrInvalid, a, b))
		}
	}
	refuse(o.Prefetch > 0 && o.Mode == ReceiveAndDelete, "Prefetch", "ReceiveAndDelete")
	refuse(o.Prefetch > 0 && len(o.Sources) > 0, "Prefetch", "Sources")
	refuse(o.Prefetch > 0 && session != "", "Prefetch", session)
	refuse(o.DurableLocks && o.Mode == ReceiveAndDelete, "DurableLocks", "ReceiveAndDelete")
	refuse(o.DurableLocks && session != "", "DurableLocks", session)
	refuse(len(o.Sources) > 0 && o.Mode == ReceiveAndDelete, "Sources", "ReceiveAndDelete")
	refuse(len(o.Sources) > 0 && session != "", "Sources", session)
	refuse(o.SourceSelection != ByOrder && len(o.Sources) == 0, "SourceSelection", "a single source")
	if o.Prefetch < 0 {
		errs = append(errs, fmt.Errorf("%w: Prefetch is negative", ErrInvalid))
	}
	if o.Mode > ReceiveAndDelete {
		errs = append(errs, fmt.Errorf("%w: there is no Mode %d", ErrInvalid, o.Mode))
	}
	if o.SourceSelection > ByLevel {
		errs = append(errs, fmt.Errorf("%w: there is no SourceSelection %d", ErrInvalid, o.SourceSelection))
	}
	return errors.Join(errs...)
}

// Receiver takes messages from one queue, subscription or dead letter queue, or
// from several as if they were one. Its methods are safe for concurrent use; calls of Receive take turns.
type Receiver struct {
	client         *Client
	entity         string
	mode           Mode
	linkProperties map[string]any // properties of the link
	more           []string       // sources after the first
	prefetcher     *prefetcher    // nil without prefetch
	link           *lazyValue[*link]
	polls          *lazyValue[*link] // the link of Poll
	noPolls        atomic.Bool       // the broker does not know such links
	extensions     atomic.Bool       // the broker knows those of ours
	sem            chan struct{}     // capacity 1: full while someone receives
	attach         func(context.Context, *connection) (*link, error)
	session        bool                   // it is one of a session
	group          *string                // the session of a session receiver, once granted
	name           atomic.Pointer[string] // of the latest link
	closed         atomic.Bool
}

// maxCredit bounds one Receive to what an AMQP session's window takes at once.
const maxCredit = 2000

// linger is how long Receive waits for more after the messages at hand have
// come, so that a batch which is on its way arrives whole.
const linger = 5 * time.Millisecond

// OpenReceiver opens a receiver; "" means the entity that the address names.
// [DeadLetterQueue] and [Subscription] give the addresses of those.
func (c *Client) OpenReceiver(ctx context.Context, entity string, o *ReceiverOptions) (*Receiver, error) {
	r := c.newReceiver(entity, o)
	if err := o.check(""); err != nil {
		return nil, failure("open receiver of", r.entity, err)
	}
	r.prefetch(o)
	err := c.retry(ctx, func(*outage) error {
		_, err := r.open(ctx)
		return err
	})
	if err != nil {
		return nil, failure("open receiver of", r.entity, err)
	}
	return r, nil
}

func (c *Client) newReceiver(entity string, o *ReceiverOptions) *Receiver {
	r := &Receiver{
		client: c, entity: c.entity(entity),
		link: newLazyValue[*link](), polls: newLazyValue[*link](), sem: make(chan struct{}, 1),
	}
	if o == nil {
		o = &ReceiverOptions{}
	}
	r.mode, r.more = o.Mode, o.Sources
	r.linkProperties = o.linkProperties(r.entity)
	r.attach = func(ctx context.Context, conn *connection) (*link, error) {
		return r.granted(conn.openReceiver(ctx, r.entity, r.linkOptions()))
	}
	return r
}

// prefetch has a plain receiver fetch ahead.
func (r *Receiver) prefetch(o *ReceiverOptions) {
	if o == nil || o.Prefetch == 0 {
		return
	}
	r.linkProperties[propRecall] = true
	r.prefetcher = newPrefetcher(r, o.Prefetch)
	plain := r.attach
	r.attach = func(ctx context.Context, conn *connection) (*link, error) {
		l, err := plain(ctx, conn)
		if err != nil {
			return nil, err
		}
		if err := r.prefetcher.attach(ctx, l); err != nil {
			_ = l.close(ctx) // the reason is the one that counts
			return nil, err
		}
		return l, nil
	}
}

// linkOptions says how the link settles. In the second mode the peer confirms
// each settlement, so that Complete returns when it is durable.
func (r *Receiver) linkOptions() *amqp.ReceiverOptions {
	o := &amqp.ReceiverOptions{Credit: -1, Properties: maps.Clone(r.linkProperties)}
	if r.mode == ReceiveAndDelete {
		settled := amqp.SenderSettleModeSettled
		o.RequestedSenderSettleMode = &settled
		return o
	}
	second := amqp.ReceiverSettleModeSecond
	o.SettlementMode = &second
	return o
}

// open returns the receiver's link, after attaching it if need be.
func (r *Receiver) open(ctx context.Context) (*link, error) {
	if r.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := r.client.connection(ctx)
	if err != nil {
		return nil, err
	}
	return r.link.get(ctx, (*link).usable, func() (*link, error) {
		l, err := authorized(ctx, conn, r.entities(), func() (*link, error) {
			return unlessClosed(&r.closed)(r.attach(ctx, conn))
		})
		if err == nil {
			name := l.receiver.LinkName()
			r.name.Store(&name)
		}
		return l, err
	})
}

// entities are all sources.
func (r *Receiver) entities() []string { return append([]string{r.entity}, r.more...) }

// Receive waits for messages and returns at least one and at most limit of them,
// best first. When ctx ends before one came it returns ctx's error. It asks for
// no more than limit and takes back what it asked for before it returns, so no
// message waits unseen behind a slow receiver.
func (r *Receiver) Receive(ctx context.Context, limit int) ([]*Received, error) {
	if err := r.turn(ctx); err != nil {
		return nil, err
	}
	defer r.yield()
	take := r.fetch
	if r.prefetcher != nil {
		take = r.prefetcher.receive
	}
	ms, err := take(ctx, limit)
	return r.client.options.Hooks.received(ctx, ms, err)
}

// turn waits until no other call receives; yield ends the turn.
func (r *Receiver) turn(ctx context.Context) error {
	select {
	case r.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Receiver) yield() { <-r.sem }

// fetch waits for messages on the receiver's link.
func (r *Receiver) fetch(ctx context.Context, limit int) ([]*Received, error) {
	return r.fetchFrom(ctx, limit, r.open, (*link).receive)
}

// fetchFrom takes messages from a link, which is opened if need be.
func (r *Receiver) fetchFrom(
	ctx context.Context, limit int,
	open func(context.Context) (*link, error),
	take func(*link, context.Context, int) ([]*amqp.Message, error),
) ([]*Received, error) {
	var out []*Received
	err := r.client.retry(ctx, func(o *outage) error {
		l, err := open(ctx)
		if err != nil {
			return err
		}
		o.reset(time.Now())
		raw, err := take(l, ctx, max(1, min(limit, maxCredit)))
		for _, m := range raw {
			out = append(out, r.accept(l, m))
		}
		return err
	})
	if err != nil {
		return nil, failure("receive from", r.entity, err)
	}
	return out, nil
}

// Messages yields messages as they come, one at a time, until ctx ends or
// receiving fails; the failure is yielded last.
func (r *Receiver) Messages(ctx context.Context) iter.Seq2[*Received, error] {
	return func(yield func(*Received, error) bool) {
		for ctx.Err() == nil {
			ms, err := r.Receive(ctx, 1)
			if err != nil {
				if ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			if !yield(ms[0], nil) {
				return
			}
		}
	}
}

// Close ends the receiver, within five seconds. Messages that it locked can still be
// settled until their locks run out.
func (r *Receiver) Close() error { return r.client.closing(r.Shutdown) }

// Shutdown is Close that takes as long as ctx allows.
func (r *Receiver) Shutdown(ctx context.Context) error {
	r.closed.Store(true)
	if r.prefetcher != nil {
		r.prefetcher.close(ctx)
	}
	var errs []error
	for _, links := range []*lazyValue[*link]{r.link, r.polls} {
		l, err := links.take(ctx)
		if err != nil {
			errs = append(errs, failure("close receiver of", r.entity, err))
		}
		if l != nil && l.conn.alive() {
			errs = append(errs, l.close(ctx))
		}
	}
	return errors.Join(errs...)
}

// accept makes a message of a delivery.
func (r *Receiver) accept(l *link, raw *amqp.Message) *Received {
	m := decode(raw)
	if m.Source == "" {
		m.Source = r.entity
	}
	if r.mode == PeekLock {
		m.raw, m.link, m.token = raw, l, lockToken(raw)
	}
	return m
}

// receive asks for limit messages, waits for the first, and takes the rest of
// the credit back. It returns messages or an error, never both.
func (l *link) receive(ctx context.Context, limit int) ([]*amqp.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := l.receiver.IssueCredit(uint32(limit)); err != nil {
		return nil, l.failed(ctx, err)
	}
	var out []*amqp.Message
	first, err := l.receiver.Receive(ctx, nil)
	if err == nil {
		out = l.fill(ctx, append(out, first), limit)
	} else if ctx.Err() == nil {
		return nil, l.failed(ctx, err)
	}
	if len(out) == limit {
		return out, nil
	}
	out = l.drain(ctx, out)
	if len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// fill adds what arrives within the linger of the message before.
func (l *link) fill(ctx context.Context, out []*amqp.Message, limit int) []*amqp.Message {
	for len(out) < limit {
		m := l.receiver.Prefetched()
		if m == nil {
			short, cancel := context.WithTimeout(ctx, linger)
			m, _ = l.receiver.Receive(short, nil)
			cancel()
		}
		if m == nil {
			break
		}
		out = append(out, m)
	}
	return out
}

// drain takes the credit back and adds what was on its way. A peer that does not
// answer loses the link, and with it the credit.
func (l *link) drain(ctx context.Context, out []*amqp.Message) []*amqp.Message {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := l.receiver.DrainCredit(brief, nil); err != nil {
		l.broken.Store(true)
		_ = endSession(ctx, l.session) // it may be gone; we only tidy up
	}
	for m := l.receiver.Prefetched(); m != nil; m = l.receiver.Prefetched() {
		out = append(out, m)
	}
	return out
}
