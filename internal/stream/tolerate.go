// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
)

// tolerance is how a replay goes on without records that a repair has dropped. Numbers of
// events that are lost are not used again: there is a gap.
type tolerance struct {
	on      bool
	missing int // events
}

var _ machine.Tolerant = (*Partition)(nil)

// Tolerate implements [machine.Tolerant].
func (p *Partition) Tolerate() { p.restore.on = true }

// Lost implements [machine.Tolerant].
func (p *Partition) Lost() { p.restore.on = true }

// Missing implements [machine.Tolerant].
func (p *Partition) Missing() int { return p.restore.missing }

// EndReplay implements [machine.Tolerant]: a snapshot that has no end is what it was, and
// what commands wrote since.
func (p *Partition) EndReplay() { p.restore.loading = false }

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
	if p.restore.on && next > p.next {
		p.restore.missing += int(next - p.next)
		p.next = next
	}
}

// gap notes that events before first are missing, and reports whether first comes next.
// Without tolerance it is an error.
func (p *Partition) gap(first SeqNo, format string, args ...any) (ok bool, err error) {
	if !p.restore.on {
		return false, fmt.Errorf("%w: "+format+" where event %d, time %d is the next", append(append([]any{errCorrupt}, args...), p.next, p.last)...)
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
	if !b.follows(p.lastBlock()) || n < len(p.open) && (p.open[n].At < b.To || p.open[n].Body.At <= b.Bodies.At || p.open[n].First < b.End) {
		return fmt.Errorf("%w: a block of the events %d to %d is out of order", errCorrupt, b.First, b.End-1)
	}
	for i := range p.open[:n] {
		p.bytes -= uint64(p.open[i].Body.Size)
	}
	p.atLeast(b.First)
	p.bytes += b.bytes()
	p.seal(b, n, out)
	p.next, p.last = max(p.next, b.End), max(p.last, b.To)
	return nil
}

// trimAnyway notes that the events before keep were dropped, some of which were not known.
func (p *Partition) trimAnyway(keep SeqNo) error {
	if !p.restore.on {
		return fmt.Errorf("%w: keeps events from %d on, not %d", errCorrupt, p.First(), keep)
	}
	p.next = max(p.next, keep) // not missing: they were dropped
	return nil
}
