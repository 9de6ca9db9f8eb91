// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"iter"
	"time"
)

// Peek returns up to max messages in all states, by number, the first not below
// from. Expired ones are left out. A session narrows it to that session.
func (q *Queue) Peek(now time.Time, from SeqNo, max int, session *string) []Delivery {
	at := q.at(now)
	var ds []Delivery
	for seq, e := q.msgs.next(from); e != nil && len(ds) < max; seq, e = q.msgs.next(seq + 1) {
		if q.inSession(e, session) && !(e.is(Ready) && e.expiry() <= at) {
			ds = append(ds, q.delivery(seq, e))
		}
	}
	return ds
}

// Lookup returns one message in any state.
func (q *Queue) Lookup(seq SeqNo) (Delivery, bool) {
	e := q.msgs.get(seq)
	if e == nil {
		return Delivery{}, false
	}
	return q.delivery(seq, e), true
}

// LevelStat tells about the ready messages of one level or class.
type LevelStat struct {
	Ready  int64
	Oldest time.Time // enqueue time of the oldest that may be handed out
}

// Levels yields the levels that have ready messages, the highest first. In a
// queue of sessions Oldest is that of the first messages of free sessions.
func (q *Queue) Levels() iter.Seq2[Level, LevelStat] {
	return func(yield func(Level, LevelStat) bool) {
		for l := len(q.levels.all) - 1; l >= 0; l-- {
			lv := &q.levels.all[l]
			if lv.ready == 0 {
				continue
			}
			st := LevelStat{Ready: lv.ready}
			if k, ok := lv.lane.eldest(q); ok {
				st.Oldest = moment(k.at)
			}
			if !yield(Level(l), st) {
				return
			}
		}
	}
}

// LevelCount returns how many messages of a level are ready.
func (q *Queue) LevelCount(l Level) int64 {
	if int(l) >= len(q.levels.all) {
		return 0
	}
	return q.levels.all[l].ready
}

// classStat counts the ready messages of a class.
type classStat struct {
	ready int64
	from  SeqNo // none of them has a lower number
}

// countClass counts one more ready message.
func countClass(cs []classStat, c Class, seq SeqNo) []classStat {
	for int(c) >= len(cs) {
		cs = append(cs, classStat{})
	}
	st := &cs[c]
	if st.ready == 0 || seq < st.from {
		st.from = seq
	}
	st.ready++
	return cs
}

// Classes yields the classes that have ready messages, the lowest number first.
// Oldest is the enqueue time of the lowest number.
func (q *Queue) Classes() iter.Seq2[Class, LevelStat] {
	return func(yield func(Class, LevelStat) bool) {
		for c := range q.classes {
			if q.classes[c].ready == 0 {
				continue
			}
			st := LevelStat{Ready: q.classes[c].ready, Oldest: q.oldestOf(Class(c))}
			if !yield(Class(c), st) {
				return
			}
		}
	}
}

// oldestOf finds the lowest number of a class and remembers it, so that the next
// call goes on from there.
func (q *Queue) oldestOf(c Class) time.Time {
	seq, e := q.msgs.next(q.classes[c].from)
	for ; e != nil; seq, e = q.msgs.next(seq + 1) {
		if e.is(Ready) && e.class == c {
			q.classes[c].from = seq
			return moment(e.enqueued)
		}
	}
	return time.Time{}
}
