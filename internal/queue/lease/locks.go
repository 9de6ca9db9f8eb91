// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"slices"
	"time"
	"unsafe"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// Lock is the lock of a message or a session. It is not logged, unless its list is Durable.
type Lock struct {
	Seq        entries.SeqNo // zero: the lock of a session
	Nonce      uint64        // of the token
	At         int64         // taken at
	Until      int64         // end; in a session the end of the session's lock counts instead
	Session    uint32        // of a session queue
	prev, next uint32        // in the ring; of a durable lock prev is its item
	List       uint32        // expiry list that it is in; InSession if in its session's ring; Durable
}

const (
	// InSession is the list of a lock that ends with its session's.
	InSession = ^uint32(0)
	// Durable is the list of the locks that are logged: they survive a restart. Their ends
	// are in no order, because a snapshot lists them by the numbers of their messages.
	Durable = InSession - 1
)

// Ring is a list of locks, linked through their prev and next.
type Ring struct{ head, tail uint32 }

// First returns the index of the first lock; zero if there is none.
func (r *Ring) First() uint32 { return r.head }

// expiryList has the locks of one duration in order of expiry. A lock that is taken or
// renewed later ends later, so it is added at the tail, and the head ends first: no heap
// is needed, and every operation is O(1).
type expiryList struct {
	Ring
	duration int64
}

// LockTable has all locks in one slice; entries refer to them by index. Zero is none.
type LockTable struct {
	All      []Lock
	free     []uint32
	lists    []expiryList
	newLocks uint32             // expiry list of new locks
	durable  Schedule           // the durable locks, by their indexes
	hints    []entries.SlotAddr // address of a token's message, by the low bits of its nonce; a power of two
}

// Configure selects the expiry list of a duration for new locks. The list of a duration
// without locks is reused.
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

// Put stores a lock and returns its index. It is in no ring yet.
func (ls *LockTable) Put(l Lock) uint32 {
	if k := len(ls.free); k > 0 {
		slot := ls.free[k-1]
		ls.free = ls.free[:k-1]
		ls.All[slot] = l
		return slot
	}
	if len(ls.All) == 0 {
		ls.All = append(ls.All, Lock{}) // index zero is none
	}
	ls.All = append(ls.All, l)
	return uint32(len(ls.All) - 1)
}

// Note stores the address of a token's message, so that settling a message of a long
// queue needs no lookup in the page index. It is a hint: another token may overwrite it,
// and the message may move. A wrong hint is harmless, because the caller compares the
// sequence number at the address.
func (ls *LockTable) Note(nonce uint64, n entries.SlotAddr) {
	if len(ls.hints) < 2*len(ls.All) {
		ls.hints = make([]entries.SlotAddr, max(16, 2*len(ls.hints)))
	}
	ls.hints[nonce&uint64(len(ls.hints)-1)] = n
}

// Hint returns the address that Note stored for a nonce, or that of another message.
func (ls *LockTable) Hint(nonce uint64) entries.SlotAddr {
	if len(ls.hints) == 0 {
		return 0
	}
	return ls.hints[nonce&uint64(len(ls.hints)-1)]
}

// Begin starts a lock at now, in the expiry list of new locks.
func (ls *LockTable) Begin(slot uint32, now int64) {
	l := &ls.All[slot]
	t := &ls.lists[ls.newLocks]
	l.List, l.Until = ls.newLocks, ls.endOfNew(now)
	ls.Link(&t.Ring, slot)
}

// endOfNew returns when a lock ends that begins at now.
func (ls *LockTable) endOfNew(now int64) int64 {
	return int64(entries.AddClamped(time.Duration(ls.lists[ls.newLocks].duration), now))
}

// BeginDurable starts a lock that is logged and ends at until.
func (ls *LockTable) BeginDurable(slot uint32, until int64) {
	l := &ls.All[slot]
	l.List, l.Until = Durable, until
	l.prev, l.next = ls.durable.Add(entries.SeqNo(slot), until), 0
}

