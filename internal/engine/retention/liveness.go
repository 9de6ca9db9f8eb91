// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// Liveness counts, for each block of the journal, what this shard wrote into it
// and how much of that is bodies some machine still refers to.
type Liveness struct {
	claim   journal.Claim
	blocks  map[uint64]*Usage
	Written uint64 // sum over blocks
	Live    uint64 // sum over blocks
	Freed   uint64 // all that ever stopped being live
}

// Usage is what a shard has in one block.
type Usage struct {
	Written uint64 // bytes of records
	Live    uint64 // bytes of bodies that are referred to
}

// NewLiveness counts for the owner of a claim.
func NewLiveness(claim journal.Claim) Liveness {
	return Liveness{claim: claim, blocks: make(map[uint64]*Usage)}
}

// BlockOf returns the block in which a body is.
func (l *Liveness) BlockOf(ref machine.Ref) uint64 { return l.claim.Block(journal.Position(ref.At)) }

// Blocks returns the numbers of the blocks that are counted, ascending.
func (l *Liveness) Blocks() []uint64 { return slices.Sorted(maps.Keys(l.blocks)) }

// Usage returns what the shard has in a block.
func (l *Liveness) Usage(block uint64) Usage { return *l.blocks[block] }

func (l *Liveness) at(b uint64) *Usage {
	u, ok := l.blocks[b]
	if !ok {
		u = &Usage{}
		l.blocks[b] = u
	}
	return u
}

// Wrote counts a record of n bytes.
func (l *Liveness) Wrote(p journal.Position, n int) {
	l.at(l.claim.Block(p)).Written += uint64(n)
	l.Written += uint64(n)
}

// Restore takes over what an earlier life had written into a block.
func (l *Liveness) Restore(block, written uint64) {
	u := l.at(block)
	l.Written += written - u.Written
	u.Written = written
}

// Add counts a reference to a body.
func (l *Liveness) Add(ref machine.Ref) {
	l.at(l.BlockOf(ref)).Live += uint64(ref.Size)
	l.Live += uint64(ref.Size)
}

// Free undoes Add.
func (l *Liveness) Free(ref machine.Ref) {
	l.at(l.BlockOf(ref)).Live -= uint64(ref.Size)
	l.Live -= uint64(ref.Size)
	l.Freed += uint64(ref.Size)
}

// Lose says that a block is not there any more, although bodies in it are referred to:
// nothing is gained by giving it up, and nothing can be moved out of it.
func (l *Liveness) Lose(block uint64) {
	u := l.at(block)
	l.Written -= u.Written
	u.Written = 0
}

// Keep returns the blocks before the one of from that hold live bodies, and
// forgets the others.
func (l *Liveness) Keep(from journal.Position) []uint64 {
	first := l.claim.Block(from)
	var kept []uint64
	for _, b := range slices.Sorted(maps.Keys(l.blocks)) {
		u := l.blocks[b]
		switch {
		case b >= first:
		case u.Live > 0:
			kept = append(kept, b)
		default:
			l.Written -= u.Written
			delete(l.blocks, b)
		}
	}
	return kept
}

// Sparse returns the blocks before the one of tail in which little lives, emptiest
// first, as long as what lives in them is at most budget bytes together. Little is
// less than half of what this shard has written, or of its share of a block that is
// kept because of it: else a few messages would keep what others have written around
// them.
func (l *Liveness) Sparse(tail journal.Position, budget uint64, kept map[uint64]journal.RetainedBlock) map[uint64]bool {
	current := l.claim.Block(tail)
	var bs []uint64
	for b, u := range l.blocks {
		whole := u.Written
		if k, ok := kept[b]; ok {
			whole = max(whole, k.Share())
		}
		if b < current && u.Live > 0 && u.Live*2 < whole {
			bs = append(bs, b)
		}
	}
	slices.SortFunc(bs, func(a, b uint64) int {
		ua, ub := l.blocks[a], l.blocks[b]
		if ua.Live != ub.Live {
			return int(int64(ua.Live) - int64(ub.Live))
		}
		return int(int64(a) - int64(b))
	})
	compact := make(map[uint64]bool)
	for _, b := range bs {
		u := l.blocks[b]
		if u.Live > budget {
			break
		}
		budget -= u.Live
		compact[b] = true
	}
	return compact
}

// Gain returns how many bytes a snapshot that moves the bodies out of compact would
// set free before the block of end, and how many it moves. There are two views of
// it, of which the larger counts: what this shard has written to blocks in which
// nothing of it is alive, which others may need still, but not for its sake; and the
// blocks that are kept because of it, whoever has written them: all of those that
// nobody else keeps, and its share of the others if it gives them up.
func (l *Liveness) Gain(end journal.Position, kept map[uint64]journal.RetainedBlock, compact map[uint64]bool) (freed, moved uint64) {
	current := l.claim.Block(end)
	var own, held uint64
	for b, u := range l.blocks {
		switch {
		case b >= current:
		case compact[b]:
			own += u.Written - min(u.Written, u.Live)
			moved += u.Live
		case u.Live == 0:
			own += u.Written
		}
	}
	for b, k := range kept {
		u := l.blocks[b]
		switch {
		case b >= current:
		case compact[b]:
			held += k.Share() - min(k.Share(), u.Live)
		case k.By == 1 && (u == nil || u.Live == 0):
			held += k.Size
		}
	}
	return max(own, held), moved
}

// Retains reports whether the block of a body was not given up.
func (l *Liveness) Retains(ref machine.Ref) bool {
	_, ok := l.blocks[l.BlockOf(ref)]
	return ok
}
