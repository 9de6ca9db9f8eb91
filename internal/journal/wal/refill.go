// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// refillPool fills the pool up to its target, and removes what is much too much. A
// full disk is not an error; it is what the status says.
func (w *WAL) refillPool() error {
	w.measureDisk()
	w.mu.Lock()
	s := &w.pool
	s.skip = max(0, s.skip-1)
	if s.tooLarge > 0 && s.spendable() >= w.segmentFor(s.tooLarge) {
		s.tooLarge = 0
	}
	w.mu.Unlock()
	var refused uint64 // the need for which there was no place in this pass
	for {
		more, err := w.refillOne(&refused)
		if err != nil {
			return err
		}
		if !more {
			return w.shrink()
		}
	}
}

// refillOne makes the one thing that is missed most, and reports whether there
// is more to do. In order: a place for a group that was refused; a segment to go on
// with; the reserve; a second segment.
func (w *WAL) refillOne(refused *uint64) (more bool, err error) {
	w.segmentToken <- struct{}{}
	defer func() { <-w.segmentToken }()

	w.mu.Lock()
	s := &w.pool
	err = w.usable()
	need, ready, missing := max(s.lack, s.owed), len(s.ready), s.target+s.behind-min(s.target+s.behind, s.spared)
	w.mu.Unlock()
	if err != nil {
		return false, err
	}
	if need > *refused {
		ok, err := w.serve(need)
		if !ok {
			*refused = need
		}
		return true, err
	}
	if ready > 0 && missing > 0 {
		if made, err := w.reserve(missing); made || err != nil {
			return true, err
		}
	}
	if ready < readyTarget {
		if made, err := w.readyOne(); made || err != nil {
			return true, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if missing == 0 && ready >= readyTarget {
		s.spent = false
	}
	w.review()
	return false, nil
}

// serve makes a place for a group that was refused, and reports whether it could.
// The segment token is held.
func (w *WAL) serve(need uint64) (bool, error) {
	w.mu.Lock()
	s := &w.pool
	b := ordinary
	if s.owed > 0 {
		b = emergency
	}
	w.mu.Unlock()
	ok, err := w.provide(need, b)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.lack <= need {
		if s.lack > 0 && !ok && (s.tooLarge == 0 || s.lack < s.tooLarge) {
			s.tooLarge = s.lack // it got ErrBusy, and gets journal.ErrFull when it retries
		}
		s.lack = 0
	}
	if ok && s.owed <= need {
		s.owed = 0
	}
	w.review()
	return ok, err
}

// reserve makes a file for some of the missing bytes of the reserve, and reports
// whether it could. It is not written: it will be used in emergencies only. The
// segment token is held.
func (w *WAL) reserve(missing uint64) (bool, error) {
	const unit = 64 << 10
	w.mu.Lock()
	missing = max(missing, w.pool.target/8) // it grows with each message: few files, and ahead of them
	size := (missing + format.HeaderSize + format.BatchHeader + format.Alignment + unit - 1) &^ (unit - 1)
	size = min(w.pool.limit, max(w.least(), size))
	w.mu.Unlock()
	p, err := w.allocate(size, w.least(), ordinary)
	if p == nil || err != nil {
		return false, err
	}
	w.returnSpare(p)
	return true, nil
}

// readyOne adds one to the ready segments, and reports whether it could: a
// recycled file, else a new one, else, on a full disk, one of the reserve. (That
// takes nothing from upkeep: who may use it is a matter of how much there is.) The
// segment token is held.
func (w *WAL) readyOne() (bool, error) {
	w.mu.Lock()
	size := w.capacity()
	p := w.takeRecycled(size)
	w.mu.Unlock()
	if p == nil {
		var err error
		if p, err = w.allocate(size, w.least(), ordinary); err != nil {
			return false, err
		}
		if p != nil {
			if err := w.fill(p); err != nil {
				return false, w.lost(p, err)
			}
		}
	}
	if p == nil {
		w.mu.Lock()
		p = w.takeSpare(0)
		w.mu.Unlock()
	}
	if p == nil {
		return false, nil
	}
	return w.format(p)
}

// fill writes zeros over an allocated file: a commit over written blocks costs no
// metadata. It stops early, which does no harm, when somebody waits for the file,
// or soon will: when in the time of a few more steps the ready segments would be
// used up. Nor is it worth it while so much is appended that commits are large: then
// their metadata is nothing beside them, and zeros would take half of the disk.
func (w *WAL) fill(p *store.Spare) error {
	const (
		steps = 8                  // a step takes about as long as to format the file
		much  = store.ZeroStep / 4 // appended during one step
	)
	w.mu.Lock()
	appended := w.log.appended
	w.mu.Unlock()
	for off := uint64(0); off < p.Size; off += store.ZeroStep {
		w.mu.Lock()
		s := &w.pool
		kept := max(s.target, s.spared) + p.Usable(w.segmentSize) // what is not ready, or not for senders
		have := w.available()
		used := w.log.appended - appended
		hurry := s.lack > 0 || s.waiting > 0 || w.stopping.Load() || used > 0 && (have < kept+steps*used || used >= much)
		appended += used
		w.mu.Unlock()
		if hurry {
			return nil
		}
		if err := store.Zero(p.File, off, min(p.Size, off+store.ZeroStep)); err != nil {
			return err
		}
	}
	return nil
}

// format makes p the last of the ready segments, and reports whether there was
// space for that. The segment token is held.
func (w *WAL) format(p *store.Spare) (bool, error) {
	w.mu.Lock()
	number := w.log.active.Number + uint64(len(w.pool.ready)) + 1
	w.mu.Unlock()

	s, err := p.Format(w.fs, number, w.segmentSize)
	if passes(err) && p.Name != store.SegmentName(number) {
		w.returnSpare(p)
		return false, nil
	}
	if err != nil { // also if it was renamed and the new name may not be durable
		return false, w.fail(errors.Join(err, p.File.Close()))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.ready = append(w.pool.ready, s)
	w.pool.newest = max(w.pool.newest, s.Head.Capacity)
	w.review()
	return true, nil
}

// lost closes a file whose contents are unknown. Its error is
// the end, unless there was merely no space.
func (w *WAL) lost(p *store.Spare, err error) error {
	w.mu.Lock()
	w.pool.prepared -= p.Usable(w.segmentSize)
	w.pool.spent = true
	w.review()
	w.mu.Unlock()
	if !passes(err) {
		return w.fail(errors.Join(err, p.File.Close()))
	}
	if err := w.discard([]*store.Spare{p}); err != nil {
		return w.fail(err)
	}
	return nil
}

// passes reports whether err is a lack of space or of file descriptors. A process
// that has no descriptor left is in the same state as one whose disk is full: it
// cannot make a file for now.
func passes(err error) bool {
	return errors.Is(err, vfs.ErrNoSpace) || errors.Is(err, vfs.ErrTooManyFiles)
}

// budget says how much of the free space may be used.
type budget uint8

const (
	ordinary  budget = iota // all but the margin
	emergency               // all of it
)

// within returns how much of the disk a budget allows; mu is held.
func (s *segmentPool) within(b budget) uint64 {
	if b == emergency {
		return s.free
	}
	return s.spendable()
}

// allocate makes a file of size bytes, or of fewer if the disk has no more, but
// at least of least; nil says that there is no space. The disk is asked first: it
// costs others dear to find every last byte taken, even if only for a moment.
func (w *WAL) allocate(size, least uint64, b budget) (*store.Spare, error) {
	w.measureDisk()
	w.mu.Lock()
	s := &w.pool
	free := s.within(b)
	if b == ordinary && s.skip > 0 && free <= s.refused {
		free = 0
	}
	w.mu.Unlock()

	size = min(size, free&^511)
	tried := false
	for size >= least {
		p, err := store.AllocateSpare(w.fs, store.ReserveName(w.spareID.Add(1)), size)
		if err == nil {
			w.mu.Lock()
			s.prepared += p.Usable(w.segmentSize)
			s.spent, s.tooLarge, s.backoff, s.skip = false, 0, 0, 0
			w.review()
			w.mu.Unlock()
			return p, nil
		}
		if !passes(err) {
			return nil, w.fail(err)
		}
		if errors.Is(err, vfs.ErrTooManyFiles) {
			break // whatever its size, and nothing was written: try again soon
		}
		tried = true
		if size == least {
			break
		}
		size = max(least, size/2&^511)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s.spent = true
	if tried && b == ordinary { // it has less than it says; a quota, perhaps
		s.backoff = min(2*s.backoff+1, maxSkip)
		s.skip, s.refused = s.backoff+1, free
	}
	w.review()
	return nil, nil
}

// merge makes one file of size bytes in place of several spares, if that can be;
// nil says that it cannot. The segment token is held.
func (w *WAL) merge(size uint64) (*store.Spare, error) {
	w.mu.Lock()
	s := &w.pool
	sum := s.free
	var given []*store.Spare
	for sum < size {
		p := w.takeSmallest()
		if p == nil {
			break
		}
		given = append(given, p)
		sum += p.Size
	}
	w.mu.Unlock()
	if sum < size || len(given) == 0 {
		for _, p := range given {
			w.returnSpare(p)
		}
		return nil, nil
	}
	if err := w.give(given); err != nil {
		return nil, err
	}
	return w.allocate(size, size, emergency)
}

// give removes files that are in the caller's hands.
func (w *WAL) give(spares []*store.Spare) error {
	w.mu.Lock()
	for _, p := range spares {
		w.pool.prepared -= p.Usable(w.segmentSize)
	}
	w.review()
	w.mu.Unlock()
	if err := w.discard(spares); err != nil {
		return w.fail(err)
	}
	return nil
}

// giveUpSpare removes a spare for the sake of its space, which is needed more
// elsewhere, and reports whether there was one.
func (w *WAL) giveUpSpare() bool {
	w.mu.Lock()
	p := w.takeSmallest()
	w.mu.Unlock()
	return p != nil && w.give([]*store.Spare{p}) == nil
}
