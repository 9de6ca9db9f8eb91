// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"io/fs"

	"github.com/triagemq/triagemq/internal/vfs"
)

const (
	// readyTarget is how many segments are kept ready: the next one, and the
	// reserve that keeps appends going when the disk is full.
	readyTarget = 2
	// spareTarget is how many freed files are kept to be used again.
	spareTarget = 2
	// firstCapacity is the size of the first segment. Each is four times the
	// last, up to the block: an empty store is quick to make and small, and a
	// busy one soon has large files.
	firstCapacity = 1 << 20
)

// stock is the space that appends will need.
type stock struct {
	// ready are formatted segments, numbered on from the active one. Only the
	// holder of the making token adds to them.
	ready  []*segment
	spares []*spare
	newest uint64 // largest capacity of a segment so far; the next is larger
	full   bool   // the last attempt to make one met a full disk
}

func (s *stock) first() *segment {
	if len(s.ready) == 0 {
		return nil
	}
	return s.ready[0]
}

func (s *stock) emptied() stock { return stock{newest: s.newest} }

// capacity returns the size that the next segment should have; mu is held.
func (w *WAL) capacity() uint64 {
	return min(w.block, max(firstCapacity, 4*w.stock.newest))
}

// keepable reports whether a file of size bytes is worth keeping as a spare; mu
// is held. One that is too small would stop the growth.
func (w *WAL) keepable(size uint64) bool {
	return len(w.stock.spares) < spareTarget && size >= w.capacity()
}

// supply sees to it that the first ready segment has room for size bytes of
// frames. It is called by an Append that cannot go on without.
func (w *WAL) supply(size uint64) error {
	defer poke(w.low) // Run's supplier has the rest to do, or to try again later
	w.making <- struct{}{}
	defer func() { <-w.making }()

	need := size + headerSize + 2*batchHeader + alignment
	need = min(w.block, (need+511)&^511)
	var p *spare
	w.mu.Lock()
	err, first := w.usable(), w.stock.first()
	if err == nil && first == nil {
		p = w.takeSpare()
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	if first == nil {
		if p == nil {
			// The caller waits, and so does its shard: no larger than need be.
			if p, err = w.makeSpare(min(w.block, max(firstCapacity, need))); err != nil {
				return w.lacking(err)
			}
		}
		if first, err = w.format(p); err != nil {
			return w.lacking(err)
		}
	}
	if first.head.capacity < need { // only the holder of making changes it
		return w.enlarge(first, need)
	}
	return nil
}

// enlarge gives a segment that is ready, or became active since, more room.
func (w *WAL) enlarge(s *segment, capacity uint64) error {
	if err := zero(s.file, s.head.capacity, capacity); err != nil {
		return w.lacking(err)
	}
	larger := s.head
	larger.capacity = capacity
	if _, err := s.file.WriteAt(larger.encode(), 0); err != nil {
		return w.fail(err)
	}
	if err := s.file.Sync(); err != nil {
		return w.fail(err)
	}
	w.mu.Lock()
	s.head.capacity = capacity
	w.mu.Unlock()
	return nil
}

// restock fills the stock up to its target. A full disk is not an error; it is
// what the status says.
func (w *WAL) restock() error {
	for {
		w.mu.Lock()
		err, short := w.usable(), len(w.stock.ready) < readyTarget
		size, bare := w.capacity(), len(w.stock.spares) == 0
		w.mu.Unlock()
		if err != nil {
			return err
		}
		if !short {
			w.relieve()
			return nil
		}
		if bare {
			// Without the token: an Append in need must not wait for a large file.
			p, err := w.makeSpare(size)
			if err != nil {
				return ignoreFull(w.lacking(err))
			}
			w.putSpare(p)
		}
		if err := w.stockOne(); err != nil {
			return ignoreFull(err)
		}
	}
}

// stockOne formats a spare if there still is one and it is still wanted.
func (w *WAL) stockOne() error {
	w.making <- struct{}{}
	defer func() { <-w.making }()
	w.mu.Lock()
	var p *spare
	if len(w.stock.ready) < readyTarget {
		p = w.takeSpare()
	}
	w.mu.Unlock()
	if p == nil {
		return nil
	}
	if _, err := w.format(p); err != nil {
		return w.lacking(err)
	}
	return nil
}

// format makes p the last of the ready segments. The making token is held.
func (w *WAL) format(p *spare) (*segment, error) {
	w.mu.Lock()
	number := w.log.active.number + uint64(len(w.stock.ready)) + 1
	w.mu.Unlock()

	s, err := p.format(w.fs, number, w.block)
	if err != nil {
		if errors.Is(err, vfs.ErrNoSpace) {
			w.putSpare(p)
			return nil, err
		}
		return nil, errors.Join(err, p.file.Close())
	}
	w.mu.Lock()
	w.stock.ready = append(w.stock.ready, s)
	w.stock.newest = max(w.stock.newest, s.head.capacity)
	w.mu.Unlock()
	return s, nil
}

// relieve ends the state of a full disk, if that is what we are in.
func (w *WAL) relieve() {
	w.mu.Lock()
	was := w.stock.full
	w.stock.full, w.status.Full = false, false
	w.mu.Unlock()
	if was {
		poke(w.wake)
	}
}

func (w *WAL) makeSpare(size uint64) (*spare, error) {
	return makeSpare(w.fs, spareName(w.spareID.Add(1)), size)
}

// lacking turns the failure to make a segment into ErrFull, if that is what it
// is, and into the final error otherwise. A process that has no file descriptor
// left is in the same state as one whose disk is full, and it passes as well.
func (w *WAL) lacking(err error) error {
	if !errors.Is(err, vfs.ErrNoSpace) && !errors.Is(err, vfs.ErrTooManyFiles) {
		return w.fail(err)
	}
	w.mu.Lock()
	w.stock.full, w.status.Full = true, true
	w.mu.Unlock()
	poke(w.wake)
	return ErrFull
}

func ignoreFull(err error) error {
	if errors.Is(err, ErrFull) {
		return nil
	}
	return err
}

// takeSpare returns a spare or nil; mu is held.
func (w *WAL) takeSpare() *spare {
	n := len(w.stock.spares)
	if n == 0 {
		return nil
	}
	p := w.stock.spares[n-1]
	w.stock.spares = w.stock.spares[:n-1]
	return p
}

// putSpare keeps a spare for later.
func (w *WAL) putSpare(p *spare) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stock.spares = append(w.stock.spares, p)
}

// discard removes files that are of no use any more. That they could not be
// removed is an error, except that they were not there.
func (w *WAL) discard(spares []*spare) error {
	if len(spares) == 0 {
		return nil
	}
	var errs []error
	for _, p := range spares {
		if err := w.fs.Remove(p.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		if p.file != nil {
			errs = append(errs, p.file.Close())
		}
	}
	return errors.Join(append(errs, w.fs.SyncDir("."))...)
}
