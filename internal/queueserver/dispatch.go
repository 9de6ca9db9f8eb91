// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// dispatch delivers messages of every queue in which something changed, up to
// DispatchStep. The other queues follow in the next step, before those that were
// dispatched in this one.
func (s *Shard) dispatch() {
	i, undone := 0, 0
	for ; i < len(s.dirty) && s.dispatchLeft > 0 && !s.tx.Stuck(); i++ { // dispatching may make more queues dirty
		hq := s.dirty[i]
		s.weighLater(hq)
		s.grantSessions(hq)
		if !s.dispatchQueue(hq) {
			s.dirty[undone] = hq
			undone++
			continue
		}
		hq.dirty = false
		s.schedule(hq)
	}
	s.dirty = append(s.dirty, s.dirty[:undone]...)
	left := copy(s.dirty, s.dirty[i:])
	for _, hq := range s.dirty[:left] {
		s.schedule(hq) // what falls due does so before it is dispatched
	}
	clear(s.dirty[left:])
	s.dirty = s.dirty[:left]
}

// schedule notes when the queue has something to do by itself.
func (s *Shard) schedule(hq *hostedQueue) {
	if _, ok := s.entities[hq.entity.ID]; ok {
		s.tx.Schedule(&hq.unit)
	}
}

// clearings is how many consumers of a queue may find, in one step, nothing but
// messages that have expired, which they clear away.
const clearings = 16

// dispatchQueue delivers messages to the consumers in turns, until no message is ready
// or no consumer has credit. It returns false if the step has to end before that.
func (s *Shard) dispatchQueue(hq *hostedQueue) (done bool) {
	cleared := 0
	for more := true; more; {
		for {
			if s.tx.CommitIfFull(); s.tx.Stuck() || s.dispatchLeft <= 0 || cleared >= clearings {
				return false
			}
			if hq.refused >= len(hq.credits.consumers) {
				break
			}
			c := hq.credits.next()
			if c == nil {
				break
			}
			written, refused := s.eff.Size(), hq.refused
			if s.dispatchOne(c) {
				s.dispatchLeft--
				hq.refused = 0
				continue
			}
			s.look()
			hq.refused = refused + 1 // what a refusal itself has touched does not count
			if s.eff.Size() > written {
				cleared++
			} else if c.speaksForAll() {
				hq.credits.back(hq.refused)
				break
			}
		}
		hq.refused = 0
		more = s.endDrains(hq)
	}
	s.recall(hq)
	return true
}

// endDrains ends the drains of a queue that has nothing more to deliver. It reports whether a
// consumer has credit again.
func (s *Shard) endDrains(hq *hostedQueue) (more bool) {
	left := hq.drains[:0]
	for _, c := range hq.drains {
		if c.draining && !c.gone && len(c.fetching) == 0 { // else there may be more to deliver
			more = s.drained(c) || more
		}
		if c.draining && !c.gone {
			left = append(left, c)
		}
	}
	clear(hq.drains[len(left):])
	hq.drains = left
	return more
}

// drained ends a drain. It reports whether the consumer got a new limit, or another
// drain, while this one waited for bodies.
func (s *Shard) drained(c *consumer) (more bool) {
	c.limit, c.void = c.deliveredCount, true
	if o, ok := c.queue.observer.(IdleObserver); ok && c.deliveredCount == c.drained && !c.probing {
		o.Idle(s.tx.Now())
	}
	c.drained = c.deliveredCount
	if c.held.Waiting() == 0 {
		s.consumersPending = append(s.consumersPending, c)
	}
	c.held.Mark(s.tx)
	more = c.next != nil || c.again
	if c.next != nil {
		c.limit, c.void, c.next = *c.next, false, nil
		c.queue.credits.offer(c)
	}
	c.draining, c.again = c.again, false
	return more
}

// takeOf returns what the consumer takes. If there is no space to log a lock it is volatile:
// what settling everything takes is not for that.
func (s *Shard) takeOf(c *consumer) queue.TakeOptions {
	w := c.take
	w.DurableLock = w.DurableLock && s.tx.HasSpace(perRenewal)
	return w
}

