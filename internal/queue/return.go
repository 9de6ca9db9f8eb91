// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// Return stores a message again that was received and deleted, and did not reach its
// receiver. d is what Take returned; its Body, Reason and Saved are where the owner stores
// them now. The message gets its old sequence number, order time and position, and its
// delivery count is unchanged. A sequence number that is in use, or was never assigned,
// is ErrNotAllowed.
func (q *Queue) Return(now time.Time, d *Delivery, out *Effects) error {
	q.core.At(now)
	if d.Seq == 0 || d.Seq > q.core.Index.Entries.Last || q.core.Index.Entries.Get(d.Seq) != nil || q.core.Config.Sessions && !d.InSession {
		return ErrNotAllowed
	}
	it := itemOfDelivery(d)
	out.Begin(record.KindReturned)
	out.Fixed(it.OrderTime)
	out.Uint(uint64(d.Seq))
	record.WriteItem(&out.Effects, &it, it.OrderTime)
	out.End()
	q.core.Insert(d.Seq, &it, &out.Effects)
	if it.ArrivalTime != 0 {
		q.core.LogArrivalTimes(d.Seq, d.Seq, &out.Effects)
	}
	if d.Reason != (Ref{}) {
		q.core.Reasons.Put(d.Seq, d.Reason, &out.Effects)
		q.core.Log(&q.core.Reasons, d.Seq, d.Seq, &out.Effects)
	}
	if d.Saved != (Ref{}) {
		q.core.Saved.Put(d.Seq, d.Saved, &out.Effects)
		q.core.Log(&q.core.Saved, d.Seq, d.Seq, &out.Effects)
	}
	return nil
}

// ReturnFailed is Return of a message that its receiver can never accept: it counts a
// failed delivery, and at the limit the message becomes a dead letter.
func (q *Queue) ReturnFailed(now time.Time, d *Delivery, out *Effects) error {
	if q.core.Config.DeadLetterQueue {
		return q.Return(now, d, out)
	}
	failed := *d
	if failed.Failures < math.MaxUint32 {
		failed.Failures++
	}
	if q.core.Config.MaxFailures == 0 || failed.Failures < q.core.Config.MaxFailures {
		return q.Return(now, &failed, out)
	}
	out.DeadLettered = append(out.DeadLettered, tooManyFailures(failed)) // it is removed already
	return nil
}

// tooManyFailures returns a message that has failed too often as a dead letter.
func tooManyFailures(d Delivery) DeadLetter {
	return DeadLetter{Delivery: d, Reason: ReasonDeliveries,
		Description: fmt.Sprintf("Message could not be consumed after %d delivery attempts.", d.Failures)}
}

// itemOfDelivery is the inverse of Queue.delivery.
func itemOfDelivery(d *Delivery) record.Item {
	it := record.Item{
		GroupKey:  entries.GroupKey{Session: d.Session, InSession: d.InSession, Key: d.Key},
		Body:      d.Body,
		Origin:    d.Origin,
		OrderTime: entries.Nanos(d.EnqueuedAt),
		Failures:  d.Failures,
		Level:     d.Level,
		Class:     d.Class,
		Hops:      d.Hops,
	}
	if !d.OrderTime.IsZero() {
		it.ArrivalTime, it.OrderTime = it.OrderTime, entries.Nanos(d.OrderTime)
	}
	if !d.ExpiresAt.IsZero() {
		var e entries.Entry
		e.SetLife(time.Duration(entries.Nanos(d.ExpiresAt) - it.OrderTime))
		it.Life, it.LifeInSeconds = e.Life, e.Flags&entries.FlagSeconds
	}
	if d.State == Deferred {
		it.State = Deferred
	}
	return it
}

// DeadLetter makes a message a dead letter in any state. ErrLocked if it is locked and
// t is not its token; ErrNotFound; a dead-letter queue returns ErrNotAllowed.
func (q *Queue) DeadLetter(now time.Time, seq SeqNo, t Token, reason, description string, out *Effects) error {
	at := q.core.At(now)
	e := q.core.Index.Entries.Get(seq)
	switch {
	case q.core.Config.DeadLetterQueue:
		return ErrNotAllowed
	case e == nil:
		return ErrNotFound
	case e.Is(Locked):
		if locked, err := q.lockedEntry(t, at); err != nil || locked != e {
			return ErrLocked
		}
		q.deadLetter(seq, e, reason, description, out)
		return nil
	}
	out.DeadLettered = append(out.DeadLettered, DeadLetter{Delivery: q.delivery(seq, e), Reason: reason, Description: description})
	q.core.Remove(seq, e, &out.Effects)
	logRemoved(&out.Effects, seq)
	return nil
}
