// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"iter"
	"time"
)

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
	x, _ := q.levels.picker.score(e.level, orderKey{e.enqueued, ready}, at)
	y, _ := q.levels.picker.score(held.level, orderKey{held.enqueued, t.Seq}, at)
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

// Survey finds out about the levels that have ready messages, in steps: where keys
// take turns, the oldest message of a level may be that of any key.
type Survey struct {
	// Levels are known when the survey is done. In a queue of sessions Oldest leaves
	// out the sessions that are locked.
	Levels map[Level]LevelStat

	key    int    // fair key to look at next
	counts uint64 // keys.counts when it began
	oldest map[Level]orderKey
}

// Survey goes on with a survey, which begins as its zero value. It visits up to most
// fair keys and reports whether it has come to the end.
func (q *Queue) Survey(s *Survey, most int) (done bool) {
	if q.order.Fair {
		if s.oldest == nil || s.counts != q.keys.counts {
			*s = Survey{counts: q.keys.counts, oldest: make(map[Level]orderKey)}
		}
		for ; most > 0 && s.key < len(q.keys.all); most-- {
			q.msgs.visits++
			for _, l := range q.keys.all[s.key].lines {
				if !l.enlisted {
					continue
				}
				k, _ := l.sortedList.first(&q.msgs)
				if o, ok := s.oldest[l.level]; !ok || k.before(o) {
					s.oldest[l.level] = k
				}
			}
			s.key++
		}
		if s.key < len(q.keys.all) {
			return false
		}
	}
	s.Levels = make(map[Level]LevelStat)
	for l := range q.byLevel {
		lv := &q.byLevel[l]
		if lv.ready == 0 {
			continue
		}
		st := LevelStat{Ready: lv.ready, Bytes: lv.bytes}
		k, ok := s.oldest[Level(l)]
		if p, plain := q.levels.at(q, Level(l)).(*plainLane); plain {
			k, ok = p.line.first(&q.msgs)
		}
		if e := q.msgs.get(k.seq); ok && e != nil { // else it went while others were visited
			st.Oldest = moment(q.enqueuedAt(k.seq, e))
		}
		s.Levels[Level(l)] = st
	}
	return true
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

// OldestOf yields the ready messages of a class, the lowest number first, as far as it
// finds them by visiting a bounded number of others. It goes on from where the first
// one was the last time, so that to ask again and again finds all of them.
func (q *Queue) OldestOf(c Class) iter.Seq2[SeqNo, Ref] {
	return func(yield func(SeqNo, Ref) bool) {
		if int(c) >= len(q.classes) || q.classes[c].ready == 0 {
			return
		}
		most := oldestWork
		if most -= q.seekOldest(c, most); most <= 0 {
			return
		}
		left := q.classes[c].ready
		for seq, e := q.msgs.next(q.classes[c].from); e != nil && left > 0 && most > 0; seq, e = q.msgs.next(seq + 1) {
			most--
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

// oldestWork is how many messages OldestOf visits.
const oldestWork = 10_000

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
// Oldest is the enqueue time of the lowest number; it is zero for a class whose oldest
// message SeekOldest has not found yet.
func (q *Queue) Classes() iter.Seq2[Class, LevelStat] {
	return func(yield func(Class, LevelStat) bool) {
		for c := range q.classes {
			st := &q.classes[c]
			if st.ready == 0 {
				continue
			}
			stat := LevelStat{Ready: st.ready, Bytes: st.bytes}
			if e := q.msgs.get(st.from); e != nil && e.is(Ready) && e.class == Class(c) {
				stat.Oldest = moment(q.enqueuedAt(st.from, e))
			}
			if !yield(Class(c), stat) {
				return
			}
		}
	}
}

// SeekOldest looks for the oldest message of each class. It goes on where it was,
// visits up to *most messages, from which it subtracts them, and reports whether it has
// found all.
func (q *Queue) SeekOldest(most *int) (found bool) {
	for c := range q.classes {
		if q.classes[c].ready == 0 {
			continue
		}
		if *most -= q.seekOldest(Class(c), *most); *most <= 0 {
			return false
		}
	}
	return true
}

// seekOldest looks for the lowest number of a class that has ready messages, visits up
// to most messages, and returns how many it has visited: as many only if it has not
// come to an end.
func (q *Queue) seekOldest(c Class, most int) (visited int) {
	st := &q.classes[c]
	if e := q.msgs.get(st.from); e != nil && e.is(Ready) && e.class == c {
		return 0
	}
	for visited < most {
		seq, e := q.msgs.next(st.from)
		if e == nil {
			break // not while ready is counted right
		}
		visited++
		st.from = seq
		if e.is(Ready) && e.class == c {
			return visited - 1
		}
		st.from++
	}
	return visited
}