// dispatchOne takes one message for the consumer.
func (s *Shard) dispatchOne(c *consumer) bool {
	if c.take.ReceiveAndDelete {
		return s.dispatchAndDelete(c)
	}
	before := s.eff.Size()
	qd, ok := c.queue.q.Take(s.tx.Now(), s.takeOf(c), s.out(c.queue))
	if !ok {
		s.collectEffects(c.queue) // it may have cleared away what had expired
		return false
	}
	c.deliveredCount++
	if c.recaller != nil {
		c.outstanding.Add(c.queue.q, s.tx.Now(), &qd)
		c.queue.noteRecallable(c)
	}
	s.delivered(c.queue, &qd)
	d, at := s.delivery(c.queue, qd), engine.Pending
	switch {
	case s.eff.Size() > before:
		// Its key is started by it, and stays so after a crash if it was seen. To
		// have cleared away what had expired leaves records, too, and is as rare.
	case qd.Failures > 0 || c.queue.part != Main || qd.Saved != (queue.Ref{}):
		// It may have changed and come back. Failures and a saved state show that, but
		// failures of dead letters are not counted.
	default:
		if arrival, ok := c.queue.arrivals.Position(qd.Seq, s.tx.Durable()); ok {
			at = max(arrival, c.queue.fence)
		}
	}
	s.collectEffects(c.queue)
	s.queueDelivery(c, at, d)
	return true
}

// delivered tells the observer of a queue that a message was delivered.
func (s *Shard) delivered(hq *hostedQueue, qd *queue.Delivery) {
	if hq.observer != nil {
		s.seen = *qd
		hq.observer.Delivered(s.tx.Now(), &s.seen)
	}
}

// queueDelivery queues a delivery behind those that already wait, until what it depends on is
// durable (invariant 1).
func (s *Shard) queueDelivery(c *consumer, at journal.Position, d Delivery) {
	if !c.held.Buffered() && at <= s.tx.Durable() {
		c.held.Reuse(s.deliverySlice(1))
	}
	waiting := c.held.Waiting()
	switch {
	case c.held.Hold(s.tx, at, d):
		s.markReady(c)
	case waiting == 0:
		s.consumersPending = append(s.consumersPending, c)
	}
}

// markReady has the deliveries of the consumer released when the step ends.
func (s *Shard) markReady(c *consumer) {
	if n := len(s.consumersReady); n == 0 || s.consumersReady[n-1] != c {
		s.consumersReady = append(s.consumersReady, c)
	}
}

// advance makes ready what has become durable.
func (s *Shard) advance(p engine.Permit) {
	for _, c := range s.consumersPending {
		for c.held.Advance(p, s.alloc) {
			s.handOver(c, p)
			c.sink.Drained()
		}
		if c.held.Ready() > 0 {
			s.markReady(c)
		}
	}
	s.consumersPending = slices.DeleteFunc(s.consumersPending, func(c *consumer) bool { return c.held.Waiting() == 0 })
}

// release gives the sinks the deliveries of the step.
func (s *Shard) release(p engine.Permit) {
	s.advance(p)
	for _, c := range s.consumersReady {
		s.handOver(c, p)
	}
	clear(s.consumersReady)
	s.consumersReady = s.consumersReady[:0]
}

func (s *Shard) handOver(c *consumer, p engine.Permit) {
	if c.held.Ready() > 0 && !c.gone {
		c.sink.Deliver(c.held.Release(p)) // the sink keeps it
	}
}

// deliverySlice returns an empty slice for n deliveries, a recycled one if there is one.
func (s *Shard) deliverySlice(n int) []Delivery {
	if old, ok := s.spare.Get().(*[]Delivery); ok && cap(*old) >= n {
		return *old
	}
	return make([]Delivery, 0, max(n, 8))
}

// Recycle takes back a slice that a sink got with Deliver and does not use any more. It
// may be called from any goroutine.
func (s *Shard) Recycle(ds []Delivery) {
	clear(ds) // the messages must not live on in it
	ds = ds[:0]
	s.spare.Put(&ds)
}
