// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"io/fs"

	"github.com/triagemq/triagemq/internal/journal/wal/store"
)

// putSpare keeps a file that was freed for later.
func (w *WAL) putSpare(p *store.Spare) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.pool
	s.prepared += p.Usable(w.segmentSize)
	s.spared += p.Usable(w.segmentSize)
	s.spares = append(s.spares, p)
	s.tooLarge, s.skip = 0, 0
	w.review()
}

// returnSpare puts back a spare that was taken, or made.
func (w *WAL) returnSpare(p *store.Spare) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.spared += p.Usable(w.segmentSize)
	w.pool.spares = append(w.pool.spares, p)
}

// takeSpare returns the smallest spare of at least size bytes, or the largest if
// size is zero; nil if there is none. mu is held.
func (w *WAL) takeSpare(size uint64) *store.Spare {
	best := -1
	for i, p := range w.pool.spares {
		switch {
		case p.Size < size:
		case best < 0, (p.Size < w.pool.spares[best].Size) == (size > 0):
			best = i
		}
	}
	return w.take(best)
}

// takeSmallest returns the spare that is missed least, or nil; mu is held.
func (w *WAL) takeSmallest() *store.Spare { return w.takeSpare(1) }

// takeRecycled returns a file of at least size bytes that is written all over, or
// nil; mu is held. One that is much larger is left alone: an idle store would give
// it back, and then take it again.
func (w *WAL) takeRecycled(size uint64) *store.Spare {
	for i, p := range w.pool.spares {
		if p.Recycled() && p.Size >= size && p.Size <= 2*size {
			return w.take(i)
		}
	}
	return nil
}

// takeSurplus returns a spare without which there still is the target, or nil; mu
// is held.
func (w *WAL) takeSurplus(target uint64) *store.Spare { return w.take(w.surplus(target)) }

// surplus returns the index of the largest spare that is not needed for target
// bytes; -1 if there is none. mu is held.
func (w *WAL) surplus(target uint64) int {
	best := -1
	for i, p := range w.pool.spares {
		if w.pool.spared-p.Usable(w.segmentSize) >= target && (best < 0 || p.Size > w.pool.spares[best].Size) {
			best = i
		}
	}
	return best
}

// take takes the spare of that index into the caller's hands; -1 is none. mu is
// held.
func (w *WAL) take(i int) *store.Spare {
	if i < 0 {
		return nil
	}
	s := &w.pool
	p := s.spares[i]
	s.spares[i] = s.spares[len(s.spares)-1]
	s.spares[len(s.spares)-1] = nil
	s.spares = s.spares[:len(s.spares)-1]
	s.spared -= p.Usable(w.segmentSize)
	return p
}

// discard removes files that are of no use any more. That they could not be
// removed is an error, except that they were not there.
func (w *WAL) discard(spares []*store.Spare) error {
	if len(spares) == 0 {
		return nil
	}
	var errs []error
	for _, p := range spares {
		if err := w.fs.Remove(p.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if p.File != nil {
			errs = append(errs, p.File.Close())
		}
	}
	return errors.Join(append(errs, w.fs.SyncDir("."))...)
}
