// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// Liveness counts, for each segment of the journal, what this shard wrote into it
// and how much of that is bodies some machine still refers to.
type Liveness struct {
	claim    journal.Claim
	segments map[uint64]*Usage
	Written  uint64 // sum over segments
	Live     uint64 // sum over segments
	Freed    uint64 // all that ever stopped being live
}

// Usage is what a shard has in one segment.
type Usage struct {
	Written uint64 // bytes of records
	Live    uint64 // bytes of bodies that are referred to
}

// NewLiveness counts for the owner of a claim.
func NewLiveness(claim journal.Claim) Liveness {
	return Liveness{claim: claim, segments: make(map[uint64]*Usage)}
}

// SegmentOf returns the segment in which a body is.
func (l *Liveness) SegmentOf(ref machine.Ref) uint64 {
	return l.claim.Segment(journal.Position(ref.At))
}

// Segments returns the numbers of the segments that are counted, ascending.
func (l *Liveness) Segments() []uint64 { return slices.Sorted(maps.Keys(l.segments)) }

// Usage returns what the shard has in a segment.
func (l *Liveness) Usage(segment uint64) Usage { return *l.segments[segment] }

func (l *Liveness) at(b uint64) *Usage {
	u, ok := l.segments[b]
	if !ok {
		u = &Usage{}
		l.segments[b] = u
	}
	return u
}

// Wrote counts a record of n bytes.
func (l *Liveness) Wrote(p journal.Position, n int) {
	l.at(l.claim.Segment(p)).Written += uint64(n)
	l.Written += uint64(n)
}

// Restore takes over what an earlier life had written into a segment.
func (l *Liveness) Restore(segment, written uint64) {
	u := l.at(segment)
	l.Written += written - u.Written
	u.Written = written
}

// Add counts a reference to a body.
func (l *Liveness) Add(ref machine.Ref) {
	l.at(l.SegmentOf(ref)).Live += uint64(ref.Size)
	l.Live += uint64(ref.Size)
}

// Free undoes Add.
func (l *Liveness) Free(ref machine.Ref) {
	l.at(l.SegmentOf(ref)).Live -= uint64(ref.Size)
	l.Live -= uint64(ref.Size)
	l.Freed += uint64(ref.Size)
}

// Lose says that a segment is not there any more, although bodies in it are referred to:
// nothing is gained by giving it up, and nothing can be moved out of it.
func (l *Liveness) Lose(segment uint64) {
	u := l.at(segment)
	l.Written -= u.Written
	u.Written = 0
}

// Keep returns the segments before the one of from that hold live bodies, and
// forgets the others.
func (l *Liveness) Keep(from journal.Position) []uint64 {
	first := l.claim.Segment(from)
	var kept []uint64
	for _, b := range slices.Sorted(maps.Keys(l.segments)) {
		u := l.segments[b]
		switch {
		case b >= first:
		case u.Live > 0:
			kept = append(kept, b)
		default:
			l.Written -= u.Written
			delete(l.segments, b)
		}
	}
	return kept
}

// Sparse returns the segments before the one of tail in which little lives, emptiest
// first, as long as what lives in them is at most budget bytes together. Little is
// less than half of what this shard has written, or of its share of a segment that is
// kept because of it: else a few messages would keep what others have written around
// them.
func (l *Liveness) Sparse(tail journal.Position, budget uint64, kept map[uint64]journal.RetainedSegment) map[uint64]bool {
	current := l.claim.Segment(tail)
	var bs []uint64
	for b, u := range l.segments {
		whole := u.Written
		if k, ok := kept[b]; ok {
			whole = max(whole, k.Share())
		}
		if b < current && u.Live > 0 && u.Live*2 < whole {
			bs = append(bs, b)
		}
	}
	slices.SortFunc(bs, func(a, b uint64) int {
		ua, ub := l.segments[a], l.segments[b]
		if ua.Live != ub.Live {
			return int(int64(ua.Live) - int64(ub.Live))
		}
		return int(int64(a) - int64(b))
	})
	compact := make(map[uint64]bool)
	for _, b := range bs {
		u := l.segments[b]
		if u.Live > budget {
			break
		}
		budget -= u.Live
		compact[b] = true
	}
	return compact
}

// Gain returns how many bytes a snapshot that moves the bodies out of compact would
// set free before the segment of end, and how many it moves. There are two views of
// it, of which the larger counts: what this shard has written to segments in which
// nothing of it is alive, which others may need still, but not for its sake; and the
// segments that are kept because of it, no matter which shard has written them: all of those that no
// other shard keeps, and its share of the others if it drops them.
func (l *Liveness) Gain(end journal.Position, kept map[uint64]journal.RetainedSegment, compact map[uint64]bool) (freed, moved uint64) {
	current := l.claim.Segment(end)
	var own, held uint64
	for b, u := range l.segments {
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
		u := l.segments[b]
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

// Retains reports whether the segment of a body was not given up.
func (l *Liveness) Retains(ref machine.Ref) bool {
	_, ok := l.segments[l.SegmentOf(ref)]
	return ok
}
