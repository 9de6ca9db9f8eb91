// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// Delivery is a message handed out, or shown.
type Delivery struct {
	queue.Delivery

	msg  *message.Message // nil until loaded
	load func(queue.SeqNo, queue.Ref) (*message.Message, error)
}

// Message returns the message itself. It may read the disk, so it must not be
// called from a Sink's methods. An error that wraps queue.ErrNotFound means that
// the message was settled meanwhile: drop the delivery.
func (d *Delivery) Message() (*message.Message, error) {
	if d.msg != nil {
		return d.msg, nil
	}
	m, err := d.load(d.Seq, d.Body)
	if err != nil {
		return nil, err
	}
	d.msg = m
	return m, nil
}

// Sink is where a consumer's messages go. Its methods are called in order, on the
// shard's goroutine, and must return at once.
type Sink interface {
	// Deliver hands over messages. The slice is the sink's to keep.
	Deliver(ds []Delivery)
	// Drained answers Drain: nothing more comes until the limit is raised.
	Drained()
	// Ended says that the consumer is over and why.
	Ended(err error)
}

// Consumer takes messages from one queue as far as its limit allows. Its fields
// are owned by the shard.
type Consumer struct {
	shard *Shard
	slot  *slot
	sink  Sink
	want  queue.Want

	limit    uint64 // messages it takes in all, since it was attached
	given    uint64 // messages handed out to it
	draining bool
	gone     bool

	held []held     // taken, waiting for the disk; if any, on Shard.holding
	out  []Delivery // taken and safe, for the sink at the end of the step
}

// held is a delivery that waits until at is durable; without a delivery it marks
// the end of a drain.
type held struct {
	at      journal.Position
	d       Delivery
	drained bool
}

// Attachment is what a consumer asks for.
type Attachment struct {
	ID   ID
	Part Part
	Sink Sink
	Want queue.Want
}

// Attach adds a consumer; it is given nothing before Allow. done runs on the
// shard's goroutine.
func (s *Shard) Attach(a Attachment, done func(*Consumer, error)) error {
	return s.mail.push(&task{do: func(s *Shard) error {
		sl, err := s.slot(a.ID, a.Part)
		if err != nil {
			done(nil, err)
			return nil
		}
		c := &Consumer{shard: s, slot: sl, sink: a.Sink, want: a.Want}
		sl.consumers = append(sl.consumers, c)
		done(c, nil)
		return nil
	}, lost: func(err error) { done(nil, err) }})
}

// Allow lets the consumer have messages up to the total-th since it was attached.
func (c *Consumer) Allow(total uint64) error {
	return c.shard.mail.push(&allowance{c, total})
}

type allowance struct {
	c     *Consumer
	total uint64
}

func (a *allowance) run(s *Shard) {
	a.c.limit = a.total
	s.touch(a.c.slot)
}

func (a *allowance) fail(error) {}

// Drain has the consumer given what there is and then told so; what is left of
// its allowance is void.
func (c *Consumer) Drain() error {
	return c.shard.mail.push(&task{do: func(s *Shard) error {
		c.draining = true
		s.touch(c.slot)
		return nil
	}})
}

// Detach removes the consumer. Locks on messages stay; a session goes back, and
// its messages with it, uncounted.
func (c *Consumer) Detach() error {
	return c.shard.mail.push(&task{do: func(s *Shard) error {
		if c.gone {
			return nil
		}
		c.gone = true
		c.held = nil
		if i := slices.Index(c.slot.consumers, c); i >= 0 {
			c.slot.consumers = slices.Delete(c.slot.consumers, i, i+1)
		}
		if c.want.Session != (queue.SessionLock{}) {
			c.slot.q.ReleaseSession(s.now, c.want.Session, &s.eff)
			s.absorb(c.slot)
		}
		return nil
	}})
}

