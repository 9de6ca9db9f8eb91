// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
)

// Append implements journal.Journal. It touches the disk in one case only: when a
// group for upkeep finds no segment ready. It is then the one to make it.
func (w *WAL) Append(c journal.Claim, g *journal.Group) error {
	records, at := g.Records, g.At
	size := 0
	for _, r := range records {
		size += format.FrameSize(len(r))
	}
	if uint64(size) > w.largest() {
		return journal.ErrTooLarge
	}
	if len(records) == 0 {
		return nil
	}
	at = at[:len(records)] // panics here, before anything is done, if the caller erred

	w.mu.Lock()
	if err := w.place(c, g, uint64(size)+format.BatchHeader); err != nil {
		w.mu.Unlock()
		return err
	}
	first := w.put(c, records, at, size)
	w.mu.Unlock()

	if first {
		w.wake.Notify()
	}
	return nil
}

// place makes the active segment one with space for need bytes, or returns why
// it cannot; mu is held, but for the time that a segment is made.
func (w *WAL) place(c journal.Claim, g *journal.Group, need uint64) error {
	for {
		if _, err := w.owner(c); err != nil {
			return err
		}
		if g.Use == journal.Ordinary {
			return w.placeSenders(c, g, need)
		}
		if w.fit(need) {
			return nil
		}
		w.mu.Unlock()
		err := w.ensureReady(need)
		w.mu.Lock()
		if err != nil {
			return err
		}
	}
}

// placeSenders is place for a group that is refused instead of waiting. Without Run
// no preallocator makes a segment, so it is made here.
func (w *WAL) placeSenders(c journal.Claim, g *journal.Group, need uint64) error {
	for tried := false; ; tried = true {
		err := w.admits(need, g.More.Total())
		if err == nil && !w.fit(need) {
			err = w.noteNoSpace(need)
		}
		if err == nil {
			w.reserveMore(w.shards[c.Shard], g.More)
			return nil
		}
		if !errors.Is(err, journal.ErrBusy) || w.log.congested || tried || w.preallocating.Load() {
			return err
		}
		w.mu.Unlock()
		err = w.refillPool()
		w.mu.Lock()
		if err == nil {
			_, err = w.owner(c) // the claim may have ended meanwhile
		}
		if err != nil {
			return err
		}
	}
}

// largest returns the bytes that a group of frames may take.
func (w *WAL) largest() uint64 {
	return w.segmentSize - format.HeaderSize - 2*format.BatchHeader - format.Alignment
}

// fit makes the active segment one with space for need bytes and reports
// whether it could; mu is held. A ready segment that is too small, which is rare,
// is sealed with nothing in it.
func (w *WAL) fit(need uint64) bool {
	w.pool.largest[0] = max(w.pool.largest[0], need)
	if w.log.free() >= need {
		return true
	}
	for i, next := range w.pool.ready {
		if next.FreeAfter(format.HeaderSize) < need {
			continue
		}
		for range i + 1 {
			w.advance()
		}
		w.low.Notify()
		return true
	}
	return false
}

// advance seals the active segment and goes on with the first that is ready; mu is
// held.
func (w *WAL) advance() {
	if !w.log.sealed {
		w.push(format.KindSeal)
	}
	s := &w.pool
	next := s.ready[0]
	s.ready = s.ready[1:]
	s.prepared -= next.FreeAfter(format.HeaderSize)
	s.largest = [2]uint64{0, s.largest[0]}
	w.segs[next.Number] = next
	w.log.active, w.log.off, w.log.sealed = next, format.HeaderSize, false
}

// push adds an empty batch to pending and returns it; mu is held.
func (w *WAL) push(k format.Kind) *batch {
	b := new(batch)
	if n := len(w.log.unused); n > 0 {
		b = w.log.unused[n-1]
		w.log.unused[n-1] = nil
		w.log.unused = w.log.unused[:n-1]
	}
	b.reset(w.log.active, w.log.off, k, w.log.number)
	w.log.pending = append(w.log.pending, b)
	w.log.off += format.BatchHeader
	w.log.unsynced += format.BatchHeader
	return b
}

// put copies records, for which there is space, into the open batch and reports
// whether they are the first in it; mu is held. What it leaves to the committer
// is what would take time here: the checksums.
func (w *WAL) put(c journal.Claim, records [][]byte, at []journal.Position, size int) (first bool) {
	b := w.open(size)
	first = b.count == 0
	n := len(b.buf)
	if cap(b.buf)-n < size {
		b.buf = slices.Grow(b.buf, max(size, n)) // at least twice: few copies on the way up
	}
	b.buf = b.buf[:n+size]
	for i, r := range records {
		end := n + format.FrameSize(len(r))
		format.Frame{Shard: c.Shard, Epoch: c.Epoch, Number: w.log.number, Payload: r}.Put(b.buf[n:end])
		b.last = b.seg.Position(b.off + uint64(n))
		at[i] = b.last
		w.log.number++
		n = end
	}
	b.count += uint32(len(records))
	w.log.off = b.end()
	w.log.appended += uint64(size)
	if w.log.unsynced += uint64(size); w.log.unsynced > w.unsynced && !w.log.congested {
		w.review()
	}
	return first
}

// open returns the batch that takes the next group; mu is held.
func (w *WAL) open(size int) *batch {
	if n := len(w.log.pending); n > 0 {
		b := w.log.pending[n-1]
		if b.kind == format.KindRecords && b.seg == w.log.active && len(b.buf)+size <= maxBatch {
			return b
		}
	}
	return w.push(format.KindRecords)
}
