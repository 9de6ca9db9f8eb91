// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math/bits"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// maxLoad is the load from which on keys are not told apart.
const maxLoad = 64*64 - 1

// fairLane lets the keys of a level take turns. The key that has the least in
// flight, by its weight, goes first; among equals, whoever has waited longest
// for a turn. A key has as many turns in a row as its weight. All of this takes
// the same time for two keys and for a million. Or the keys that were started go
// first, which takes longer for a million of them, as a heap does.
type fairLane struct {
	level      ordering.Level
	rings      []fairRing          // by load: the keys that may be served
	used       [64]uint64          // rings that are not empty
	words      uint64              // words of used that are not zero
	byHead     listHeap[byAge]     // the same keys by their first message, if aged
	started    listHeap[byStarted] // instead of rings, if what was started is finished first
	aged       bool
	finish     bool
	spareLists []*keyList
}

// fairRing is the keys of one load in the order of their turns.
type fairRing struct{ head, tail *keyList }

// keyList is the messages of one key in one level. It is in a ring unless its
// key is at a limit.
type keyList struct {
	entries.SortedList
	level                   ordering.Level
	fairKey                 uint32 // in keys
	prev, next              *keyList
	turns                   int64
	load                    int // ring it is in
	eligible                bool
	first                   entries.OrderKey // if the lane is aged, or finishes first
	headIndex, startedIndex int              // position in ages and works
	started                 uint64           // of its key
	room                    [3]entries.SeqNo // for list: most keys have few messages
}

// find returns the line of a key, nil if it has no messages here.
func (f *fairLane) find(x *Index, n uint32) *keyList {
	for _, l := range x.keys.all[n].lists {
		if l.level == f.level {
			return l
		}
	}
	return nil
}

func (f *fairLane) add(x *Index, k entries.OrderKey, e *entries.Entry) {
	n := x.fairKey(e.Group)
	l := f.find(x, n)
	fresh := l == nil
	if fresh {
		l = f.newList(n)
		l.started = x.keys.all[n].started
		x.keys.all[n].lists = append(x.keys.all[n].lists, l)
	}
	l.SortedList.Add(&x.Entries, k, e)
	if fresh {
		if owner := &x.keys.all[n]; !owner.atCap() && owner.eligibleAt() <= x.Clock {
			f.makeEligible(l, owner.load())
		}
	}
	f.refresh(x, l)
}

func (f *fairLane) newList(n uint32) *keyList {
	l := new(keyList)
	if k := len(f.spareLists); k > 0 {
		l, f.spareLists = f.spareLists[k-1], f.spareLists[:k-1]
	}
	l.level, l.fairKey = f.level, n
	l.UseBuffer(l.room[:])
	return l
}

func (f *fairLane) remove(x *Index, k entries.OrderKey, e *entries.Entry) { f.pop(x, k, e) }

func (f *fairLane) pop(x *Index, k entries.OrderKey, e *entries.Entry) {
	l := f.find(x, x.fairKey(e.Group))
	l.Remove(&x.Entries, k, e)
	f.shrunk(x, l)
}

// shrunk forgets a line that became empty.
func (f *fairLane) shrunk(x *Index, l *keyList) {
	if l.Len() > 0 {
		f.refresh(x, l)
		return
	}
	f.makeIneligible(l)
	owner := &x.keys.all[l.fairKey]
	i := slices.Index(owner.lists, l)
	owner.lists = slices.Delete(owner.lists, i, i+1)
	kept := l.SortedList
	kept.Reset()
	*l = keyList{SortedList: kept}
	if len(f.spareLists) < 1024 {
		f.spareLists = append(f.spareLists, l)
	}
}

func (f *fairLane) first(x *Index) (entries.OrderKey, bool) {
	l := f.next()
	if l == nil {
		return entries.OrderKey{}, false
	}
	return l.SortedList.First(&x.Entries)
}

// next returns the line whose turn it is.
func (f *fairLane) next() *keyList {
	if len(f.started) > 0 {
		return f.started[0]
	}
	if f.words == 0 {
		return nil
	}
	w := bits.TrailingZeros64(f.words)
	return f.rings[w<<6+bits.TrailingZeros64(f.used[w])].head
}

// rankKey ranks the lane as a whole: the old messages of one key lift the level,
// and then all its keys take their turns. Where age does not count, it is enough
// that it finds something.
func (f *fairLane) rankKey(x *Index) (entries.OrderKey, bool) {
	if f.aged {
		if len(f.byHead) == 0 {
			return entries.OrderKey{}, false
		}
		return f.byHead[0].first, true
	}
	l := f.next()
	if l == nil {
		return entries.OrderKey{}, false
	}
	return l.SortedList.First(&x.Entries)
}

func (f *fairLane) served(x *Index, e *entries.Entry) {
	n := x.fairKey(e.Group)
	owner := &x.keys.all[n]
	if owner.every > 0 {
		owner.rateUsedUntil = int64(entries.AddClamped(time.Duration(owner.every), max(owner.rateUsedUntil, x.Clock)))
	}
	if l := f.find(x, n); l != nil && l.eligible && !f.finish {
		if l.turns++; l.turns >= owner.weight && l.next != nil {
			f.makeIneligible(l)
			f.makeEligible(l, owner.load())
		}
	}
	if owner.every > 0 {
		x.regulate(n)
	}
}

func (f *fairLane) open() bool { return f.words != 0 || len(f.started) > 0 }

// makeEligible lets a line take part: by what was started, or in turns in the ring of its
// load, at the end of it.
func (f *fairLane) makeEligible(l *keyList, load int) {
	if l.eligible && (f.finish || l.load == load) {
		return
	}
	f.makeIneligible(l)
	if f.finish {
		l.eligible = true
		f.started.push(l)
	} else {
		f.joinRing(l, load)
	}
	if f.aged {
		f.byHead.push(l)
	}
}

// joinRing puts a line at the end of a ring.
func (f *fairLane) joinRing(l *keyList, load int) {
	for load >= len(f.rings) {
		f.rings = append(f.rings, fairRing{})
	}
	r := &f.rings[load]
	l.eligible, l.load, l.turns = true, load, 0
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

// makeIneligible makes a line take part no more, if it does.
func (f *fairLane) makeIneligible(l *keyList) {
	if !l.eligible {
		return
	}
	if f.finish {
		f.started.remove(l)
	} else {
		f.leaveRing(l)
	}
	l.eligible = false
	if f.aged {
		f.byHead.remove(l)
	}
}

// leaveRing takes a line out of its ring.
func (f *fairLane) leaveRing(l *keyList) {
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
func (f *fairLane) refresh(x *Index, l *keyList) {
	if !f.aged && !f.finish {
		return
	}
	l.first, _ = l.SortedList.First(&x.Entries)
	if l.eligible && f.aged {
		f.byHead.fix(l)
	}
	if l.eligible && f.finish {
		f.started.fix(l)
	}
}
