// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// Lock is a message, or a session, in somebody's hands. Locks are not logged.
type Lock struct {
	Seq        entries.SeqNo // zero: the lock of a session
	Nonce      uint64        // of the token
	At         int64         // taken at
	Until      int64         // of a message in a session the session's lock counts instead
	Session    uint32        // of a session queue
	prev, next uint32        // in the ring
	List       uint32        // timeline it is in; inSession if in its session's ring
}

// InSession is the span of a lock that ends with its session's.
const InSession = ^uint32(0)

// Ring is a list of locks, linked through their prev and next.
type Ring struct{ head, tail uint32 }

// PeekNext returns the slot of the first lock; zero if there is none.
func (r *Ring) First() uint32 { return r.head }

// expiryList is the locks that were taken for the same time: taken later, or
// renewed, means ending later, so the first to end is always in front.
type expiryList struct {
	Ring
	duration int64
}

// LockTable keeps locks in one slice; entries refer to them by index. Zero is none.
type LockTable struct {
	All      []Lock
	free     []uint32
	lists    []expiryList
	newLocks uint32             // timeline of new locks
	hints    []entries.SlotAddr // address of a token's message, by the low bits of its nonce; a power of two
}

// Configure directs new locks to the timeline of their duration. A duration
// that nobody uses any more gives its timeline away.
func (ls *LockTable) Configure(d time.Duration) {
	unused := len(ls.lists)
	for i := range ls.lists {
		if ls.lists[i].duration == int64(d) {
			ls.newLocks = uint32(i)
			return
		}
		if ls.lists[i].head == 0 {
			unused = i
		}
	}
	if unused == len(ls.lists) {
		ls.lists = append(ls.lists, expiryList{})
	}
	ls.lists[unused].duration = int64(d)
	ls.newLocks = uint32(unused)
}

// Put stores a lock and returns its slot. It is in no ring yet.
func (ls *LockTable) Put(l Lock) uint32 {
	if k := len(ls.free); k > 0 {
		slot := ls.free[k-1]
		ls.free = ls.free[:k-1]
		ls.All[slot] = l
		return slot
	}
	if len(ls.All) == 0 {
		ls.All = append(ls.All, Lock{}) // slot zero is none
	}
	ls.All = append(ls.All, l)
	return uint32(len(ls.All) - 1)
}

// Note remembers the address of a token's message, so that to settle it takes as
// long in a long queue as in a short one. It may be overwritten, and the message
// may move: what hint returns is no more than that.
func (ls *LockTable) Note(nonce uint64, n entries.SlotAddr) {
	if len(ls.hints) < 2*len(ls.All) {
		ls.hints = make([]entries.SlotAddr, max(16, 2*len(ls.hints)))
	}
	ls.hints[nonce&uint64(len(ls.hints)-1)] = n
}

// Hint returns what note remembered for a nonce, or the address of another message.
func (ls *LockTable) Hint(nonce uint64) entries.SlotAddr {
	if len(ls.hints) == 0 {
		return 0
	}
	return ls.hints[nonce&uint64(len(ls.hints)-1)]
}

// Begin lets the lock run from now in the current timeline.
func (ls *LockTable) Begin(slot uint32, now int64) {
	l := &ls.All[slot]
	t := &ls.lists[ls.newLocks]
	l.List, l.Until = ls.newLocks, int64(entries.AddClamped(time.Duration(t.duration), now))
	ls.Link(&t.Ring, slot)
}

// KeepForever lets a running lock have no end: it moves to a list of its own, which has
// no first to end.
func (ls *LockTable) KeepForever(slot uint32) {
	ls.unlink(&ls.lists[ls.All[slot].List].Ring, slot)
	i := slices.IndexFunc(ls.lists, func(t expiryList) bool { return t.duration == entries.Never })
	if i < 0 {
		i = len(ls.lists)
		ls.lists = append(ls.lists, expiryList{duration: entries.Never})
	}
	l := &ls.All[slot]
	l.List, l.Until = uint32(i), entries.Never
	ls.Link(&ls.lists[i].Ring, slot)
}

// Renew lets a running lock begin again.
func (ls *LockTable) Renew(slot uint32, now int64) {
	ls.unlink(&ls.lists[ls.All[slot].List].Ring, slot)
	ls.Begin(slot, now)
}

// ExpireNow ends a running lock, whose holder has given it up, before its time: it is first
// in its timeline, and no token fits it any more.
func (ls *LockTable) ExpireNow(slot uint32, now int64) {
	l := &ls.All[slot]
	r := &ls.lists[l.List].Ring
	ls.unlink(r, slot)
	l.Nonce, l.Until = 0, now
	l.prev, l.next = 0, r.head
	if r.head != 0 {
		ls.All[r.head].prev = slot
	} else {
		r.tail = slot
	}
	r.head = slot
}

// End frees the slot of a lock that is in an expiry list.
func (ls *LockTable) End(slot uint32) { ls.EndIn(&ls.lists[ls.All[slot].List].Ring, slot) }

// EndIn frees the slot of a lock that is in ring r, which is that of its session.
func (ls *LockTable) EndIn(r *Ring, slot uint32) {
	ls.unlink(r, slot)
	ls.All[slot] = Lock{}
	ls.free = append(ls.free, slot)
}

// Link adds a lock to the end of a ring.
func (ls *LockTable) Link(r *Ring, slot uint32) {
	l := &ls.All[slot]
	l.prev, l.next = r.tail, 0
	if r.tail != 0 {
		ls.All[r.tail].next = slot
	} else {
		r.head = slot
	}
	r.tail = slot
}

func (ls *LockTable) unlink(r *Ring, slot uint32) {
	l := &ls.All[slot]
	if l.prev != 0 {
		ls.All[l.prev].next = l.next
	} else {
		r.head = l.next
	}
	if l.next != 0 {
		ls.All[l.next].prev = l.prev
	} else {
		r.tail = l.prev
	}
}

// PeekNext returns the lock that ends first, and when; zero if there is none.
func (ls *LockTable) First() (slot uint32, until int64) {
	until = entries.Never
	for i := range ls.lists {
		if h := ls.lists[i].head; h != 0 && ls.All[h].Until < until {
			slot, until = h, ls.All[h].Until
		}
	}
	return slot, until
}
