// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"
)

// What the owner of several queues asks of one.

// Total is the number of messages in every state.
func (c Counts) Total() int64 { return c.Ready + c.Locked + c.Scheduled + c.Deferred }

// Last returns the highest number given out so far.
func (q *Queue) Last() SeqNo { return q.index.msgs.last }

// LastEnqueued returns the latest enqueue time given so far, in this life or an
// earlier one; zero if there is none.
func (q *Queue) LastEnqueued() time.Time { return moment(q.lastIn) }

// Refs calls fn for every body that the queue refers to, session states and the
// reasons of dead letters included. It visits every message: for tests, and for the
// owner after a replay.
func (q *Queue) Refs(fn func(Ref)) { q.RefsFrom(RefCursor{}, math.MaxInt, fn) }

// RefCursor is how far RefsFrom has come. The zero value is the beginning.
type RefCursor struct {
	seq     SeqNo
	session int
}

// RefsFrom is Refs in steps, each of which visits up to most messages and sessions,
// for an owner that has dropped the queue: nothing may change in between.
func (q *Queue) RefsFrom(c RefCursor, most int, fn func(Ref)) (next RefCursor, done bool) {
	for ; most > 0; most-- {
		seq, e := q.index.msgs.next(c.seq)
		if e == nil {
			break
		}
		fn(e.body())
		if reason, ok := q.reasons[seq]; ok {
			fn(reason)
		}
		c.seq = seq + 1
	}
	for ; most > 0 && c.session < len(q.sessions.all); most-- {
		if state := q.sessions.all[c.session].state; state != (Ref{}) {
			fn(state)
		}
		c.session++
	}
	return c, most > 0
}

// Admit reports the error that Enqueue of as would return now, without storing
// anything: a message that goes to several queues is in all of them or in none.
// It moves those that Enqueue would store to the front of as and returns them;
// the others are duplicates.
func (q *Queue) Admit(now time.Time, as []Arrival) ([]Arrival, error) {
	q.seqs = append(q.seqs[:0], make([]SeqNo, len(as))...)
	stored, err := q.admit(as, q.seqs, max(q.at(now), q.lastIn))
	if err != nil {
		return nil, err
	}
	q.unreserve()
	if stored == len(as) {
		return as, nil
	}
	n := 0
	for i := range as {
		if q.seqs[i] != 0 {
			as[n] = as[i]
			n++
		}
	}
	return as[:n], nil
}