// serve hands out messages in every queue in which something changed.
func (s *Shard) serve() {
	for i := 0; i < len(s.dirty); i++ { // serving may make more slots dirty
		sl := s.dirty[i]
		s.seat(sl)
		s.serveSlot(sl)
		sl.dirty = false
		if _, ok := s.entities[sl.entity.ID]; ok {
			s.deadlines.set(sl)
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}

// serveSlot gives messages to the consumers in turns until there is nothing to
// give or nobody to give it to.
func (s *Shard) serveSlot(sl *slot) {
	refused := 0 // consumers in a row that got nothing
	for refused < len(sl.consumers) {
		sl.turn %= len(sl.consumers)
		c := sl.consumers[sl.turn]
		sl.turn++
		if c.given < c.limit && s.give(c) {
			refused = 0
			continue
		}
		refused++
	}
	for _, c := range sl.consumers {
		if c.draining {
			c.draining = false
			c.limit = c.given
			s.hold(c, held{at: 0, drained: true})
		}
	}
}

// give takes one message for the consumer.
func (s *Shard) give(c *Consumer) bool {
	qd, ok := c.slot.q.Take(s.now, c.want, &s.eff)
	if !ok {
		return false
	}
	c.given++
	if c.slot.observer != nil {
		c.slot.observer.Delivered(s.now, &qd)
	}
	d := s.delivery(c.slot, qd)
	h := held{d: d}
	switch {
	case c.want.Forgetful:
		// The body must be in hand before its last reference goes.
		if d.msg == nil {
			m, err := readBody(s.journal, qd.Body)
			if err != nil {
				s.failed = err
				return false
			}
			h.d.msg = m
		}
		h.at = pending
	case qd.Failures > 0 || qd.Seq > c.slot.safe:
		h.at = pending
	}
	s.absorb(c.slot)
	s.hold(c, h)
	return true
}

// pending stands for the position that the step's own group will get.
const pending = ^journal.Position(0)

// hold queues a delivery behind those that already wait, or lets it out at once
// (invariant 3).
func (s *Shard) hold(c *Consumer, h held) {
	if len(c.held) == 0 && h.at <= s.durable && !h.drained {
		c.out = append(c.out, h.d)
		s.ready(c)
		return
	}
	if len(c.held) == 0 {
		s.holding = append(s.holding, c)
	}
	c.held = append(c.held, h)
}

// ready has the consumer looked at when the step hands out.
func (s *Shard) ready(c *Consumer) {
	if n := len(s.handing); n == 0 || s.handing[n-1] != c {
		s.handing = append(s.handing, c)
	}
}

// stamp gives the step's position to the deliveries that depend on it; they are
// at the end of each list.
func (s *Shard) stamp() {
	for _, c := range s.holding {
		for i := len(c.held) - 1; i >= 0 && c.held[i].at == pending; i-- {
			c.held[i].at = s.tail
		}
	}
}

// unhold lets out what has become safe.
func (s *Shard) unhold() {
	for _, c := range s.holding {
		s.flush(c)
	}
	s.holding = slices.DeleteFunc(s.holding, func(c *Consumer) bool { return len(c.held) == 0 })
}

// flush moves the safe prefix of what a consumer waits for to its sink's turn.
func (s *Shard) flush(c *Consumer) {
	n := 0
	for n < len(c.held) && c.held[n].at <= s.durable {
		if h := &c.held[n]; h.drained {
			s.handOver(c)
			c.sink.Drained()
		} else {
			c.out = append(c.out, h.d)
		}
		n++
	}
	rest := copy(c.held, c.held[n:])
	clear(c.held[rest:])
	c.held = c.held[:rest]
	if len(c.out) > 0 {
		s.ready(c)
	}
}

// hand gives the sinks what the step has for them.
func (s *Shard) hand() {
	s.stamp()
	s.unhold()
	for _, c := range s.handing {
		s.handOver(c)
	}
	clear(s.handing)
	s.handing = s.handing[:0]
}

func (s *Shard) handOver(c *Consumer) {
	if len(c.out) == 0 || c.gone {
		return
	}
	out := c.out
	c.out = nil // the sink keeps it
	c.sink.Deliver(out)
}

// delivery dresses a machine's delivery with its body, or the way to it.
func (s *Shard) delivery(sl *slot, qd queue.Delivery) Delivery {
	return Delivery{Delivery: qd, msg: s.cache.get(qd.Body), load: sl.load}
}

// loader returns a function that reads bodies of the slot from any goroutine. A
// body that was moved meanwhile is looked for again through its number.
func (s *Shard) loader(sl *slot) func(queue.SeqNo, queue.Ref) (*message.Message, error) {
	return func(seq queue.SeqNo, ref queue.Ref) (*message.Message, error) {
		for {
			m, err := readBody(s.journal, ref)
			if !errors.Is(err, journal.ErrGone) {
				return m, err
			}
			again := make(chan queue.Ref, 1)
			if err := s.mail.push(&task{
				do: func(*Shard) error {
					d, _ := sl.q.Lookup(seq)
					again <- d.Body
					return nil
				},
				lost: func(error) { again <- queue.Ref{} },
			}); err != nil {
				return nil, err
			}
			moved := <-again
			if moved == (queue.Ref{}) || moved == ref {
				return nil, queue.ErrNotFound
			}
			ref = moved
		}
	}
}

// seeker waits for a free session.
type seeker struct {
	a    Attachment
	done func(*Consumer, error)
	over bool
}

// Seek attaches a consumer to a session: the named one, at once or not at all, or
// the best free one as soon as there is one. cancel gives up; a session that was
// granted meanwhile goes back.
func (s *Shard) Seek(a Attachment, name *string, done func(*Consumer, time.Time, error)) (cancel func(), err error) {
	var until time.Time
	k := &seeker{a: a}
	k.done = func(c *Consumer, err error) { k.over = true; done(c, until, err) }
	err = s.mail.push(&task{do: func(s *Shard) error {
		sl, err := s.slot(a.ID, a.Part)
		if err != nil {
			k.done(nil, err)
			return nil
		}
		if name == nil {
			sl.seekers = append(sl.seekers, k)
			s.touch(sl)
			return nil
		}
		lock, at, err := sl.q.LockSession(s.now, *name)
		if err != nil {
			k.done(nil, err)
			return nil
		}
		until = at
		s.sit(sl, k, lock)
		return nil
	}, lost: func(err error) { k.done(nil, err) }})
	cancel = func() {
		// A shard that has stopped has nothing left to give up.
		_ = s.mail.push(&task{do: func(s *Shard) error {
			if k.over {
				return nil
			}
			if sl, err := s.slot(a.ID, a.Part); err == nil {
				sl.seekers = slices.DeleteFunc(sl.seekers, func(o *seeker) bool { return o == k })
			}
			k.done(nil, ErrGaveUp)
			return nil
		}})
	}
	return cancel, err
}

// ErrGaveUp answers a Seek that was called off.
var ErrGaveUp = errors.New("shard: gave up waiting for a session")

// seat gives free sessions to those who wait for one, first come first served.
func (s *Shard) seat(sl *slot) {
	for len(sl.seekers) > 0 {
		k := sl.seekers[0]
		lock, _, ok := sl.q.LockNextSession(s.now, k.a.Want)
		if !ok {
			return
		}
		sl.seekers = slices.Delete(sl.seekers, 0, 1)
		s.sit(sl, k, lock)
	}
}

// sit attaches a seeker that got a session.
func (s *Shard) sit(sl *slot, k *seeker, lock queue.SessionLock) {
	want := k.a.Want
	want.Session = lock
	c := &Consumer{shard: s, slot: sl, sink: k.a.Sink, want: want}
	sl.consumers = append(sl.consumers, c)
	s.touch(sl)
	k.done(c, nil)
}

// SessionLock returns the session of a consumer that Seek attached.
func (c *Consumer) SessionLock() queue.SessionLock { return c.want.Session }

// checkSessions ends the consumers whose session lock ran out.
func (sl *slot) checkSessions(s *Shard) {
	for i := 0; i < len(sl.consumers); i++ {
		c := sl.consumers[i]
		if c.want.Session == (queue.SessionLock{}) || sl.q.HoldsSession(s.now, c.want.Session) {
			continue
		}
		sl.consumers = slices.Delete(sl.consumers, i, i+1)
		i--
		c.gone = true
		c.held = nil
		c.sink.Ended(queue.ErrSessionLockLost)
	}
}
