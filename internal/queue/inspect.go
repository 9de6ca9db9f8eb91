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

// First returns the message that Take would hand out next.
func (q *Queue) First(now time.Time, w Want) (Delivery, bool) {
	at := q.at(now)
	if q.cfg.ReceivePaused {
		return Delivery{}, false
	}
	k, e, ok := q.best(at, w)
	if !ok {
		return Delivery{}, false
	}
	return q.delivery(k.seq, e), true
}

// Precedes reports whether a ready message goes before one that is locked by t,
// should that come back. It is false if the token is not valid any more.
func (q *Queue) Precedes(now time.Time, ready SeqNo, t Token) bool {
	at := q.at(now)
	held, err := q.held(t, at)
	e := q.msgs.get(ready)
	if err != nil || e == nil {
		return false
	}
	x, _ := q.levels.picker.score(e.level, key{e.enqueued, ready}, at)
	y, _ := q.levels.picker.score(held.level, key{held.enqueued, t.Seq}, at)
	return x.before(y)
}

// Started returns the fair keys that were started and are not finished, in the order
// in which they were.
func (q *Queue) Started() []string {
	var names []string
	for _, k := range q.startedKeys() {
		names = append(names, k.name)
	}
	return names
}

// Holds reports whether a token is valid.
func (q *Queue) Holds(now time.Time, t Token) bool {
	_, err := q.held(t, q.at(now))
	return err == nil
}

// HeldLevel returns the level of the message that a token holds, if it is valid.
func (q *Queue) HeldLevel(now time.Time, t Token) (Level, bool) {
	e, err := q.held(t, q.at(now))
	if err != nil {
		return 0, false
	}
	return e.level, true
}

// LevelStat tells about the ready messages of one level or class.
type LevelStat struct {
	Ready  int64
	Bytes  int64     // of their bodies
	Oldest time.Time // enqueue time of the oldest that may be handed out
}

// Levels yields the levels that have ready messages, the highest first. In a
// queue of sessions Oldest leaves out the sessions that are locked.
func (q *Queue) Levels() iter.Seq2[Level, LevelStat] {
	return func(yield func(Level, LevelStat) bool) {
		for l := len(q.byLevel) - 1; l >= 0; l-- {
			lv := &q.byLevel[l]
			if lv.ready == 0 {
				continue
			}
			st := LevelStat{Ready: lv.ready, Bytes: lv.bytes}
			if k, ok := q.levels.at(q, Level(l)).eldest(q); ok {
				st.Oldest = moment(q.enqueuedAt(k.seq, q.msgs.get(k.seq)))
			}
			if !yield(Level(l), st) {
				return
			}
		}
	}
}

// LevelCount returns how many messages of a level are ready.
func (q *Queue) LevelCount(l Level) int64 {
	if int(l) >= len(q.byLevel) {
		return 0
	}
	return q.byLevel[l].ready
}

// ReadyFrom returns how many messages are ready at a level or above it, and their
// bytes.
func (q *Queue) ReadyFrom(l Level) (count, bytes int64) {
	for i := int(l); i < len(q.byLevel); i++ {
		count += q.byLevel[i].ready
		bytes += q.byLevel[i].bytes
	}
	return count, bytes
}

// ReadyOf returns how many messages of a class are ready, and their bytes.
func (q *Queue) ReadyOf(c Class) (count, bytes int64) {
	if int(c) >= len(q.classes) {
		return 0, 0
	}
	return q.classes[c].ready, q.classes[c].bytes
}

// OldestOf yields the ready messages of a class, the lowest number first. It goes
// on from where it found the first one the last time, so that to ask again and
// again for the oldest takes one walk over the queue in all.
func (q *Queue) OldestOf(c Class) iter.Seq2[SeqNo, Ref] {
	return func(yield func(SeqNo, Ref) bool) {
		if int(c) >= len(q.classes) || q.classes[c].ready == 0 {
			return
		}
		q.oldestOf(c)
		left := q.classes[c].ready
		for seq, e := q.msgs.next(q.classes[c].from); e != nil && left > 0; seq, e = q.msgs.next(seq + 1) {
			if !e.is(Ready) || e.class != c {
				continue
			}
			left--
			if !yield(seq, e.body()) {
				return
			}
		}
	}
}

// classStat counts the ready messages of a class.
type classStat struct {
	ready int64
	bytes int64 // of their bodies
	from  SeqNo // none of them has a lower number
}

// countClass counts one more ready message.
func countClass(cs []classStat, seq SeqNo, e *entry) []classStat {
	for int(e.class) >= len(cs) {
		cs = append(cs, classStat{})
	}
	st := &cs[e.class]
	if st.ready == 0 || seq < st.from {
		st.from = seq
	}
	st.ready++
	st.bytes += int64(e.bodySize)
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
			st := LevelStat{Ready: q.classes[c].ready, Bytes: q.classes[c].bytes, Oldest: q.oldestOf(Class(c))}
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
			return moment(q.enqueuedAt(seq, e))
		}
	}
	return time.Time{}
}
