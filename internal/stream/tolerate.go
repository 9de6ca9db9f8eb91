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
	high    SeqNo // behind the last event that was heard of
	missing int   // events
}

var _ machine.Tolerant = (*Partition)(nil)

// Tolerate implements [machine.Tolerant].
func (p *Partition) Tolerate() { p.restore.on = true }

// Lost implements [machine.Tolerant].
func (p *Partition) Lost() { p.restore.on = true }

// Missing implements [machine.Tolerant].
func (p *Partition) Missing() int { return p.restore.missing }

// EndReplay implements [machine.Tolerant]: a snapshot that has no end is what it was.
func (p *Partition) EndReplay() {
	if !p.restore.loading {
		return
	}
	p.restore.loading = false
	last := p.lastBlock()
	p.next, p.last = last.End, last.To
	p.atLeast(p.restore.high)
}

// skip notes what a record says that is shown later, should that be missing.
func (p *Partition) skip(kind byte, r *machine.Reader) {
	if p.restore.on && (kind == kindAppend || kind == kindAppendBy) {
		if b := readBatch(r); !r.Bad() {
			p.restore.high = max(p.restore.high, b.End())
		}
	}
	r.Take(uint64(r.Len()))
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

// sealAnyway takes a block some of whose batches are not known: its index has them.
// Batches before it are lost, since nothing says where they are.
func (p *Partition) sealAnyway(b Block, out *machine.Effects) error {
	if !p.restore.on {
		return fmt.Errorf("%w: a block of the events %d to %d, which are not those that are open", errCorrupt, b.First, b.End-1)
	}
	if !b.follows(p.lastBlock()) {
		return nil
	}
	n := Holding(p.open, b.End) // the first batch behind the block
	if n < len(p.open) && (p.open[n].At < b.To || p.open[n].Body.At <= b.Bodies.At || p.open[n].First < b.End) {
		return fmt.Errorf("%w: a block of the events %d to %d behind event %d", errCorrupt, b.First, b.End-1, p.open[n].First)
	}
	for i := range p.open[:n] {
		p.bytes -= uint64(p.open[i].Body.Size)
		if p.open[i].First < b.First {
			p.restore.missing += int(p.open[i].Count)
		}
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
