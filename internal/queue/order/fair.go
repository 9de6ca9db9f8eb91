// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math/bits"
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// maxLoad is the highest load; keys above it count as equal.
const maxLoad = 64*64 - 1

// fairLane serves the fair keys of a level in round robin. The load of a key is its messages in
// flight divided by its weight. Keys of one load are in one ring, in the order of their
// turns; the head of the ring with the lowest load is next:
//
//	words     bit w: used[w] is not zero
//	used[w]   bit b: ring 64w+b is not empty
//	rings[0]  C -> A       nothing in flight
//	rings[2]  B            two in flight for each unit of weight
//
// Two bit scans find the ring, so a choice costs the same for two keys and for a million.
// A key has as many turns in a row as its weight, then it moves to the tail. A key at its
// cap or rate limit is in no ring. With finish-first a heap of started keys replaces the
// rings; with aging a second heap, byHead, has the oldest message of the lane.
type fairLane struct {
	level   ordering.Level
	rings   []fairRing          // by load: the keys that may be served
	used    [64]uint64          // rings that are not empty
	words   uint64              // words of used that are not zero
	byHead  listHeap[byAge]     // the same keys by their first message, if aged
	started listHeap[byStarted] // instead of rings, if what was started is finished first
	aged    bool
	finish  bool
}

// keptRings is how many rings a lane without keys has.
const keptRings = 8

// fairRing is the keys of one load in the order of their turns.
type fairRing struct{ head, tail *keyList }

// keyList has the messages of one key in one level. It is in a ring unless its key is
// at a limit.
type keyList struct {
	entries.SortedList
	level                   ordering.Level
	fairKey                 uint32 // in keys
	prev, next              *keyList
	turns                   int64
	load                    int // ring it is in
	eligible                bool
	first                   entries.OrderKey // if the lane is aged, or finishes first
	headIndex, startedIndex int              // position in byHead and started
	started                 uint64           // of its key
	buffer                  [3]entries.SeqNo // memory of list: most keys have few messages
}

// find returns the list of a key, nil if it has no messages here.
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
		l = x.keys.newList(n, f.level)
		l.started = x.keys.all[n].started
		x.keys.all[n].lists = append(x.keys.all[n].lists, l)
	}
	l.SortedList.Add(&x.Entries, k, e)
	if fresh {
		if owner := x.keys.all[n]; !owner.atCap() && owner.eligibleAt() <= x.Clock {
			f.makeEligible(x, l, owner.load())
		}
	}
	f.refresh(x, l)
}

func (f *fairLane) remove(x *Index, k entries.OrderKey, e *entries.Entry) { f.pop(x, k, e) }

func (f *fairLane) pop(x *Index, k entries.OrderKey, e *entries.Entry) {
	l := f.find(x, x.fairKey(e.Group))
	l.Remove(&x.Entries, k, e)
	f.shrunk(x, l)
}

// shrunk drops a list that became empty.
func (f *fairLane) shrunk(x *Index, l *keyList) {
	if l.Len() > 0 {
		f.refresh(x, l)
		return
	}
	f.makeIneligible(l)
	x.keys.dropList(l)
	if f.words == 0 && len(f.rings) > keptRings {
		x.keys.lanes -= ringCost * int64(len(f.rings))
		f.rings = nil
	}
}

func (f *fairLane) first(x *Index) (entries.OrderKey, bool) {
	l := f.next()
	if l == nil {
		return entries.OrderKey{}, false
	}
	return l.SortedList.First(&x.Entries)
}

// next returns the list whose turn it is.
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

// rankKey ranks the lane as a whole: the oldest message of any key ages the level, and all
// its keys are served in round robin. Without aging any head is sufficient.
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
	owner := x.keys.all[n]
	if owner.every > 0 {
		owner.rateUsedUntil = int64(entries.AddClamped(time.Duration(owner.every), max(owner.rateUsedUntil, x.Clock)))
	}
	if l := f.find(x, n); l != nil && l.eligible && !f.finish {
		if l.turns++; l.turns >= owner.weight && l.next != nil {
			f.makeIneligible(l)
			f.makeEligible(x, l, owner.load())
		}
	}
	if owner.every > 0 {
		x.regulate(n)
	}
}

func (f *fairLane) open() bool { return f.words != 0 || len(f.started) > 0 }

// makeEligible adds a list to the heap of started keys, or to the tail of the ring of its
// load.
func (f *fairLane) makeEligible(x *Index, l *keyList, load int) {
	if l.eligible && (f.finish || l.load == load) {
		return
	}
	f.makeIneligible(l)
	if f.finish {
		l.eligible = true
		f.started.push(l)
	} else {
		f.joinRing(x, l, load)
	}
	if f.aged {
		f.byHead.push(l)
	}
}

// joinRing adds a list at the tail of a ring.
func (f *fairLane) joinRing(x *Index, l *keyList, load int) {
	for load >= len(f.rings) {
		f.rings = append(f.rings, fairRing{})
		x.keys.lanes += ringCost
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

// makeIneligible undoes makeEligible.
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

// leaveRing removes a list from its ring.
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

// refresh stores the head of a list and moves the list in its heaps.
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
