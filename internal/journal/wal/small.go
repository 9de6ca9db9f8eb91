// SPDX-License-Identifier: Apache-2.0

package wal

import "github.com/triagemq/triagemq/internal/journal/wal/store"

// A disk may have a thousand stores, one for each event hub, most of them with little in them.
// With Options.Small each takes what it needs:
//
//	                     large    small
//	first segment        1 MiB   64 KiB   each is larger than the last, up to the segment size
//	base of the reserve  8 MiB  384 KiB   grows with the active segment
//	ready when idle     24 MiB    1 MiB
const (
	smallFirst = 64 << 10
	smallBase  = 384 << 10
	smallIdle  = 1 << 20
)

// first returns the size of the first segment.
func (w *WAL) first() uint64 {
	if w.small {
		return smallFirst
	}
	return store.FirstCapacity
}

// growth returns how many times larger than the largest one the next segment is.
func (w *WAL) growth() uint64 {
	if w.pool.newest < store.FirstCapacity {
		return 2
	}
	return 4
}

// leastBase returns the base of the reserve that the store has at least; mu is held. Upkeep
// that no owner has announced grows with what is written.
func (w *WAL) leastBase() uint64 {
	switch {
	case !w.small:
		return baseReserve
	case w.log.active == nil: // it is being opened
		return smallBase
	}
	return min(baseReserve, max(smallBase, 4*w.log.active.Head.Capacity))
}

// idleReady returns how much of an idle store may be ready.
func (w *WAL) idleReady() uint64 {
	if w.small {
		return smallIdle
	}
	return idlePool
}
