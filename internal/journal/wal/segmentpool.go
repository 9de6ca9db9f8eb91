// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	// readyTarget is how many segments are kept ready: the next one, and the one
	// that is in use while another is made.
	readyTarget = 2
	// spareTarget is how many freed files are kept to be used again, beside the
	// reserve.
	spareTarget = 2
	// idlePool is how much of an idle store may be ready.
	idlePool = 24 << 20
	// maxSkip is how often at most the disk is measured, but not tried, after it
	// refused what it said it had.
	maxSkip = 63
)

// segmentPool is the space that appends will need.
type segmentPool struct {
	// ready are formatted segments, numbered on from the active one. Only the
	// holder of the segment token adds to them.
	ready []*store.Segment
	// spares are files that can become segments: recycled ones, and the reserve.
	spares []*store.Spare
	// prepared is what groups can use of ready, spares and the file that is being made.
	prepared uint64
	spared   uint64 // of that, what is in spares

	newest  uint64    // largest capacity of a segment so far; the next is larger
	largest [2]uint64 // the largest need of a group, in this segment and in the last

	// What measureDisk found, in bytes.
	limit  uint64 // a segment is no larger, unless a group needs it
	free   uint64 // on the disk
	margin uint64 // of that, what is left alone
	base   uint64 // of the target

	reserved uint64 // by all owners
	target   uint64 // what senders must leave

	lack     uint64 // need of a sender's group that found nothing ready; zero if none did
	behind   uint64 // need of one that found less than the target beside it; zero if none did
	asked    uint64 // the most that behind was since the store was idle: such groups come again
	owed     uint64 // need of a group for upkeep that was refused; zero if none was
	waiting  int    // groups for upkeep that wait for the maker
	tooLarge uint64 // need for which no segment could be made; zero if none was too large

	spent   bool   // the last attempt to make a file met a full disk
	refused uint64 // free at that time, if the disk had said that there was enough
	backoff int    // attempts to skip after the next such refusal
	skip    int    // attempts that are still to be skipped
}

func (s *segmentPool) first() *store.Segment {
	if len(s.ready) == 0 {
		return nil
	}
	return s.ready[0]
}

func (s *segmentPool) emptied() segmentPool {
	return segmentPool{newest: s.newest, limit: s.limit, free: s.free, target: s.target}
}

// capacity returns the size that the next segment should have; mu is held.
func (w *WAL) capacity() uint64 {
	s := &w.pool
	size := min(s.limit, max(w.first(), w.growth()*s.newest))
	if need := max(s.largest[0], s.largest[1]); need > 0 {
		size = max(size, w.segmentFor(need))
	}
	return size
}

// least returns the size below which a segment is not worth making.
func (w *WAL) least() uint64 { return min(w.segmentSize, w.first()) }

// keepable reports whether a file of size bytes is worth keeping as a spare; mu
// is held. One that is too small would stop the growth, but is good enough for
// a reserve that is too small itself.
func (w *WAL) keepable(size uint64) bool {
	s := &w.pool
	if s.spared < s.target || s.spent {
		return size >= w.least()
	}
	return size >= w.capacity() && s.spared+size <= s.target+spareTarget*w.capacity()
}

// firstSegment makes the segment with which a new store begins.
func (w *WAL) firstSegment(number uint64) (*store.Segment, error) {
	p, err := w.allocate(w.least(), w.least(), emergency)
	if err == nil && p == nil {
		err = journal.ErrFull
	}
	if err != nil {
		return nil, err
	}
	if err := store.Zero(p.File, 0, p.Size); err != nil {
		return nil, errors.Join(err, p.File.Close())
	}
	s, err := p.Format(w.fs, number, w.segmentSize)
	if err != nil {
		return nil, errors.Join(err, p.File.Close())
	}
	w.pool.prepared -= p.Usable(w.segmentSize)
	w.pool.newest = s.Head.Capacity
	return s, nil
}

