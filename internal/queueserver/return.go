// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/queue"
)

// withdraw takes back everything that a consumer was to be given and that has not
// been handed to its sink.
func (s *Shard) withdraw(c *Consumer) {
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

// takeBack puts a message back to its place that was handed out and reached nobody.
func (s *Shard) takeBack(d *Delivery) {
	if d.forGood {
		s.restore(d, (*queue.Queue).Return)
	} else {
		s.unlock(d.from, &d.Delivery)
	}
}

// unlock ends the lock of a message that reached nobody. A lock that is lost
// already has brought it back by itself.
func (s *Shard) unlock(hq *hostedQueue, d *queue.Delivery) {
	if hq.q.Revoke(s.tx.Now(), d.Token) == nil {
		s.returned(hq, d)
	}
}

// withdrawExpired takes back what was to be delivered under locks that have run out, before
// the machine ends them: nobody has failed what nobody has got.
func (s *Shard) withdrawExpired(hq *hostedQueue) {
	ranOut := func(d *Delivery) bool {
		if d.forGood || d.from == nil || d.LockedUntil.After(s.tx.Now()) {
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

// takenBack says that n deliveries do not come. Others may come instead, unless a drain
// has voided that.
func (c *Consumer) takenBack(n uint64) {
	c.deliveredCount -= n
	c.drained = min(c.drained, c.deliveredCount)
	if c.void {
		c.limit -= n
	}
}

// giveBack is a way in which a queue takes back what was removed from it.
type giveBack func(*queue.Queue, time.Time, *queue.Delivery, *queue.Effects) error

// stranded is a message that cannot return, because its block was given up and the
// disk has no room for its body.
type stranded struct {
	d  Delivery
	by giveBack
}

// retryStranded tries again.
func (s *Shard) retryStranded() {
	again := s.stranded
	s.stranded = nil
	for i := range again {
		s.restore(&again[i].d, again[i].by)
	}
}

// restore undoes the removal of a message. Its body is where it was, unless that block was given up meanwhile.
func (s *Shard) restore(d *Delivery, by giveBack) {
	hq, qd := d.from, d.Delivery
	if hq.dropped() {
		return
	}
	if !s.tx.Retained(qd.Body) || qd.Reason != (queue.Ref{}) && !s.tx.Retained(qd.Reason) {
		ref, err := s.tx.StoreOne(d.msg.Bytes()) // with its reason, if it has one
		if err != nil {
			s.stranded = append(s.stranded, stranded{*d, by}) // until there is room
			return
		}
		qd.Body, qd.Reason = ref, queue.Ref{}
	}
	if err := by(hq.q, s.tx.Now(), &qd, s.out(hq)); err != nil {
		return // it is there
	}
	s.returned(hq, &qd)
	// Who gets it next must not be the only one who knows that it returned.
	hq.fence = engine.Pending
	if !hq.fenced {
		hq.fenced = true
		s.fenced = append(s.fenced, hq)
	}
	s.tx.MustCommit()
	s.collectEffects(hq)
	if qd.Reason == (queue.Ref{}) && !d.damaged { // what stands in for a body is not that body
		s.cache.Put(qd.Body, d.msg, 1)
	}
}

// returned tells the observer of a queue that a message is back in its place.
func (s *Shard) returned(hq *hostedQueue, d *queue.Delivery) {
	if o, ok := hq.observer.(TransitObserver); ok {
		s.seen = *d
		o.Returned(s.tx.Now(), &s.seen)
	}
}

// Return gives deliveries back that did not reach anybody: nothing counts against
// the messages, and those that were taken for good are in their place again. Each
// delivery may be given back once. It never blocks.
func Return(ds []Delivery) error { return post(ds, (*Shard).takeBack) }

// ReturnFailed gives deliveries back that their consumer cannot take, ever: that
// counts as a failed delivery. It never blocks.
func ReturnFailed(ds []Delivery) error {
	return post(ds, func(s *Shard, d *Delivery) {
		if d.forGood {
			s.restore(d, (*queue.Queue).ReturnFailed)
			return
		}
		_, _ = d.from.q.Abandon(s.tx.Now(), d.Token, s.out(d.from)) // a lock that is lost has failed already
	})
}

// TakeForGood removes messages that the caller holds locked and has loaded; resting
// is the state that they return to, if they are returned. done learns, on the
// shard's goroutine and when it is durable, which of them are removed: all but those
// whose lock was lost meanwhile. All are of one queue.
func TakeForGood(ds []Delivery, resting queue.State, done func(taken []Delivery, err error)) error {
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
			d.forGood, d.State, d.Token, d.LockedUntil = true, resting, queue.Token{}, time.Time{}
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