// Restore makes a durable lock one that a replay has found. Its holder may not have been able
// to renew it.
func (ls *LockTable) Restore(slot uint32) { ls.All[slot].next = restored }

// Restored reports whether a lock was found by a replay, and not renewed since.
func (ls *LockTable) Restored(slot uint32) bool {
	return ls.All[slot].List == Durable && ls.All[slot].next == restored
}

// restored is the next of a durable lock that was restored; they are in no ring.
const restored = ^uint32(0)

// RenewDurable starts a running lock again, as one that is logged.
func (ls *LockTable) RenewDurable(slot uint32, now int64) {
	ls.leave(slot)
	ls.BeginDurable(slot, ls.endOfNew(now))
}

// DurableCount returns how many locks are logged.
func (ls *LockTable) DurableCount() int { return ls.durable.Len() }

// leave removes a running lock from its expiry list, or from the durable ones.
func (ls *LockTable) leave(slot uint32) {
	l := &ls.All[slot]
	if l.List != Durable {
		ls.unlink(&ls.lists[l.List].Ring, slot)
		return
	}
	item := l.prev
	if moved := ls.durable.Remove(item); moved != 0 {
		ls.All[moved].prev = item
	}
	l.prev = 0
}

// KeepForever makes a running lock one without an end: it moves to a list of its own,
// which never expires.
func (ls *LockTable) KeepForever(slot uint32) {
	ls.leave(slot)
	i := slices.IndexFunc(ls.lists, func(t expiryList) bool { return t.duration == entries.Never })
	if i < 0 {
		i = len(ls.lists)
		ls.lists = append(ls.lists, expiryList{duration: entries.Never})
	}
	l := &ls.All[slot]
	l.List, l.Until = uint32(i), entries.Never
	ls.Link(&ls.lists[i].Ring, slot)
}

// Renew starts a running lock again. One that was logged stays so.
func (ls *LockTable) Renew(slot uint32, now int64) {
	if ls.All[slot].List == Durable {
		ls.RenewDurable(slot, now)
		return
	}
	ls.leave(slot)
	ls.Begin(slot, now)
}

// ExpireNow ends a running lock, which its holder has released, before its time. It
// moves to the head of its expiry list, and no token is valid for it any more.
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

// End frees the index of a running lock that is in no session.
func (ls *LockTable) End(slot uint32) {
	if list := ls.All[slot].List; list != Durable { // as most
		ls.EndIn(&ls.lists[list].Ring, slot)
		return
	}
	ls.leave(slot)
	ls.release(slot)
}

// EndIn frees the index of a lock that is in ring r, which is that of its session.
func (ls *LockTable) EndIn(r *Ring, slot uint32) {
	ls.unlink(r, slot)
	ls.release(slot)
}

// release frees the index of a lock that has left its list.
func (ls *LockTable) release(slot uint32) {
	ls.All[slot] = Lock{}
	ls.free = append(ls.free, slot)
	if len(ls.free) == len(ls.All)-1 && len(ls.All) > keptLocks {
		ls.All, ls.free, ls.hints = nil, nil, nil
	}
}

// keptLocks is how many locks have memory while there is none.
const keptLocks = 4096

// Memory returns how many bytes the locks take.
func (ls *LockTable) Memory() int64 {
	return int64(cap(ls.All))*int64(unsafe.Sizeof(Lock{})) + int64(cap(ls.free)+len(ls.hints))*4 + ls.durable.Memory()
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

// First returns the lock that ends first, and when; zero if there is none.
func (ls *LockTable) First() (slot uint32, until int64) {
	first, until := ls.durable.First()
	slot = uint32(first)
	for i := range ls.lists {
		if h := ls.lists[i].head; h != 0 && ls.All[h].Until < until {
			slot, until = h, ls.All[h].Until
		}
	}
	return slot, until
}