// fillReserve makes the base of the reserve, before senders are admitted. It takes a few
// milliseconds; what would take longer is left to refillPool.
func (w *WAL) fillReserve() error {
	for {
		w.mu.Lock()
		missing := w.pool.target - min(w.pool.target, w.pool.spared)
		w.mu.Unlock()
		if missing == 0 {
			break
		}
		made, err := w.reserve(missing)
		if err != nil {
			return err
		}
		if !made {
			break // the status says so
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Full = false // nothing was known before
	w.review()
	return nil
}

// fits reports whether a group of need bytes has a place; mu is held.
func (w *WAL) fits(need uint64) bool {
	if w.log.free() >= need {
		return true
	}
	for _, s := range w.pool.ready {
		if s.FreeAfter(format.HeaderSize) >= need {
			return true
		}
	}
	return false
}

// ensureReady sees to it that a group of need bytes has a place. It is called by an
// Append for upkeep that cannot go on without, and waits at most until the
// preallocator, if that is at work, has cut short what it does.
func (w *WAL) ensureReady(need uint64) error {
	w.mu.Lock()
	w.pool.waiting++
	w.mu.Unlock()
	defer w.low.Notify() // the preallocator of Run has the rest to do, or to try again later
	w.segmentToken <- struct{}{}
	defer func() { <-w.segmentToken }()

	ok, err := w.provide(need, emergency)
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.pool
	s.waiting--
	if ok && s.owed <= need {
		s.owed = 0
	}
	if err == nil && !ok {
		s.owed = max(s.owed, need)
		err = journal.ErrFull
	}
	w.review()
	return err
}

// provide makes a place for a group of need bytes in the quickest way there is,
// and reports whether it could: it makes the first ready segment larger, or takes a
// spare, or makes a file, or, in an emergency, makes one file of several. The segment
// token is held.
func (w *WAL) provide(need uint64, b budget) (bool, error) {
	w.mu.Lock()
	err, done, first := w.usable(), w.fits(need), w.pool.first()
	size := w.segmentFor(need)
	w.mu.Unlock()
	if err != nil || done {
		return done, err
	}
	if first != nil {
		if err := w.enlarge(first, size, b); err != nil {
			return false, err
		}
	}
	w.mu.Lock()
	if w.fits(need) {
		w.mu.Unlock()
		return true, nil
	}
	p := w.takeSpare(size)
	w.mu.Unlock()
	if p == nil {
		p, err = w.allocate(max(size, w.least()), size, b)
	}
	if p == nil && err == nil && b == emergency {
		p, err = w.merge(size)
	}
	for p != nil && err == nil {
		made, failed := w.format(p)
		if made || failed != nil || b != emergency {
			return made, failed
		}
		// A file system that is full to the last block may need one of its own, for the
		// name or for the map of a file that is written for the first time.
		w.mu.Lock()
		several := len(w.pool.spares) > 1
		w.mu.Unlock()
		if !several || !w.giveUpSpare() {
			return false, nil
		}
		w.mu.Lock()
		p = w.takeSpare(size)
		w.mu.Unlock()
	}
	return false, err
}

// enlarge gives a segment that is ready, or became active since, more space, if
// there is any. The segment token is held.
func (w *WAL) enlarge(s *store.Segment, capacity uint64, b budget) error {
	old := s.Head.Capacity // only the holder of the token changes it
	w.measureDisk()
	w.mu.Lock()
	enough := capacity > old && w.pool.within(b) >= capacity-old
	w.mu.Unlock()
	if !enough {
		return nil
	}
	err := s.File.Allocate(int64(capacity))
	if errors.Is(err, vfs.ErrNoSpace) || s.Gone.Load() {
		return nil
	}
	larger := s.Head
	larger.Capacity = capacity
	if err == nil {
		err = s.File.Sync() // before the header says so
	}
	if err == nil {
		_, err = s.File.WriteAt(larger.Encode(), 0)
		if errors.Is(err, vfs.ErrNoSpace) {
			return nil // overwriting takes some here; the file has what either header says
		}
	}
	if err == nil {
		err = s.File.Sync()
	}
	if s.Gone.Load() {
		return nil // it was used and freed meanwhile, and its file perhaps closed
	}
	if err != nil {
		return w.fail(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.Head.Capacity = capacity
	if slices.Contains(w.pool.ready, s) {
		w.pool.prepared += capacity - old
	}
	w.review()
	return nil
}
