// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/machine"
)

// tolerance is how a replay goes on without records that a repair has dropped. Numbers of
// events that are lost are not used again: there is a gap.
type tolerance struct {
	on      bool
	missing int // events
	// uncertain says that the records which are missing may have given numbers that
	// nothing behind them shows.
	uncertain bool
	gaps      []Gap
}

const (
	// lostNumbers is more events than a partition can have in records that are lost: the
	// smallest events of that number take five terabytes. So many numbers are left out
	// where it is not known how many were given. Clients count up to 2⁵³.
	lostNumbers = 1 << 40
	// lostProducers is more producers than can have got their ids in such records. With
	// the id of another a producer would have its batches taken for those of the other.
	lostProducers = 1 << 32
	// maxGaps is how many gaps are remembered, to be reported.
	maxGaps = 64
)

// Gap is numbers that no event has, as records are lost: those from First on, up to and
// without End.
type Gap struct {
	First, End SeqNo
	// Unsure says that it is not known how many of the numbers were given.
	Unsure bool
}

// Gaps returns which numbers are missing, oldest first, as far as the records show. It is
// for the caller that has just replayed a history.
func (p *Partition) Gaps() []Gap { return p.restore.gaps }

var _ machine.Tolerant = (*Partition)(nil)

// Tolerate implements [machine.Tolerant].
func (p *Partition) Tolerate() { p.restore.on, p.restore.uncertain = true, true }

// Lost implements [machine.Tolerant].
func (p *Partition) Lost() { p.restore.on, p.restore.uncertain = true, true }

// Missing implements [machine.Tolerant].
func (p *Partition) Missing() int { return p.restore.missing }

// EndReplay implements [machine.Tolerant]: a snapshot that has no end is what it was, and
// what commands wrote since. Where numbers may have been given that no record shows, as those
// of the end of the log are lost, they are left out. The next batch, or snapshot, makes that
// durable; a replay before it comes to the same number.
func (p *Partition) EndReplay() {
	p.restore.loading = false
	if p.restore.uncertain {
		p.skip()
	}
}

// skip leaves out all numbers that lost records can have given.
func (p *Partition) skip() {
	p.restore.uncertain = false
	p.atLeast(p.next + min(lostNumbers, maxSeq-p.next))
	p.producers.assigned += min(lostProducers, math.MaxInt64-p.producers.assigned)
}

// Skip has a partition, of which nothing is left but that there was one, begin behind the
// numbers that it can have given. It comes directly behind Create.
func (p *Partition) Skip(out *machine.Effects) {
	p.restore.on = true
	p.skip()
	out.Begin(kindTrim)
	out.Uint(uint64(p.next))
	out.End()
}

// forgetOpen drops the open batches that commands wrote within a snapshot, at whose end
// they are shown.
func (p *Partition) forgetOpen(out *machine.Effects) {
	for i := range p.open {
		out.Freed = append(out.Freed, p.open[i].Body)
	}
	p.bytes -= p.openBytes
	p.open, p.openBytes = p.open[:0], 0
}

// atLeast has the next event get the number next at least, if records are missing.
func (p *Partition) atLeast(next SeqNo) {
	if !p.restore.on || next <= p.next {
		return
	}
	gap := Gap{First: p.next, End: next, Unsure: next-p.next >= lostNumbers}
	if !gap.Unsure {
		p.restore.missing += int(next - p.next)
	}
	if gaps := p.restore.gaps; len(gaps) < maxGaps {
		p.restore.gaps = append(gaps, gap)
	}
	p.next = next
}

// gap notes that events before first are missing, and reports whether first comes next.
// Without tolerance it is an error.
func (p *Partition) gap(first SeqNo, format string, args ...any) (ok bool, err error) {
	if !p.restore.on {
		return false, fmt.Errorf("%w: "+format+" where event %d is the next", append(append([]any{errCorrupt}, args...), p.next)...)
	}
	p.atLeast(first)
	return first == p.next, nil
}

// sealAnyway takes a block some of whose batches are not known: its index has them. The
// record that sealed batches before it is lost, and with it where their index is.
func (p *Partition) sealAnyway(b Block, out *machine.Effects) error {
	if !p.restore.on {
		return fmt.Errorf("%w: a block of the events %d to %d, which are not those that are open", errCorrupt, b.First, b.End-1)
	}
	if !b.follows(p.lastBlock()) {
		return nil
	}
	for len(p.open) > 0 && p.open[0].End() <= b.First {
		p.seal(alone(&p.open[0]), 1, out)
	}
	n := Holding(p.open, b.End) // the first batch behind the block
	if !b.follows(p.lastBlock()) || n < len(p.open) && (p.open[n].Body.At <= b.Bodies.At || p.open[n].First < b.End) {
		return fmt.Errorf("%w: a block of the events %d to %d is out of order", errCorrupt, b.First, b.End-1)
	}
	for i := range p.open[:n] {
		p.bytes -= uint64(p.open[i].Body.Size)
	}
	p.atLeast(b.First)
	p.bytes += b.bytes()
	p.seal(b, n, out)
	if p.next <= b.End { // it is the newest
		p.next, p.last = b.End, b.To
	}
	return nil
}

// trimAnyway notes that the events before keep were dropped, some of which were not known.
// Directly behind the creation it says where the numbers begin: see Skip.
func (p *Partition) trimAnyway(keep SeqNo) error {
	if !p.restore.on && p.next > 0 {
		return fmt.Errorf("%w: keeps events from %d on, not %d", errCorrupt, p.First(), keep)
	}
	p.next = max(p.next, keep) // not missing: they were dropped
	return nil
}
