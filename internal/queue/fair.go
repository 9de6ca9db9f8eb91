// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/bits"
	"slices"
	"time"
)

// maxLoad is the load from which on keys are not told apart.
const maxLoad = 64*64 - 1

// fairLane lets the keys of a level take turns. The key that has the least in
// flight, by its weight, goes first; among equals, whoever has waited longest
// for a turn. A key has as many turns in a row as its weight. All of this takes
// the same time for two keys and for a million. Or the keys that were started go
// first, which takes longer for a million of them, as a heap does.
type fairLane struct {
	level  Level
	rings  []fairRing       // by load: the keys that may be served
	used   [64]uint64       // rings that are not empty
	words  uint64           // words of used that are not zero
	ages   lineHeap[byAge]  // the same keys by their first message, if aged
	works  lineHeap[byWork] // instead of rings, if what was started is finished first
	aged   bool
	finish bool
	spare  []*fairLine
}

// fairRing is the keys of one load in the order of their turns.
type fairRing struct{ head, tail *fairLine }

// fairLine is the messages of one key in one level. It is in a ring unless its
// key is at a limit.
type fairLine struct {
	sortedList
	level      Level
	fairKey    uint32 // in keys
	prev, next *fairLine
	turns      int64
	load       int // ring it is in
	enlisted   bool
	first      orderKey // if the lane is aged, or finishes first
	age, work  int      // position in ages and works
	started    uint64   // of its key
	room       [3]SeqNo // for list: most keys have few messages
}

// find returns the line of a key, nil if it has no messages here.
func (f *fairLane) find(x *Index, n uint32) *fairLine {
	for _, l := range x.keys.all[n].lines {
		if l.level == f.level {
			return l
		}
	}
	return nil
}

func (f *fairLane) add(x *Index, k orderKey, e *entry) {
	n := x.fairKey(e.group)
	l := f.find(x, n)
	fresh := l == nil
	if fresh {
		l = f.newLine(n)
		l.started = x.keys.all[n].started
		x.keys.all[n].lines = append(x.keys.all[n].lines, l)
	}
	l.sortedList.add(&x.msgs, k, e)
	if fresh {
		if owner := &x.keys.all[n]; !owner.full() && owner.opens() <= x.clock {
			f.enlist(l, owner.load())
		}
	}
	f.refresh(x, l)
}

func (f *fairLane) newLine(n uint32) *fairLine {
	l := new(fairLine)
	if k := len(f.spare); k > 0 {
		l, f.spare = f.spare[k-1], f.spare[:k-1]
	}
	l.level, l.fairKey = f.level, n
	if l.list.few == nil {
		l.list.few = l.room[:0]
	}
	return l
}

func (f *fairLane) leave(x *Index, k orderKey, e *entry) { f.pop(x, k, e) }

func (f *fairLane) pop(x *Index, k orderKey, e *entry) {
	l := f.find(x, x.fairKey(e.group))
	l.remove(&x.msgs, k, e)
	f.shrunk(x, l)
}

// shrunk forgets a line that became empty.
func (f *fairLane) shrunk(x *Index, l *fairLine) {
	if l.list.n > 0 {
		f.refresh(x, l)
		return
	}
	f.withdraw(l)
	owner := &x.keys.all[l.fairKey]
	i := slices.Index(owner.lines, l)
	owner.lines = slices.Delete(owner.lines, i, i+1)
	few := l.list.few
	if l.list.many != nil {
		few = nil
	}
	*l = fairLine{sortedList: sortedList{list: seqList{few: few}}}
	if len(f.spare) < 1024 {
		f.spare = append(f.spare, l)
	}
}

func (f *fairLane) first(x *Index) (orderKey, bool) {
	l := f.next()
	if l == nil {
		return orderKey{}, false
	}
	return l.sortedList.first(&x.msgs)
}

// next returns the line whose turn it is.
func (f *fairLane) next() *fairLine {
	if len(f.works) > 0 {
		return f.works[0]
	}
	if f.words == 0 {
		return nil
	}
	w := bits.TrailingZeros64(f.words)
	return f.rings[w<<6+bits.TrailingZeros64(f.used[w])].head
}

// oldest ranks the lane as a whole: the old messages of one key lift the level,
// and then all its keys take their turns. Where age does not count, it is enough
// that it finds something.
func (f *fairLane) oldest(x *Index) (orderKey, bool) {
	if f.aged {
		if len(f.ages) == 0 {
			return orderKey{}, false
		}
		return f.ages[0].first, true
	}
	l := f.next()
	if l == nil {
		return orderKey{}, false
	}
	return l.sortedList.first(&x.msgs)
}

func (f *fairLane) served(x *Index, e *entry) {
	n := x.fairKey(e.group)
	owner := &x.keys.all[n]
	if owner.every > 0 {
		owner.booked = int64(later(time.Duration(owner.every), max(owner.booked, x.clock)))
	}
	if l := f.find(x, n); l != nil && l.enlisted && !f.finish {
		if l.turns++; l.turns >= owner.weight && l.next != nil {
			f.withdraw(l)
			f.enlist(l, owner.load())
		}
	}
	if owner.every > 0 {
		x.regulate(n)
	}
}

func (f *fairLane) open() bool { return f.words != 0 || len(f.works) > 0 }

// enlist lets a line take part: by what was started, or in turns in the ring of its
// load, at the end of it.
func (f *fairLane) enlist(l *fairLine, load int) {
	if l.enlisted && (f.finish || l.load == load) {
		return
	}
	f.withdraw(l)
	if f.finish {
		l.enlisted = true
		f.works.push(l)
	} else {
		f.lineUp(l, load)
	}
	if f.aged {
		f.ages.push(l)
	}
}

// lineUp puts a line at the end of a ring.
func (f *fairLane) lineUp(l *fairLine, load int) {
	for load >= len(f.rings) {
		f.rings = append(f.rings, fairRing{})
	}
	r := &f.rings[load]
	l.enlisted, l.load, l.turns = true, load, 0
	l.prev, l.next = r.tail, nil
	if r.tail != nil {
		r.tail.next = l
	} else {
		r.head = l
		f.used[load>>6] |= 1 << (load & 63)
		f.words |= 1 << (load >> 6)
	}
	r.tail = l
}

// withdraw makes a line take part no more, if it does.
func (f *fairLane) withdraw(l *fairLine) {
	if !l.enlisted {
		return
	}
	if f.finish {
		f.works.remove(l)
	} else {
		f.stepOut(l)
	}
	l.enlisted = false
	if f.aged {
		f.ages.remove(l)
	}
}

// stepOut takes a line out of its ring.
func (f *fairLane) stepOut(l *fairLine) {
	r := &f.rings[l.load]
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		r.head = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		r.tail = l.prev
	}
	if r.head == nil {
		f.used[l.load>>6] &^= 1 << (l.load & 63)
		if f.used[l.load>>6] == 0 {
			f.words &^= 1 << (l.load >> 6)
		}
	}
	l.prev, l.next = nil, nil
}

// refresh notes which message is the first of a line.
func (f *fairLane) refresh(x *Index, l *fairLine) {
	if !f.aged && !f.finish {
		return
	}
	l.first, _ = l.sortedList.first(&x.msgs)
	if l.enlisted && f.aged {
		f.ages.fix(l)
	}
	if l.enlisted && f.finish {
		f.works.fix(l)
	}
}
