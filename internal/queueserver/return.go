// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// withdraw returns all deliveries to a consumer that its sink has not got.
func (s *Shard) withdraw(c *consumer) {
	for _, f := range c.fetching {
		s.unlock(c.queue, &f.d)
	}
	c.held.Withdraw(func(d *Delivery) bool {
		s.takeBack(d)
		s.tx.CommitIfFull()
		return true
	})
	c.held.Clear()
	c.fetching, c.fetchSize = nil, 0
	s.collectEffects(c.queue)
}

// takeBack returns a delivery that no receiver has got.
func (s *Shard) takeBack(d *Delivery) {
	if d.removed {
		s.restore(d, (*queue.Queue).Return)
	} else {
		s.unlock(d.from, &d.Delivery)
	}
}

// unlock ends the lock of a message that no receiver has got. If the lock is lost, the
// message has returned already.
func (s *Shard) unlock(hq *hostedQueue, d *queue.Delivery) {
	out := s.out(hq)
	written := out.Size()
	if hq.q.Revoke(s.tx.Now(), d.Token, out) != nil {
		return
	}
	if out.Size() > written { // the end of a durable lock: the next receiver waits for it
		s.setFence(hq)
	}
	s.returned(hq, d)
}

// withdrawExpired returns deliveries whose locks have expired and that no sink has got,
// before the machine ends the locks: that would count as a failure.
func (s *Shard) withdrawExpired(hq *hostedQueue) {
	ranOut := func(d *Delivery) bool {
		if d.removed || d.from == nil || d.LockedUntil.After(s.tx.Now()) {
			return false
		}
		s.takeBack(d)
		return true
	}
	for _, c := range hq.consumers {
		switch {
		case c.take.Session != (queue.SessionLock{}):
			if !hq.q.SessionLockValid(s.tx.Now(), c.take.Session) {
				s.withdraw(c) // and is about to end
			}
		case c.held.Waiting() > 0 || c.held.Ready() > 0:
			c.takenBack(uint64(c.held.Withdraw(ranOut)))
		}
	}
}

// takenBack notes that n deliveries were returned. Others may be delivered in their
// place, unless a drain has voided the limit.
func (c *consumer) takenBack(n uint64) {
	c.deliveredCount -= n
	c.drained = min(c.drained, c.deliveredCount)
	if c.void {
		c.limit -= n
	}
	c.queue.credits.offer(c)
}

// giveBack is a method of a queue that restores a removed message.
type giveBack func(*queue.Queue, time.Time, *queue.Delivery, *queue.Effects) error

// stranded is a removed message that cannot return, because the disk has no space for the
// record of that; or the journal has freed its block, and there is none for its body. While a
// queue has some, nobody receives and deletes more of it.
type stranded struct {
	d  Delivery
	by giveBack
}

// retryStranded tries again to return them.
func (s *Shard) retryStranded() {
	again := s.stranded
	s.stranded = nil
	for i := range again {
		if hq := again[i].d.from; !hq.dropped() {
			hq.stranded--
			s.touch(hq)
		}
		s.restore(&again[i].d, again[i].by)
	}
}

// strand keeps a message that cannot return.
func (s *Shard) strand(d *Delivery, by giveBack) {
	d.from.stranded++
	s.stranded = append(s.stranded, stranded{*d, by})
}

// setFence has the next deliveries of the queue wait until what the step has done is
// durable.
func (s *Shard) setFence(hq *hostedQueue) {
	hq.fence = engine.Pending
	if !hq.fenced {
		hq.fenced = true
		s.fenced = append(s.fenced, hq)
	}
}

