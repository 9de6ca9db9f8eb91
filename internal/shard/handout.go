// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// serve hands out messages in every queue in which something changed, as many as
// one step may. The queues that are left have their turn in the next step, behind
// those that had none in this one.
func (s *Shard) serve() {
	i, undone := 0, 0
	for ; i < len(s.dirty) && s.handOuts > 0 && !s.stuck; i++ { // serving may make more slots dirty
		sl := s.dirty[i]
		s.seat(sl)
		if !s.serveSlot(sl) {
			s.dirty[undone] = sl
			undone++
			continue
		}
		sl.dirty = false
		s.schedule(sl)
	}
	s.dirty = append(s.dirty, s.dirty[:undone]...)
	left := copy(s.dirty, s.dirty[i:])
	for _, sl := range s.dirty[:left] {
		s.schedule(sl) // what falls due does so before it is served
	}
	clear(s.dirty[left:])
	s.dirty = s.dirty[:left]
}

// schedule notes when the queue has something to do by itself.
func (s *Shard) schedule(sl *slot) {
	if _, ok := s.entities[sl.entity.ID]; ok {
		s.deadlines.set(sl)
	}
}

// clearings is how many consumers of a queue may find, in one step, nothing but
// messages that have expired, which they clear away.
const clearings = 16

// serveSlot gives messages to the consumers in turns until there is nothing to
// give or nobody to give it to. It reports whether it has come to that, and not given
// up for this step.
func (s *Shard) serveSlot(sl *slot) (done bool) {
	cleared := 0
	for more := true; more; {
		refused := 0 // consumers in a row that got nothing
		for refused < len(sl.consumers) {
			if s.filled(); s.stuck || s.handOuts == 0 || cleared >= clearings {
				return false
			}
			sl.turn %= len(sl.consumers)
			c := sl.consumers[sl.turn]
			sl.turn++
			written := s.eff.Count()
			if c.given < c.limit && s.give(c) {
				s.handOuts--
				refused = 0
				continue
			}
			refused++
			if s.eff.Count() > written {
				cleared++
			}
		}
		more = false
		for _, c := range sl.consumers {
			if c.draining && len(c.fetching) == 0 { // else there may be more to give
				more = s.drained(c) || more
			}
		}
	}
	s.recall(sl)
	return true
}

// drained ends a drain, and reports whether the consumer has been allowed more, or
// drained again, while that waited for bodies.
func (s *Shard) drained(c *Consumer) (more bool) {
	c.limit, c.void = c.given, true
	if o, ok := c.slot.observer.(IdleObserver); ok && c.given == c.drained && !c.probing {
		o.Idle(s.now)
	}
	c.drained = c.given
	s.hold(c, held{at: 0, drained: true})
	more = c.next != nil || c.again
	if c.next != nil {
		c.limit, c.void, c.next = *c.next, false, nil
	}
	c.draining, c.again = c.again, false
	return more
}

// give takes one message for the consumer.
func (s *Shard) give(c *Consumer) bool {
	if c.want.Forgetful {
		return s.giveForGood(c)
	}
	before := s.eff.Count()
	qd, ok := c.slot.q.Take(s.now, c.want, s.out(c.slot))
	if !ok {
		s.absorb(c.slot) // it may have cleared away what had expired
		return false
	}
	c.given++
	if c.recaller != nil {
		c.lend(s, &qd)
	}
	s.delivered(c.slot, &qd)
	h := held{d: s.delivery(c.slot, qd)}
	switch {
	case s.eff.Count() > before:
		// Its key is started by it, and stays so after a crash if it was seen. To
		// have cleared away what had expired leaves records, too, and is as rare.
		h.at = pending
	case qd.Failures > 0 || c.slot.part != Main:
		// It may have changed and come back: failures tell, but for dead letters
		// nobody counts them.
		h.at = pending
	default:
		h.at = max(c.slot.arrived(qd.Seq, s.durable), c.slot.fence)
	}
	s.absorb(c.slot)
	s.hold(c, h)
	return true
}

// delivered tells the observer of a slot that a message was handed out.
func (s *Shard) delivered(sl *slot, qd *queue.Delivery) {
	if sl.observer != nil {
		s.seen = *qd
		sl.observer.Delivered(s.now, &s.seen)
	}
}

// pending stands for the position that the step's own group will get.
const pending = ^journal.Position(0)

// hold queues a delivery behind those that already wait, or lets it out at once
// (invariant 3).
func (s *Shard) hold(c *Consumer, h held) {
	if len(c.held) == 0 && h.at <= s.durable && !h.drained {
		if c.out == nil {
			c.out = s.room(1)
		}
		c.out = append(c.out, h.d)
		s.ready(c)
		return
	}
	if n := len(c.held); n == 0 {
		s.holding = append(s.holding, c)
	} else {
		// It cannot leave before the one ahead of it. Saying so keeps the
		// positions ascending, and what is pending at the end.
		h.at = max(h.at, c.held[n-1].at)
	}
	c.held = append(c.held, h)
	s.step.awaited = s.step.awaited || h.at == pending
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
	safe := 0
	for safe < len(c.held) && c.held[safe].at <= s.durable {
		safe++
	}
	if c.out == nil && safe > 0 {
		c.out = s.room(safe)
	}
	for n := range safe {
		if h := &c.held[n]; h.drained {
			s.handOver(c)
			c.sink.Drained()
		} else {
			c.out = append(c.out, h.d)
		}
	}
	rest := copy(c.held, c.held[safe:])
	clear(c.held[rest:])
	c.held = c.held[:rest]
	if len(c.out) > 0 {
		s.ready(c)
	}
}

// hand gives the sinks what the step has for them.
func (s *Shard) hand() {
	if s.failed != nil {
		return
	}
	if !s.stuck { // else the group that some of it depends on has no position yet
		s.stamp()
	}
	if s.expired() { // since the step began
		return
	}
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

// room returns an empty slice for n deliveries, if there is one an old one.
func (s *Shard) room(n int) []Delivery {
	if old, ok := s.spare.Get().(*[]Delivery); ok && cap(*old) >= n {
		return *old
	}
	return make([]Delivery, 0, max(n, 8))
}

// Recycle takes back a slice that the consumer's sink was given and has no use for
// any more. It may be called from any goroutine.
func (c *Consumer) Recycle(ds []Delivery) {
	clear(ds) // the messages must not live on in it
	ds = ds[:0]
	c.shard.spare.Put(&ds)
}
