// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// A ReceiveAndDelete consumer gets a message when its body was read and its removal is
// durable. A body that cannot be read must not be removed. After a crash no message that
// a receiver has got may be delivered again.
//
//	body is cached      remove ────────────────────► held until durable ──► sink
//	body is on disk     lock ──► fetching ──► remove ──► held until durable ──► sink
//
// When the consumer is detached, messages on this way are returned: a lock is released, a
// removal undone by a record of its own. Only a crash between the removal and the sink
// loses the message: delivery is at most once.

// What a consumer may have in fetching at a time.
const (
	fetchWindow      = 64
	fetchWindowBytes = 4 << 20
)

// dispatchAndDelete takes one message for a ReceiveAndDelete consumer.
func (s *Shard) dispatchAndDelete(c *consumer) bool {
	if len(c.fetching) >= fetchWindow || c.fetchSize >= fetchWindowBytes {
		return false // it goes on when those are read
	}
	if c.queue.stranded > 0 {
		return false // it goes on when those have returned
	}
	cached := s.isCached
	if len(c.fetching) > 0 || c.queue.part != Main {
		cached = notCached // the order must stay; a dead letter may have a reason to be read
	}
	qd, ok := c.queue.q.TakeOrLock(s.tx.Now(), c.take, cached, s.out(c.queue))
	if !ok {
		s.collectEffects(c.queue) // it may have cleared away what had expired
		return false
	}
	c.deliveredCount++
	if qd.Token != (queue.Token{}) {
		c.fetching = append(c.fetching, &fetch{queue: c.queue, d: qd, taker: c})
		c.fetchSize += int(qd.Size())
		s.tx.Fetch(c.fetching[len(c.fetching)-1])
		if o, ok := c.queue.observer.(TransitObserver); ok {
			s.seen = qd
			o.Held(s.tx.Now(), &s.seen)
		}
		s.collectEffects(c.queue)
		return true
	}
	d := s.delivery(c.queue, qd) // before its last reference is dropped
	s.deliverRemoved(c, d)
	return true
}

func notCached(queue.Ref) bool { return false }

// deliverRemoved delivers a message that was just removed, when that is durable.
func (s *Shard) deliverRemoved(c *consumer, d Delivery) {
	d.removed = true
	s.delivered(c.queue, &d.Delivery)
	s.collectEffects(c.queue)
	s.queueDelivery(c, engine.Pending, d)
}

// fetched implements fetchTaker: messages go on in the order in which they were
// taken.
func (c *consumer) fetched(s *Shard, _ *fetch) {
	for len(c.fetching) > 0 && c.fetching[0].done {
		f := c.fetching[0]
		c.fetching[0] = nil
		c.fetching = c.fetching[1:]
		c.fetchSize -= int(f.d.Size())
		if !s.finishFetch(c, f) {
			c.deliveredCount-- // it takes another one instead
			c.queue.credits.offer(c)
		}
	}
	if !c.gone {
		s.touch(c.queue) // it may fetch more, and a drain may be done
	}
}

// finishFetch removes a message whose body was read, and reports whether it is on
// its way to the consumer.
func (s *Shard) finishFetch(c *consumer, f *fetch) bool {
	hq := c.queue
	now, ok := hq.q.Lookup(f.d.Seq)
	if !ok || !hq.q.LockValid(s.tx.Now(), f.d.Token) {
		s.unlock(hq, &f.d) // its session has ended, perhaps just now
		return false
	}
	if f.err != nil && hq.part != Main && !errors.Is(f.err, journal.ErrClosed) {
		f.msg, f.damaged, f.err = bodies.Placeholder(nil), true, nil
	}
	if f.err != nil {
		if errors.Is(f.err, journal.ErrClosed) || s.quarantine(hq, f.d.Seq, f.d.Token, f.err) != nil {
			s.unlock(hq, &f.d)
		}
		return false
	}
	d := Delivery{Delivery: f.d, msg: f.msg, from: hq, damaged: f.damaged}
	d.Token, d.LockedUntil, d.State = queue.Token{}, time.Time{}, queue.Ready // it has no lock
	d.Body, d.Reason, d.Saved = now.Body, now.Reason, now.Saved               // they may have been moved
	if _, err := hq.q.Complete(s.tx.Now(), f.d.Token, s.out(hq)); err != nil {
		return false
	}
	s.deliverRemoved(c, d)
	return true
}
