// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"math"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

// The space that a journal has, and who may use it:
//
//	│ rest of the active segment │ ready segments │ spares                   │
//	│                            │ formatted      │ recycled or reserved     │
//	└──────────────────────────── available ────────────────────────────────┘
//	                     senders  ◄──┼──► target: upkeep alone
//
// All of it are blocks on disk: no other process can take them. Groups for Senders are
// refused before they would leave less than the target, which grows with each of them by
// what its owner has to reserve for it; what refuses them says
// whether more can be made (ErrBusy: wait a moment) or not (journal.ErrFull).
const (
	// baseReserve is the least of the target that no owner has asked for: space for
	// what they write before they have said anything.
	baseReserve = 8 << 20
	// A disk that is small gets a smaller base and smaller segments, in shares of
	// its size; and what is left free for its other users, the manifest and the
	// file system itself.
	baseShare    = 32
	segmentShare = 64
	marginShare  = 64
	// fewSegments are not worth a large base while there is space for as many more.
	fewSegments = 4
	maxMargin   = 16 << 20
	// defaultUnsynced is how many bytes may wait for the disk before senders are
	// refused.
	defaultUnsynced = 64 << 20
)

// segmentFor returns the capacity of a segment with space for need bytes, which
// include the header of a batch.
func (w *WAL) segmentFor(need uint64) uint64 {
	need += format.HeaderSize + format.BatchHeader + format.Alignment
	return min(w.segmentSize, (need+511)&^511)
}

// measureDisk asks the system how much of the disk is free, and how large it is.
func (w *WAL) measureDisk() {
	total, free := uint64(math.MaxInt64), uint64(math.MaxInt64)
	if s, err := w.fs.Space(); err == nil && s.Total > 0 { // else it shows when a file is made
		total, free = uint64(s.Total), uint64(s.Free)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.pool
	s.free, s.margin = free, min(maxMargin, total/marginShare)
	s.limit = min(w.segmentSize, max(store.FirstCapacity, total/segmentShare&^(64<<10-1)))
	// On a full disk the base is also what owners move bodies into, out of segments
	// that are mostly garbage. They may use half of it, and move no more than half of a
	// segment: so it is as large as any of them. A store of few segments can wait
	// with that until the disk has little left.
	s.base = min(w.leastBase(), total/baseShare)
	if len(w.segs) > fewSegments || s.spendable() < fewSegments*s.limit {
		for _, seg := range w.segs {
			if seg != w.log.active {
				s.base = max(s.base, min(seg.Head.Capacity, s.limit))
			}
		}
	}
	s.base = min(s.base, store.Usable(w.segmentSize))
	s.setTarget()
}

// setTarget works out what senders must leave; mu is held. What owners ask for is
// records: an eighth more is for the headers of batches and the ends of segments
// that are too short for a group.
func (s *segmentPool) setTarget() { s.target = s.base + withOverhead(s.reserved) }

// withOverhead is what so many bytes of records take at most.
func withOverhead(bytes uint64) uint64 { return bytes + bytes/8 }

// spendable returns how much of the disk may be made into files; mu is held.
func (s *segmentPool) spendable() uint64 { return s.free - min(s.free, s.margin) }

// available returns the bytes that groups can still have; mu is held.
func (w *WAL) available() uint64 { return w.log.free() + w.pool.prepared }

// free returns what is left of the active segment; mu is held.
func (t *tail) free() uint64 {
	if t.sealed || t.active == nil {
		return 0
	}
	return t.active.FreeAfter(t.off)
}

// admits returns why a group for senders of need bytes is refused, if so, for which
// its owner reserves more bytes; mu is held.
func (w *WAL) admits(need, more uint64) error {
	s, have, group := &w.pool, w.available(), need
	need += w.skipped(need) + withOverhead(more)
	switch {
	case w.status.Full:
		return journal.ErrFull
	case w.status.Busy:
		return journal.ErrBusy
	case have >= s.target+need:
		return nil
	case s.spent || have+s.spendable() < s.target+need:
		// For smaller groups, too, unless there is so much that review would at
		// once admit them again.
		if enough := s.target + w.slack(); have < enough && (s.spent || have+s.spendable() < enough) {
			w.status.Full = true
			w.changes++
			w.wake.Notify()
		}
		if !s.spent {
			w.low.Notify() // it may be old news
		}
		return journal.ErrFull
	}
	// What is missing is being made. To admit the group before it is there would have
	// another process take the space.
	s.behind = max(s.behind, need)
	s.asked = max(s.asked, need)
	if !w.fits(group) {
		s.lack = max(s.lack, group)
	}
	w.review()
	w.low.Notify()
	return journal.ErrBusy
}

// skipped returns how many bytes of the active segment, and of ready ones, are lost because
// a group of need bytes does not fit into them; mu is held.
func (w *WAL) skipped(need uint64) (bytes uint64) {
	if bytes = w.log.free(); bytes >= need {
		return 0
	}
	for _, s := range w.pool.ready {
		free := s.FreeAfter(format.HeaderSize)
		if free >= need {
			break
		}
		bytes += free
	}
	return bytes
}

// noteNoSpace refuses a group for senders for which no segment is ready, and has one
// made; mu is held.
func (w *WAL) noteNoSpace(need uint64) error {
	if s := &w.pool; s.tooLarge != 0 && need >= s.tooLarge {
		return journal.ErrFull
	}
	w.pool.lack = max(w.pool.lack, need)
	w.review()
	w.low.Notify()
	return journal.ErrBusy
}

// slack is how much more than the target there must be before a disk that was
// full is not any more, so that the status does not change with each group; mu is
// held.
func (w *WAL) slack() uint64 { return w.pool.limit / 2 }

// review computes the status of senders; mu is held. A change to anything that it
// depends on must call it.
func (w *WAL) review() {
	s, have := &w.pool, w.available()
	enough := s.target
	if w.status.Full {
		enough += w.slack()
	}
	full := s.owed > 0 || w.log.stalled || have < enough && (s.spent || have+s.spendable() < enough)

	limit := w.unsynced
	if w.log.congested {
		limit /= 2
	}
	w.log.congested = w.log.unsynced > limit
	if all := s.target + s.behind; full || have >= all || s.spent || have+s.spendable() < all {
		s.behind = 0 // it is there, or will not be
	}
	busy := w.log.congested || !full && (s.lack > 0 || s.behind > 0)
	if full != w.status.Full || busy != w.status.Busy {
		w.status.Full, w.status.Busy = full, busy
		w.changes++
		w.wake.Notify()
	}
}

// Reserve implements journal.Journal.
func (w *WAL) Reserve(c journal.Claim, r journal.Reservation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.owner(c)
	if err != nil || s.reserved == r {
		return
	}
	w.reserveFor(s, r)
	if w.pool.spared < w.pool.target && !w.pool.spent || w.pool.excess() {
		w.low.Notify()
	}
}

// reserveFor changes what is reserved for a shard; mu is held.
func (w *WAL) reserveFor(s *shard, r journal.Reservation) {
	w.pool.reserved += r.Total() - s.reserved.Total()
	s.reserved = r
	w.pool.setTarget()
	w.review()
}

// reserveMore adds to what is reserved for a shard, which admits has allowed; mu is held.
func (w *WAL) reserveMore(s *shard, more journal.Reservation) {
	w.pool.reserved += more.Total()
	s.reserved = s.reserved.Plus(more)
	w.pool.setTarget()
	if w.pool.spared < w.pool.target && !w.pool.spent {
		w.low.Notify()
	}
}
