// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// What the owner of several queues asks of one.

// Total is the number of messages in every state.
func (c Counts) Total() int64 { return c.Ready + c.Locked + c.Scheduled + c.Deferred }

// Last returns the highest number given out so far.
func (q *Queue) Last() SeqNo { return q.msgs.last }

// LastEnqueued returns the latest enqueue time given so far, in this life or an
// earlier one; zero if there is none.
func (q *Queue) LastEnqueued() time.Time { return moment(q.lastIn) }

// Refs calls fn for every body that the queue refers to, session states and the
// reasons of dead letters included: the owner is about to drop the whole queue.
func (q *Queue) Refs(fn func(Ref)) {
	for seq, e := q.msgs.next(0); e != nil; seq, e = q.msgs.next(seq + 1) {
		fn(e.body())
	}
	for _, reason := range q.reasons {
		fn(reason)
	}
	for i := range q.sessions.all {
		if state := q.sessions.all[i].state; state != (Ref{}) {
			fn(state)
		}
	}
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
