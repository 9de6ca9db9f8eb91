// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/shard"
)

// Sender puts messages into one queue or topic.
type Sender struct {
	b       *Broker
	n       *node
	options SenderOptions
}

// OpenSender returns a sender to a queue or topic.
func (b *Broker) OpenSender(addr string, o SenderOptions) (*Sender, error) {
	n, err := b.writable(addr)
	if err != nil {
		return nil, err
	}
	if !n.def.Load().queue.Status.CanSend() {
		return nil, fmt.Errorf("%w: %q takes no messages", ErrDisabled, n.path)
	}
	n.touch(b.clock.Now())
	return &Sender{b: b, n: n, options: o}, nil
}

// writable returns the node of an address that can be sent to.
func (b *Broker) writable(addr string) (*node, error) {
	n, sub, err := b.find(addr)
	switch {
	case err != nil:
		return nil, err
	case sub != entity.MainQueue:
		return nil, fmt.Errorf("%w: nothing can be sent to the dead letters of %q", ErrNotAllowed, n.path)
	case n.kind == KindSubscription:
		return nil, fmt.Errorf("%w: %q is a subscription; send to its topic", ErrNotAllowed, n.path)
	}
	return n, nil
}

// ID is that of the entity; see Address.
func (s *Sender) ID() uint64 { return uint64(s.n.id) }

// MaxMessageSize is the size in bytes of the largest message the entity takes.
func (s *Sender) MaxMessageSize() int64 { return s.n.def.Load().maxMessage() }

// largestMessage is what fits into a block of the journal, with room to spare for
// what the broker writes into a dead letter.
const largestMessage = 60 << 20

func (d *definition) maxMessage() int64 {
	return min(d.queue.MaxMessageSizeInKilobytes<<10, largestMessage)
}

// Unsynced is how much memory a message of size bytes, or a batch of them, takes
// until it is durable: its bytes, those bytes once more in the journal's buffer, and
// what is kept about it. Who sends should bound the sum.
func Unsynced(size int) int64 { return 2*int64(size) + 1<<10 }

// Send stores a batch, all of it or nothing. It never blocks and does not keep the
// slice; done is called exactly once, when the batch is durable or refused. A message that carries a
// scheduled time waits for it.
func (s *Sender) Send(batch []*message.Message, done func(error)) {
	if err := checkBatch(batch); err != nil {
		done(err)
		return
	}
	batch = s.b.prepare(s.n, s.options, batch)
	s.b.send(s.n, batch, shard.Locked{}, 0, func(_ []queue.SeqNo, err error) { done(err) })
}

// Close ends the sender.
func (s *Sender) Close() {}

