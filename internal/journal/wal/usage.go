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
	u := journal.Usage{Behind: w.since(s.From), Oldest: true}
	manifest := uint64(128) // about how many bytes of the log it takes
	for _, other := range w.shards {
		manifest += 48 + 10*uint64(len(other.Blocks))
		u.Reserved += other.reserved
		if other.From != 0 && other.From < s.From {
			u.Oldest = false
		}
	}
	u.Reserved += uint64(len(w.shards)) * manifest // each Truncate writes one
	u.Available = w.available()
	if w.status.Full {
		u.Alone = w.alone(s)
	}
	return u
}

// alone returns the segments that only one shard needs, and their sizes; mu is
// held. Whether it does need them the shard has to know.
func (w *WAL) alone(s *shard) map[uint64]uint64 {
	from := uint64(w.log.synced) / w.block
	needed := make(map[uint64]bool)
	for _, other := range w.shards {
		if other == s || other.From == 0 {
			continue
		}
		from = min(from, uint64(other.From)/w.block)
		for _, b := range other.Blocks {
			needed[b] = true
		}
	}
	alone := make(map[uint64]uint64)
	for n, seg := range w.segs {
		if n < from && !needed[n] && seg != w.log.active {
			alone[n] = seg.head.capacity
		}
	}
	return alone
}

// since returns the bytes of the log behind a position; mu is held. A segment
// that is sealed counts whole: what is left free in it is less than a group.
func (w *WAL) since(from journal.Position) uint64 {
	first, off := uint64(from)/w.block, uint64(from)%w.block
	var sum uint64
	for n, seg := range w.segs {
		switch {
		case n < first:
		case seg == w.log.active:
			sum += w.log.off
		default:
			sum += seg.head.capacity
		}
	}
	return sum - min(sum, off)
}
