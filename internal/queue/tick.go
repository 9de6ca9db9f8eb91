// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// tickWork is how many messages a Tick touches, so that a million that are due
// at the same moment do not stop everything else.
const tickWork = 256

// Tick does what is due: locks and lives that end, schedules that begin. It
// does a bounded amount of work and reports whether more is due at now.
func (q *Queue) Tick(now time.Time, out *Effects) (more bool) {
	at := q.at(now)
	work := tickWork
	work -= q.endLocks(at, work, out)
	work -= q.activate(at, work, out)
	q.expireMessages(at, work, out)
	q.window.Forget(at, tickWork)
	q.index.WakeKeys(at, tickWork)
	return q.deadline() <= at
}

// NextDeadline implements [machine.Machine]: when Tick has work next.
func (q *Queue) NextDeadline() (time.Time, bool) {
	d := q.deadline()
	return entries.Moment(d), d != entries.Never
}

func (q *Queue) deadline() int64 {
	_, lock := q.locks.First()
	_, begin := q.schedule.First()
	_, end := q.index.Entries.NextExpiry()
	return min(lock, begin, end, q.window.Deadline(), q.index.Deadline())
}

// endLocks returns the messages whose locks ran out.
func (q *Queue) endLocks(at int64, work int, out *Effects) (done int) {
	for done < work {
		slot, until := q.locks.First()
		if slot == 0 || until > at {
			break
		}
		if seq := q.locks.All[slot].Seq; seq != 0 {
			q.fail(seq, q.index.Entries.Get(seq), out)
		} else {
			done += q.endSession(slot, work-done, out)
		}
		done++
	}
	return done
}

// activate turns scheduled messages that are due into new ones at the end.
func (q *Queue) activate(at int64, work int, out *Effects) (done int) {
	if _, due := q.schedule.First(); due > at || work <= 0 {
		return 0
	}
	in := max(at, q.lastIn)
	q.lastIn = in
	out.Begin(record.KindActivate)
	out.Fixed(in)
	for done < work {
		old, due := q.schedule.First()
		if due > at {
			break
		}
		it := q.itemOf(q.index.Entries.Get(old))
		it.State, it.NotBefore, it.OrderTime = Ready, 0, in
		out.Uint(uint64(old))
		record.WriteItem(&out.Effects, &it, in)
		q.renumber(old, q.index.Entries.Last+1, &it, &out.Effects)
		done++
	}
	out.End()
	return done
}

// renumber replaces a scheduled message by a ready one.
func (q *Queue) renumber(old, seq SeqNo, it *record.Item, out *machine.Effects) {
	q.insert(seq, it, out) // first, so that its group lives on
	q.remove(old, q.index.Entries.Get(old), out)
}

// expireMessages removes the messages that expired, page by page.
func (q *Queue) expireMessages(at int64, work int, out *Effects) {
	for work > 0 {
		page, due := q.index.Entries.NextExpiry()
		if due > at {
			return
		}
		q.due = q.index.Entries.Expired(page, at, q.due[:0])
		for _, seq := range q.due {
			q.expire(seq, q.index.Entries.Get(seq), out)
		}
		work -= 1 + len(q.due)
	}
}
