// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"
)

// lock is a message, or a session, in somebody's hands. Locks are not logged.
type lock struct {
	seq        SeqNo  // zero: the lock of a session
	nonce      uint64 // of the token
	at         int64  // taken at
	until      int64  // of a message in a session the session's lock counts instead
	session    uint32 // of a session queue
	prev, next uint32 // in the ring
	list       uint32 // timeline it is in; inSession if in its session's ring
}

// inSession is the span of a lock that ends with its session's.
const inSession = ^uint32(0)

// ring is a list of locks, linked through their prev and next.
type ring struct{ head, tail uint32 }

// timeline is the locks that were taken for the same time: taken later, or
// renewed, means ending later, so the first to end is always in front.
type expiryList struct {
	ring
	duration int64
}

// locks keeps locks in one slice; entries refer to them by index. Zero is none.
type locks struct {
	all      []lock
	free     []uint32
	lists    []expiryList
	newLocks uint32     // timeline of new locks
	hints    []slotAddr // address of a token's message, by the low bits of its nonce; a power of two
}

// configure directs new locks to the timeline of their duration. A duration
// that nobody uses any more gives its timeline away.
func (ls *locks) configure(d time.Duration) {
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

// put stores a lock and returns its slot. It is in no ring yet.
func (ls *locks) put(l lock) uint32 {
	if k := len(ls.free); k > 0 {
		slot := ls.free[k-1]
		ls.free = ls.free[:k-1]
		ls.all[slot] = l
		return slot
	}
	if len(ls.all) == 0 {
		ls.all = append(ls.all, lock{}) // slot zero is none
	}
	ls.all = append(ls.all, l)
	return uint32(len(ls.all) - 1)
}

// note remembers the address of a token's message, so that to settle it takes as
// long in a long queue as in a short one. It may be overwritten, and the message
// may move: what hint returns is no more than that.
func (ls *locks) note(nonce uint64, n slotAddr) {
	if len(ls.hints) < 2*len(ls.all) {
		ls.hints = make([]slotAddr, max(16, 2*len(ls.hints)))
	}
	ls.hints[nonce&uint64(len(ls.hints)-1)] = n
}

func (ls *locks) hint(nonce uint64) slotAddr {
	if len(ls.hints) == 0 {
		return 0
	}
	return ls.hints[nonce&uint64(len(ls.hints)-1)]
}

// begin lets the lock run from now in the current timeline.
func (ls *locks) begin(slot uint32, now int64) {
	l := &ls.all[slot]
	t := &ls.lists[ls.newLocks]
	l.list, l.until = ls.newLocks, int64(addClamped(time.Duration(t.duration), now))
	ls.link(&t.ring, slot)
}

// hold lets the lock run without end: it has a timeline of its own, which has no
// first to end.
func (ls *locks) keepForever(slot uint32) {
	i := slices.IndexFunc(ls.lists, func(t expiryList) bool { return t.duration == never })
	if i < 0 {
		i = len(ls.lists)
		ls.lists = append(ls.lists, expiryList{duration: never})
	}
	l := &ls.all[slot]
	l.list, l.until = uint32(i), never
	ls.link(&ls.lists[i].ring, slot)
}

// renew lets a running lock begin again.
func (ls *locks) renew(slot uint32, now int64) {
	ls.unlink(&ls.lists[ls.all[slot].list].ring, slot)
	ls.begin(slot, now)
}

// void ends a running lock, whose holder has given it up, before its time: it is first
// in its timeline, and no token fits it any more.
func (ls *locks) expireNow(slot uint32, now int64) {
	l := &ls.all[slot]
	r := &ls.lists[l.list].ring
	ls.unlink(r, slot)
	l.nonce, l.until = 0, now
	l.prev, l.next = 0, r.head
	if r.head != 0 {
		ls.all[r.head].prev = slot
	} else {
		r.tail = slot
	}
	r.head = slot
}

// end frees a slot whose lock was in ring r.
func (ls *locks) end(r *ring, slot uint32) {
	ls.unlink(r, slot)
	ls.all[slot] = lock{}
	ls.free = append(ls.free, slot)
}

func (ls *locks) link(r *ring, slot uint32) {
	l := &ls.all[slot]
	l.prev, l.next = r.tail, 0
	if r.tail != 0 {
		ls.all[r.tail].next = slot
	} else {
		r.head = slot
	}
	r.tail = slot
}

func (ls *locks) unlink(r *ring, slot uint32) {
	l := &ls.all[slot]
	if l.prev != 0 {
		ls.all[l.prev].next = l.next
	} else {
		r.head = l.next
	}
	if l.next != 0 {
		ls.all[l.next].prev = l.prev
	} else {
		r.tail = l.prev
	}
}

// first returns the lock that ends first, and when; zero if there is none.
func (ls *locks) first() (slot uint32, until int64) {
	until = never
	for i := range ls.lists {
		if h := ls.lists[i].head; h != 0 && ls.all[h].until < until {
			slot, until = h, ls.all[h].until
		}
	}
	return slot, until
}
