// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// tickWork is how many messages a Tick visits. It bounds the time of a step when a
// million messages are due at the same time.
const tickWork = 256

// Tick does what is due: it ends locks and waits for a retry, removes expired messages and
// activates scheduled ones. It does a bounded amount of work and reports whether more is due at now.
func (q *Queue) Tick(now time.Time, out *Effects) (more bool) {
	return q.tick(now, q.fail, q.release, out)
}

// TickShort is Tick on a disk that has space for settlements only. Locks end as they do in a
// crash: no failed delivery is counted, which needs no record. The end of a durable lock is in
// the record of its beginning. What else it writes is part of Settling.
func (q *Queue) TickShort(now time.Time, out *Effects) (more bool) {
	return q.tick(now, q.endUncounted, q.endUncounted, out)
}

// endLock ends the lock of a message.
type endLock func(SeqNo, *entries.Entry, *Effects) Settled

// endUncounted is the endLock that counts no failed delivery.
func (q *Queue) endUncounted(seq SeqNo, e *entries.Entry, _ *Effects) Settled {
	s := q.unlock(seq, e)
	q.core.Requeue(seq, e)
	return s
}

func (q *Queue) tick(now time.Time, end, endRestored endLock, out *Effects) (more bool) {
	at := q.core.At(now)
	work := tickWork
	work -= q.endLocks(at, work, end, endRestored, out)
	work -= q.endRetries(at, work)
	work -= q.activate(at, work, out)
	q.expireMessages(at, work, out)
	q.core.Window.Forget(at, tickWork)
	q.core.Index.WakeKeys(at, tickWork)
	return q.core.Deadline() <= at
}

// endLocks requeues the messages whose locks expired. A lock that a replay has found, and
// nobody has renewed since, counts no failure: nobody could renew it while the broker was down.
func (q *Queue) endLocks(at int64, work int, end, endRestored endLock, out *Effects) (done int) {
	for done < work {
		slot, until := q.core.Locks.First()
		if slot == 0 || until > at {
			break
		}
		switch seq := q.core.Locks.All[slot].Seq; {
		case seq == 0:
			done += q.endSession(slot, work-done, end, out)
		case q.core.Locks.Restored(slot):
			endRestored(seq, q.core.Index.Entries.Get(seq), out)
		default:
			end(seq, q.core.Index.Entries.Get(seq), out)
		}
		done++
	}
	return done
}

// endRetries makes the messages ready whose time of retry has come.
func (q *Queue) endRetries(at int64, work int) (done int) {
	for done < work {
		seq, due := q.core.Retries.First()
		if due > at {
			break
		}
		e := q.core.Index.Entries.Get(seq)
		q.core.EndWait(e)
		q.core.MarkReady(seq, e)
		done++
	}
	return done
}

// activate replaces scheduled messages that are due by ready ones with new numbers.
func (q *Queue) activate(at int64, work int, out *Effects) (done int) {
	if _, due := q.core.Schedule.First(); due > at || work <= 0 {
		return 0
	}
	in := q.core.Stamp(at)
	q.core.LastIn = in
	out.Begin(record.KindActivate)
	out.Fixed(in)
	for done < work {
		old, due := q.core.Schedule.First()
		if due > at {
			break
		}
		it := q.core.ItemOf(q.core.Index.Entries.Get(old))
		it.State, it.NotBefore, it.OrderTime = Ready, 0, in
		if it.Life != 0 {
			it.OrderTime = min(in, q.core.StampExpiring(at))
		}
		out.Uint(uint64(old))
		record.WriteItem(&out.Effects, &it, in)
		q.core.Renumber(old, q.core.Index.Entries.Last+1, &it, &out.Effects)
		done++
	}
	out.End()
	return done
}

// expireMessages removes the messages that expired, page by page.
func (q *Queue) expireMessages(at int64, work int, out *Effects) {
	for work > 0 {
		page, due := q.core.Index.Entries.NextExpiry()
		if due > at {
			return
		}
		q.due = q.core.Index.Entries.Expired(page, at, q.due[:0])
		for _, seq := range q.due {
			q.expire(seq, q.core.Index.Entries.Get(seq), out)
		}
		work -= 1 + len(q.due)
	}
}
