// SPDX-License-Identifier: Apache-2.0

package wal

import "github.com/triagemq/triagemq/internal/journal"

// Usage implements journal.Journal.
func (w *WAL) Usage(c journal.Claim) journal.Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.owner(c)
	if err != nil {
		return journal.Usage{}
	}
	u := journal.Usage{HeldBack: w.since(s.From)}
	manifest := uint64(128) // about how many bytes of the log it takes
	for _, other := range w.shards {
		manifest += 48 + 10*uint64(len(other.Segments))
		u.Reserved += other.reserved.Total()
		u.Settling += other.reserved.Settling
		u.Promised += other.reserved.Promised
		if other.From != 0 && other.From < s.From {
			u.HeldBack = 0
		}
	}
	u.Reserved += uint64(len(w.shards)) * manifest // each Truncate writes one
	u.Available = w.available()
	if !w.pool.spent {
		u.Free = w.pool.spendable()
	}
	for _, s := range w.shards {
		if w.keepsOld(s) {
			u.Keepers++
		}
	}
	return u
}

// Retained implements journal.Journal.
func (w *WAL) Retained(c journal.Claim) map[uint64]journal.RetainedSegment {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, err := w.owner(c)
	if err != nil {
		return nil
	}
	bodies := make(map[uint64]int) // how many shards keep a segment for its bodies
	for _, other := range w.shards {
		for _, b := range other.Segments {
			if b < uint64(other.From)/w.segmentSize {
				bodies[b]++
			}
		}
	}
	kept := make(map[uint64]journal.RetainedSegment)
	add := func(n uint64) {
		seg := w.segs[n]
		if seg == nil || seg == w.log.active {
			return
		}
		by := bodies[n]
		for _, other := range w.shards {
			if other.From != 0 && uint64(other.From)/w.segmentSize <= n {
				by++
			}
		}
		kept[n] = journal.RetainedSegment{Size: seg.Head.Capacity, By: by}
	}
	from := uint64(s.From) / w.segmentSize
	for _, b := range s.Segments {
		add(b)
	}
	for n := range w.segs {
		if n >= from {
			add(n)
		}
	}
	return kept
}

// keepsOld reports whether a shard keeps a segment other than the active one; mu is
// held.
func (w *WAL) keepsOld(s *shard) bool {
	active := uint64(0)
	if w.log.active != nil {
		active = w.log.active.Number
	}
	return len(s.Segments) > 0 || uint64(s.From)/w.segmentSize < active
}

// since returns the bytes of the log behind a position; mu is held. A segment
// that is sealed counts whole: what is left free in it is less than a group.
func (w *WAL) since(from journal.Position) uint64 {
	first, off := uint64(from)/w.segmentSize, uint64(from)%w.segmentSize
	var sum uint64
	for n, seg := range w.segs {
		switch {
		case n < first:
		case seg == w.log.active:
			sum += w.log.off
		default:
			sum += seg.Head.Capacity
		}
	}
	return sum - min(sum, off)
}
