// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// Enqueue stores all messages of as, or none and an error. It writes their sequence
// numbers to seqs, which is as long as as; a duplicate is dropped and gets zero. The
// strings of as may be reused afterwards.
func (q *Queue) Enqueue(now time.Time, as []Arrival, seqs []SeqNo, out *Effects) error {
	at := q.core.At(now)
	in := q.core.Stamp(at)
	stored, err := q.admit(as, seqs, at, in)
	if err != nil || stored == 0 {
		return err
	}
	q.core.LastIn = in
	out.Begin(record.KindEnqueue)
	out.Fixed(in)
	out.Uint(uint64(q.core.Index.Entries.Last + 1))
	out.Uint(uint64(stored))
	ids, first, inherited, reasons := q.ids, q.core.Index.Entries.Last+1, false, false
	for i := range as {
		if seqs[i] == 0 {
			continue
		}
		it := q.itemFrom(&as[i], at, in)
		inherited = inherited || it.ArrivalTime != 0
		if q.core.Window.Applies(as[i].MessageID) {
			it.Hashed, it.ID, ids = true, ids[0], ids[1:]
			q.core.Window.Keep(it.ID, in)
		}
		record.WriteItem(&out.Effects, &it, in)
		seqs[i] = q.core.Index.Entries.Last + 1
		q.core.Insert(seqs[i], &it, &out.Effects)
		if as[i].Reason != (Ref{}) {
			q.core.Reasons.Put(seqs[i], as[i].Reason, &out.Effects)
			reasons = true
		}
	}
	out.End()
	if inherited {
		q.core.LogArrivalTimes(first, q.core.Index.Entries.Last, &out.Effects)
	}
	if reasons {
		q.core.Log(&q.core.Reasons, first, q.core.Index.Entries.Last, &out.Effects)
	}
	return nil
}

// admit decides whether the arrivals may be stored at time at, and which of them. It
// sets seqs to zero for a duplicate and to one for a message to store. The hashes of
// the ids of those to store that have one are in q.ids. Their enqueue time would be in.
func (q *Queue) admit(as []Arrival, seqs []SeqNo, at, in int64) (stored int, err error) {
	if q.core.Config.SendPaused {
		return 0, ErrSendPaused
	}
	q.core.Window.Forget(at, 2*len(as))
	q.ids = q.ids[:0]
	bytes := int64(0)
	for i := range as {
		if q.core.Config.Sessions && !as[i].InSession {
			err = ErrSessionRequired
		}
		seqs[i] = 1
		if q.core.Window.Applies(as[i].MessageID) {
			id := lease.HashID(as[i].MessageID)
			if q.core.Window.Seen(id, at) {
				seqs[i] = 0
				continue
			}
			q.core.Window.Reserve(id, in) // the same id again in this batch is a duplicate, too
			q.ids = append(q.ids, id)
		}
		stored++
		bytes += int64(as[i].Body.Size)
	}
	if err == nil && stored > 0 && !q.fits(int64(stored), bytes) {
		err = ErrFull
	}
	if err != nil {
		q.unreserve()
	}
	return stored, err
}

// unreserve undoes what admit did to the window.
func (q *Queue) unreserve() {
	for _, id := range q.ids {
		q.core.Window.Cancel(id)
	}
}

// fits reports whether the queue stays below its limits with so much more.
func (q *Queue) fits(count, bytes int64) bool {
	return (q.core.Config.MaxCount == 0 || q.Counts().Total()+count <= q.core.Config.MaxCount) &&
		(q.core.Config.MaxBytes == 0 || q.Footprint()+count*MessageOverhead+bytes <= q.core.Config.MaxBytes)
}

// itemFrom returns an arrival at time at as an item. Its enqueue time is in, unless the
// arrival has an older one.
func (q *Queue) itemFrom(a *Arrival, at, in int64) record.Item {
	life := q.lifeOf(a)
	if life > 0 {
		in = q.core.StampExpiring(at)
	}
	it := record.Item{
		GroupKey:  entries.GroupKey{Session: a.Session, InSession: a.InSession, Key: a.Key},
		Body:      a.Body,
		Origin:    a.Origin,
		OrderTime: in,
		Failures:  a.Failures,
		Level:     a.Level,
		Class:     a.Class,
		Hops:      a.Hops,
	}
	if !a.InSession {
		it.Session = ""
	}
	if !a.At.IsZero() {
		it.OrderTime = min(in, entries.Nanos(a.At))
	}
	if nb := entries.Nanos(a.NotBefore); nb > at {
		it.State, it.NotBefore = Scheduled, nb
	} else if since := entries.Nanos(a.OrderTime); since != 0 && since < it.OrderTime {
		it.ArrivalTime, it.OrderTime = it.OrderTime, since
	}
	if life > 0 {
		if it.State != Scheduled { // counted from now, not from an older arrival time
			life = entries.AddClamped(life, at-it.OrderTime)
		}
		var e entries.Entry
		e.SetLife(life)
		it.Life, it.LifeInSeconds = e.Life, e.Flags&entries.FlagSeconds
	}
	return it
}

// lifeOf returns the shorter time to live of sender and queue; zero is without limit.
func (q *Queue) lifeOf(a *Arrival) time.Duration {
	switch {
	case q.core.Config.DeadLetterQueue:
		return 0
	case a.TTL == 0:
		return q.core.Config.TTL
	case q.core.Config.TTL == 0:
		return a.TTL
	}
	return min(a.TTL, q.core.Config.TTL)
}

// Admit reports the error that Enqueue of as would return now, without storing
// anything: a message that goes to several queues is in all of them or in none.
// It moves those that Enqueue would store to the front of as and returns them;
// the others are duplicates.
func (q *Queue) Admit(now time.Time, as []Arrival) ([]Arrival, error) {
	q.seqs = append(q.seqs[:0], make([]SeqNo, len(as))...)
	at := q.core.At(now)
	stored, err := q.admit(as, q.seqs, at, q.core.Stamp(at))
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
