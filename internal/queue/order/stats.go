// SPDX-License-Identifier: Apache-2.0

package order

import (
	"iter"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// readyStat is how many messages of a level or class are ready, and the bytes of
// their bodies.
type readyStat struct{ ready, bytes int64 }

func (s readyStat) plus(e *entries.Entry) readyStat {
	return readyStat{s.ready + 1, s.bytes + int64(e.BodySize)}
}

// LevelStat counts the ready messages of one level or class.
type LevelStat struct {
	Ready  int64
	Bytes  int64     // of their bodies
	Oldest time.Time // enqueue time of the oldest that may be delivered
}

// Survey counts the ready messages of each level, in steps: with fair keys, the oldest
// message of a level may be that of any key.
type Survey struct {
	// Levels is complete when the survey is done. In a session queue Oldest ignores locked
	// sessions.
	Levels map[ordering.Level]LevelStat

	key    int    // fair key to visit next
	counts uint64 // keys.counts when it began
	oldest map[ordering.Level]entries.OrderKey
}

// Survey continues a survey, which begins as its zero value. It visits up to most fair
// keys and reports whether it is done.
func (x *Index) Survey(s *Survey, most int) (done bool) {
	if x.order.Fair {
		if s.oldest == nil || s.counts != x.keys.renumbered {
			*s = Survey{counts: x.keys.renumbered, oldest: make(map[ordering.Level]entries.OrderKey)}
		}
		for ; most > 0 && s.key < len(x.keys.all); most-- {
			x.Entries.Visits++
			for _, l := range x.keys.all[s.key].listed() {
				if !l.eligible {
					continue
				}
				k, _ := l.SortedList.First(&x.Entries)
				if o, ok := s.oldest[l.level]; !ok || k.Before(o) {
					s.oldest[l.level] = k
				}
			}
			s.key++
		}
		if s.key < len(x.keys.all) {
			return false
		}
	}
	s.Levels = make(map[ordering.Level]LevelStat)
	for l := range x.byLevel {
		lv := &x.byLevel[l]
		if lv.ready == 0 {
			continue
		}
		st := LevelStat{Ready: lv.ready, Bytes: lv.bytes}
		k, ok := s.oldest[ordering.Level(l)]
		if p, plain := x.levels.at(x, ordering.Level(l)).(*plainLane); plain {
			k, ok = p.list.First(&x.Entries)
		}
		if e := x.Entries.Get(k.Seq); ok && e != nil { // else it was removed while others were visited
			st.Oldest = entries.Moment(x.Entries.EnqueuedAt(k.Seq, e))
		}
		s.Levels[ordering.Level(l)] = st
	}
	return true
}

// LevelCount returns how many messages of a level are ready.
func (x *Index) LevelCount(l ordering.Level) int64 {
	if int(l) >= len(x.byLevel) {
		return 0
	}
	return x.byLevel[l].ready
}

// ReadyFrom returns how many messages are ready at a level or above it, and their
// bytes.
func (x *Index) ReadyFrom(l ordering.Level) (count, bytes int64) {
	for i := int(l); i < len(x.byLevel); i++ {
		count += x.byLevel[i].ready
		bytes += x.byLevel[i].bytes
	}
	return count, bytes
}

// ReadyOf returns how many messages of a class are ready, and their bytes.
func (x *Index) ReadyOf(c ordering.Class) (count, bytes int64) {
	if int(c) >= len(x.classes) {
		return 0, 0
	}
	return x.classes[c].ready, x.classes[c].bytes
}

// OldestOf yields the ready messages of a class in sequence order, as far as it finds
// them by visiting a bounded number of others. It continues where it found the first one
// the last time, so that repeated calls find all of them.
func (x *Index) OldestOf(c ordering.Class) iter.Seq2[entries.SeqNo, machine.Ref] {
	return func(yield func(entries.SeqNo, machine.Ref) bool) {
		if int(c) >= len(x.classes) || x.classes[c].ready == 0 {
			return
		}
		most := oldestWork
		if most -= x.seekOldest(c, most); most <= 0 {
			return
		}
		left := x.classes[c].ready
		for seq, e := x.Entries.Next(x.classes[c].from); e != nil && left > 0 && most > 0; seq, e = x.Entries.Next(seq + 1) {
			most--
			if !e.Is(entries.Ready) || e.Class != c {
				continue
			}
			left--
			if !yield(seq, e.Body()) {
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
	bytes int64         // of their bodies
	from  entries.SeqNo // none of them has a lower sequence number
}

// countClass counts one more ready message.
func countClass(cs []classStat, seq entries.SeqNo, e *entries.Entry) []classStat {
	for int(e.Class) >= len(cs) {
		cs = append(cs, classStat{})
	}
	st := &cs[e.Class]
	if st.ready == 0 || seq < st.from {
		st.from = seq
	}
	st.ready++
	st.bytes += int64(e.BodySize)
	return cs
}

// ReadyClasses yields the classes that have ready messages in ascending order. Oldest is
// the enqueue time of the lowest sequence number; it is zero for a class whose oldest
// message SeekOldest has not found yet.
func (x *Index) ReadyClasses() iter.Seq2[ordering.Class, LevelStat] {
	return func(yield func(ordering.Class, LevelStat) bool) {
		for c := range x.classes {
			st := &x.classes[c]
			if st.ready == 0 {
				continue
			}
			stat := LevelStat{Ready: st.ready, Bytes: st.bytes}
			if e := x.Entries.Get(st.from); e != nil && e.Is(entries.Ready) && e.Class == ordering.Class(c) {
				stat.Oldest = entries.Moment(x.Entries.EnqueuedAt(st.from, e))
			}
			if !yield(ordering.Class(c), stat) {
				return
			}
		}
	}
}

// SeekOldest searches for the oldest message of each class. It continues where it was,
// visits up to *most messages, which it subtracts, and reports whether it has found all.
func (x *Index) SeekOldest(most *int) (found bool) {
	for c := range x.classes {
		if x.classes[c].ready == 0 {
			continue
		}
		if *most -= x.seekOldest(ordering.Class(c), *most); *most <= 0 {
			return false
		}
	}
	return true
}

// seekOldest searches for the lowest sequence number of a class that has ready messages.
// It visits up to most messages and returns how many; less than most if it is done.
func (x *Index) seekOldest(c ordering.Class, most int) (visited int) {
	st := &x.classes[c]
	if e := x.Entries.Get(st.from); e != nil && e.Is(entries.Ready) && e.Class == c {
		return 0
	}
	for visited < most {
		seq, e := x.Entries.Next(st.from)
		if e == nil {
			break // unreachable while the count of ready messages is right
		}
		visited++
		st.from = seq
		if e.Is(entries.Ready) && e.Class == c {
			return visited - 1
		}
		st.from++
	}
	return visited
}
