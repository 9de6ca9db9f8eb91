// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// What the owner of several queues asks of one.

// Total is the number of messages in every state.
func (c Counts) Total() int64 { return c.Ready + c.Locked + c.Scheduled + c.Deferred }

// Last returns the highest number given out so far.
func (q *Queue) Last() SeqNo { panic("queue: Last is to be written by the author of this room") }

// Refs calls fn for every body that the queue refers to, session states included:
// the owner is about to drop the whole queue.
func (q *Queue) Refs(fn func(Ref)) { panic("queue: Refs is to be written by the author of this room") }

// Admit reports the error that Enqueue of as would return now, without storing
// anything: a message that goes to several queues is in all of them or in none.
func (q *Queue) Admit(now time.Time, as []Arrival) error {
	panic("queue: Admit is to be written by the author of this room")
}