// Schedule stores messages that carry a scheduled time and returns their numbers.
func (b *Broker) Schedule(ctx context.Context, addr string, batch []*message.Message, o SenderOptions) ([]queue.SeqNo, error) {
	n, err := b.writable(addr)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(batch); err != nil {
		return nil, err
	}
	type answer struct {
		seqs []queue.SeqNo
		err  error
	}
	got := make(chan answer, 1)
	b.send(n, b.prepare(n, o, batch), shard.Locked{}, 0, func(seqs []queue.SeqNo, err error) {
		got <- answer{append([]queue.SeqNo(nil), seqs...), err}
	})
	select {
	case a := <-got:
		return a.seqs, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// CancelScheduled removes scheduled messages, all of them or none. A number that
// occurs twice counts once.
func (b *Broker) CancelScheduled(ctx context.Context, addr string, seqs []queue.SeqNo) error {
	n, err := b.writable(addr)
	if err != nil {
		return err
	}
	n.touch(b.clock.Now())
	_, err = shard.Do(ctx, n.shard, shard.CancelScheduled{Queue: n.queue(shard.Main), Seqs: seqs})
	return err
}

// sendOptions say where the messages of a batch come from.
type sendOptions struct {
	// settle, if not zero, is the message of the same shard that the batch
	// replaces.
	settle shard.Locked
	// hops is how often the messages were forwarded before.
	hops uint8
	// origin is the number that a forwarded message was first given; zero is none.
	origin queue.SeqNo
	// held says that a topic need not hold the messages: their time has come,
	// and they are no duplicates.
	held bool
}

// send stores a batch in a queue, or publishes it to a topic. settle, if not
// zero, is the message of the same shard that it replaces; a topic does not hold
// that again.
func (b *Broker) send(n *node, batch []*message.Message, settle shard.Locked, hops uint8, done func([]queue.SeqNo, error)) {
	b.store(n, batch, sendOptions{settle: settle, hops: hops, held: settle != (shard.Locked{})}, done)
}

// store is send with all its options.
func (b *Broker) store(n *node, batch []*message.Message, o sendOptions, done func([]queue.SeqNo, error)) {
	def := n.def.Load()
	now := b.clock.Now()
	n.touch(now)
	err := def.sendable()
	if own := o.settle != (shard.Locked{}) && o.settle.ID == n.id; err == nil && !own {
		err = def.fits(batch) // what a topic has held fitted when it came
	}
	if err != nil {
		done(nil, err)
		return
	}
	p := b.newPost(batch, done)
	p.Settle = o.settle
	p.out = fanOut{source: len(batch), most: max(limits.CopyBytes, def.maxMessage()+limits.Properties)}
	for i, m := range batch {
		if n.kind == KindTopic && (o.held || !def.keeps(m, now)) {
			session, _ := m.SessionID()
			if err := checkName("session id", session); err != nil {
				p.answer(nil, err)
				return
			}
			b.route(n, p, i, now, &o)
			if err := p.out.check(len(p.Copies)); err != nil {
				p.answer(nil, err)
				return
			}
			continue
		}
		a := def.arrival(m, o.hops)
		if err := checkNames(&a); err != nil {
			p.answer(nil, err)
			return
		}
		a.Origin = o.origin
		p.Copies = append(p.Copies, shard.Copy{ID: n.id, Body: i, Arrival: a, Numbered: true})
	}
	if err := n.shard.Send(&p.Send); err != nil {
		p.answer(nil, err)
	}
}

// sendable reports whether the entity takes messages at present.
func (d *definition) sendable() error {
	if d.Paused.Sending || !d.queue.Status.CanSend() {
		return fmt.Errorf("%w: %q takes no messages", ErrDisabled, d.queue.Name)
	}
	return nil
}

// fits reports whether no message of the batch is too large for the entity.
func (d *definition) fits(batch []*message.Message) error {
	limit := d.maxMessage()
	for _, m := range batch {
		if int64(m.Size()) > limit {
			return fmt.Errorf("%w: %d bytes, %q takes up to %d", ErrTooLarge, m.Size(), d.queue.Name, limit)
		}
	}
	return nil
}

// keeps reports whether a topic has to hold a message before it is routed: one
// that is scheduled, or may be a duplicate.
func (d *definition) keeps(m *message.Message, now time.Time) bool {
	if d.queue.RequiresDuplicateDetection {
		return true
	}
	at, ok := m.ScheduledEnqueueTime()
	return ok && at.After(now)
}

// arrival reads from a message what its queue needs to know.
func (d *definition) arrival(m *message.Message, hops uint8) queue.Arrival {
	v := d.worth.verdict(m)
	if hops == 0 && d.worth.policy.UnknownPriority(m, v) {
		d.worth.unknown.Add(1)
	}
	a := queue.Arrival{
		Level: queue.Level(v.Level), Class: queue.Class(v.Class), Key: v.Key,
		TTL: lifetime(m), Hops: hops,
	}
	a.Session, a.InSession = m.SessionID()
	if lent, ok := m.Inherited(); ok && d.worth.policy.LevelOrder != ordering.Lifo { // there age is no merit
		a.Since = lent.Since
	}
	if d.queue.RequiresDuplicateDetection {
		a.MessageID = m.MessageIDString()
	}
	if at, ok := m.ScheduledEnqueueTime(); ok {
		a.NotBefore = at
	}
	return a
}

// lifetime is how long a message asks to live; zero is as long as its queue lets
// it. Lifetimes beyond what the header can hold come as two times.
func lifetime(m *message.Message) time.Duration {
	if from := m.CreationTime(); !from.IsZero() {
		if to := m.AbsoluteExpiry(); to.After(from) {
			return to.Sub(from)
		}
	}
	if h := m.Header(); h.TTLSet {
		return h.TTL
	}
	return 0
}
