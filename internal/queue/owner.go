// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// What the owner of several queues asks of one.

// Total is the number of messages in every state.
func (c Counts) Total() int64 { return c.Ready + c.Locked + c.Scheduled + c.Deferred }

// Last returns the highest number given out so far.
func (q *Queue) Last() SeqNo { return q.index.Entries.Last }

// Latest implements [machine.Machine]: the latest enqueue time given so far.
func (q *Queue) Latest() time.Time { return entries.Moment(q.lastIn) }

// inSessions marks a cursor of Refs that has come to the states of sessions.
const inSessions machine.Cursor = 1 << 63

// Refs implements [machine.Machine]: the bodies of messages and the reasons of dead
// letters, then the states of sessions.
func (q *Queue) Refs(from machine.Cursor, b *machine.Budget, fn func(Ref)) (next machine.Cursor, done bool) {
	for ; from < inSessions; b.Items-- {
		if b.Items <= 0 {
			return from, false
		}
		seq, e := q.index.Entries.Next(SeqNo(from))
		if e == nil {
			from = inSessions
			break
		}
		fn(e.Body())
		if reason, ok := q.reasons[seq]; ok {
			fn(reason)
		}
		from = machine.Cursor(seq) + 1
	}
	for ; int(from-inSessions) < len(q.sessions.All); from, b.Items = from+1, b.Items-1 {
		if b.Items <= 0 {
			return from, false
		}
		if state := q.sessions.All[from-inSessions].State; state != (Ref{}) {
			fn(state)
		}
	}
	return from, b.Items > 0
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
