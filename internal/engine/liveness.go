// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// liveness counts, for each block of the journal, what this shard wrote into it
// and how much of that is bodies some machine still refers to (invariant 2).
type liveness struct {
	claim   journal.Claim
	blocks  map[uint64]*usage
	written uint64 // sum over blocks
	live    uint64 // sum over blocks
	freed   uint64 // all that ever stopped being live
}

type usage struct {
	written uint64
	live    uint64
}

func newLiveness(claim journal.Claim) liveness {
	return liveness{claim: claim, blocks: make(map[uint64]*usage)}
}

// blockOf returns the block in which a body is.
func (l *liveness) blockOf(ref machine.Ref) uint64 { return l.claim.Block(journal.Position(ref.At)) }

func (l *liveness) at(b uint64) *usage {
	u, ok := l.blocks[b]
	if !ok {
		u = &usage{}
		l.blocks[b] = u
	}
	return u
}

func (l *liveness) wrote(p journal.Position, n int) {
	l.at(l.claim.Block(p)).written += uint64(n)
	l.written += uint64(n)
}

// restore takes over what an earlier life had written into a block.
func (l *liveness) restore(block, written uint64) {
	u := l.at(block)
	l.written += written - u.written
	u.written = written
}

func (l *liveness) place(ref machine.Ref) {
	l.at(l.blockOf(ref)).live += uint64(ref.Size)
	l.live += uint64(ref.Size)
}

func (l *liveness) free(ref machine.Ref) {
	l.at(l.blockOf(ref)).live -= uint64(ref.Size)
	l.live -= uint64(ref.Size)
	l.freed += uint64(ref.Size)
}

// keep returns the blocks before the one of from that hold live bodies, and
// forgets the others.
func (l *liveness) keep(from journal.Position) []uint64 {
	first := l.claim.Block(from)
	var kept []uint64
	for _, b := range slices.Sorted(maps.Keys(l.blocks)) {
		u := l.blocks[b]
		switch {
		case b >= first:
		case u.live > 0:
			kept = append(kept, b)
		default:
			l.written -= u.written
			delete(l.blocks, b)
		}
	}
	return kept
}

// sparse returns the blocks before the one of tail in which little lives, emptiest
// first, as long as what lives in them is at most budget bytes together. Little is
// less than half of what this shard has written, or of its share of a block that is
// kept because of it: else a few messages would keep what others have written around
// them.
func (l *liveness) sparse(tail journal.Position, budget uint64, kept map[uint64]journal.RetainedBlock) map[uint64]bool {
	current := l.claim.Block(tail)
	var bs []uint64
	for b, u := range l.blocks {
		whole := u.written
		if k, ok := kept[b]; ok {
			whole = max(whole, k.Share())
		}
		if b < current && u.live > 0 && u.live*2 < whole {
			bs = append(bs, b)
		}
	}
	slices.SortFunc(bs, func(a, b uint64) int {
		ua, ub := l.blocks[a], l.blocks[b]
		if ua.live != ub.live {
			return int(int64(ua.live) - int64(ub.live))
		}
		return int(int64(a) - int64(b))
	})
	compact := make(map[uint64]bool)
	for _, b := range bs {
		u := l.blocks[b]
		if u.live > budget {
			break
		}
		budget -= u.live
		compact[b] = true
	}
	return compact
}

// gain returns how many bytes a snapshot that moves the bodies out of compact would
// set free before the block of end, and how many it moves. There are two views of
// it, of which the larger counts: what this shard has written to blocks in which
// nothing of it is alive, which others may need still, but not for its sake; and the
// blocks that are kept because of it, whoever has written them: all of those that
// nobody else keeps, and its share of the others if it gives them up.
func (l *liveness) gain(end journal.Position, kept map[uint64]journal.RetainedBlock, compact map[uint64]bool) (freed, moved uint64) {
	current := l.claim.Block(end)
	var own, held uint64
	for b, u := range l.blocks {
		switch {
		case b >= current:
		case compact[b]:
			own += u.written - min(u.written, u.live)
			moved += u.live
		case u.live == 0:
			own += u.written
		}
	}
	for b, k := range kept {
		u := l.blocks[b]
		switch {
		case b >= current:
		case compact[b]:
			held += k.Share() - min(k.Share(), u.live)
		case k.By == 1 && (u == nil || u.live == 0):
			held += k.Size
		}
	}
	return max(own, held), moved
}

// retains reports whether the block of a body was not given up.
func (l *liveness) retains(ref machine.Ref) bool {
	_, ok := l.blocks[l.blockOf(ref)]
	return ok
}