// restore undoes the removal of a message. Its body is where it was, unless the journal
// has freed that block.
func (s *Shard) restore(d *Delivery, by giveBack) {
	hq, qd := d.from, d.Delivery
	if hq.dropped() {
		return
	}
	if !s.stopping && !s.tx.HasSpace(perFailure+len(d.Session)+len(d.Key)) {
		s.strand(d, by) // what settling it takes is for others by now
		return
	}
	if !s.retained(&qd) {
		ref, err := s.tx.StoreOne(d.msg.Bytes()) // with what was beside it
		if err != nil {
			s.strand(d, by)
			return
		}
		qd.Body, qd.Reason, qd.Saved = ref, queue.Ref{}, queue.Ref{}
	}
	if err := by(hq.q, s.tx.Now(), &qd, s.out(hq)); err != nil {
		return // the queue has it
	}
	s.returned(hq, &qd)
	s.setFence(hq)
	s.tx.MustCommit()
	s.collectEffects(hq)
	if bodies.Alone(&qd) && !d.damaged { // a placeholder is not the body
		s.cache.Put(qd.Body, d.msg, 1)
	}
}

// retained reports whether the journal still has the body of a message that was removed, and
// what was beside it.
func (s *Shard) retained(d *queue.Delivery) bool {
	for _, r := range []queue.Ref{d.Body, d.Reason, d.Saved} {
		if r != (queue.Ref{}) && !s.tx.Retained(r) {
			return false
		}
	}
	return true
}

// returned tells the observer of a queue that a message is ready again.
func (s *Shard) returned(hq *hostedQueue, d *queue.Delivery) {
	if o, ok := hq.observer.(TransitObserver); ok {
		s.seen = *d
		o.Returned(s.tx.Now(), &s.seen)
	}
}

// Return returns deliveries that no receiver has got. They do not count as failed, and
// removed messages are restored. Each delivery may be returned once. It never blocks.
func Return(ds []Delivery) error { return post(ds, (*Shard).takeBack) }

// ReturnFailed returns deliveries that their consumer can never take. They count as
// failed; on a disk that has space for settlements only they stay locked instead, until
// their locks end. It never blocks.
func ReturnFailed(ds []Delivery) error {
	return post(ds, func(s *Shard, d *Delivery) {
		if d.removed {
			s.restore(d, (*queue.Queue).ReturnFailed)
			return
		}
		if !s.tx.HasSpace(perFailure) {
			return // the lock ends by itself, and does not count
		}
		_, _ = d.from.q.Abandon(s.tx.Now(), d.Token, s.out(d.from)) // a lock that is lost has failed already
	})
}

// RemoveLocked removes messages of one queue that the caller has locked and loaded.
// unlocked is the state that they have if they are returned. done gets those that are
// removed, on the shard's goroutine and when that is durable. Messages whose lock was
// lost are not among them.
func RemoveLocked(ds []Delivery, unlocked queue.State, done func(taken []Delivery, err error)) error {
	hq := ds[0].from
	x := &Settle{ID: hq.entity.ID, SubQueue: hq.part, Disposition: Complete}
	for i := range ds {
		x.Tokens = append(x.Tokens, ds[i].Token)
	}
	x.Done = func(errs []error) {
		var taken []Delivery
		var failed error
		for i := range ds {
			if errs != nil && errs[i] != nil {
				failed = errs[i]
				continue
			}
			d := ds[i]
			d.removed, d.State, d.Token, d.LockedUntil = true, unlocked, queue.Token{}, time.Time{}
			taken = append(taken, d)
		}
		done(taken, failed)
	}
	return hq.shard.Settle(x)
}

// post has do run for each delivery on the goroutine of its shard.
func post(ds []Delivery, do func(*Shard, *Delivery)) error {
	var err error
	for from := 0; from < len(ds); {
		to := from + 1
		for to < len(ds) && ds[to].from == ds[from].from {
			to++
		}
		part, hq := slices.Clone(ds[from:to]), ds[from].from
		from = to
		if hq == nil {
			continue
		}
		e := hq.shard.push(&task{do: func(s *Shard) error {
			if hq.dropped() {
				return nil
			}
			for i := range part {
				do(s, &part[i])
				if i%few == few-1 {
					s.collectEffects(hq)
					s.tx.CommitIfFull()
				}
			}
			s.collectEffects(hq)
			return nil
		}, done: func(error) {}})
		if e != nil {
			err = e
		}
	}
	return err
}
