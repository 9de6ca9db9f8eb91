// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

const (
	// maxBatches is how many batches are in a block at most, and so how many places of
	// batches are in memory for each partition.
	maxBatches = 256
	// maxBlockBytes is how large the bodies of a block are together, but for the last
	// one: retention drops blocks as a whole.
	maxBlockBytes = 8 << 20
	// maxBlockEvents keeps the sum of events in a block within 32 bits.
	maxBlockEvents = 1 << 31
)

// Retention is how long events are kept. It is not part of the state: what was dropped
// is.
type Retention struct {
	For   time.Duration // at least; 0 is without end
	Bytes uint64        // of bodies, at most; 0 is unbounded
}

// Partition is the state of one partition. It is a [machine.Machine].
type Partition struct {
	next  SeqNo  // number of the next event
	last  int64  // time of the newest event, in milliseconds; 0 is that there was none
	bytes uint64 // of the bodies that are kept

	blocks    blocks  // sealed
	open      []Batch // newer than those, oldest first
	openBytes uint64  // of their bodies
	producers producers

	retain  Retention
	doubt   doubt
	restore restore
}

var _ machine.Machine = (*Partition)(nil)

// New returns a partition to which a history is replayed, or which is created.
func New() *Partition { return &Partition{} }

// Create begins the history of a partition.
func (p *Partition) Create(out *machine.Effects) {
	out.Begin(kindCreated)
	out.End()
	p.restore.begun = true
}

// First returns the number of the oldest event that is kept, that of the next one if
// there is none.
func (p *Partition) First() SeqNo {
	switch {
	case p.blocks.len() > 0:
		return p.blocks.list()[0].First
	case len(p.open) > 0:
		return p.open[0].First
	}
	return p.next
}

// Next returns the number of the next event.
func (p *Partition) Next() SeqNo { return p.next }

// Behind returns the number behind the newest event that is kept; Next if there is none.
// They differ if a repair has lost what came behind it.
func (p *Partition) Behind() SeqNo {
	switch n := len(p.open); {
	case n > 0:
		return p.open[n-1].End()
	case p.blocks.len() > 0:
		return p.lastBlock().End
	}
	return p.next
}

// Bytes returns the size of the batches that are kept.
func (p *Partition) Bytes() uint64 { return p.bytes }

// Latest implements [machine.Machine].
func (p *Partition) Latest() time.Time {
	if p.last == 0 {
		return time.Time{}
	}
	return time.UnixMilli(p.last)
}

// Arrival is a batch that is appended.
type Arrival struct {
	Body     machine.Ref
	Count    uint32    // events in it, at least 1
	Producer *Producer // nil is none
}

// Admit tells whether a batch of a producer may be appended, before its body is stored.
// If the producer has sent it before, again is true, and first is the number that it got
// then.
func (p *Partition) Admit(by Producer, count uint32) (first SeqNo, again bool, err error) {
	return p.producers.check(by, count)
}

// MustSeal reports whether the open block has to be sealed before a body of that size is
// appended. Times within a block ascend.
func (p *Partition) MustSeal(now time.Time, size uint32) bool {
	if len(p.open) == 0 {
		return false
	}
	return p.stamp(now) < p.last || len(p.open) >= maxBatches || p.openBytes >= p.blockBytes() ||
		p.openBytes+uint64(size) > 1<<31 || p.next-p.open[0].First >= maxBlockEvents
}

// blockBytes is the size at which a block is sealed. One that keeps few bytes has small
// blocks, or it would drop most of them at once.
func (p *Partition) blockBytes() uint64 {
	if p.retain.Bytes == 0 {
		return maxBlockBytes
	}
	return min(maxBlockBytes, max(64<<10, p.retain.Bytes/16))
}

// Open returns the bodies of the first and of the last batch in the open block; false if
// that is empty.
func (p *Partition) Open() (first, last machine.Ref, some bool) {
	if len(p.open) == 0 {
		return machine.Ref{}, machine.Ref{}, false
	}
	return p.open[0].Body, p.open[len(p.open)-1].Body, true
}

// AppendIndex appends the index of the open block to dst. It is stored as a body, then
// Seal is called.
func (p *Partition) AppendIndex(dst []byte) []byte {
	return appendBatches(append(dst, indexVersion), p.open)
}

// Seal replaces the batches of the open block, which is not empty, by a block. Their
// bodies must be in one segment of the journal.
func (p *Partition) Seal(index machine.Ref, out *machine.Effects) {
	p.sealAs(blockOf(p.open, index), len(p.open), out)
}

// SealFirst makes the first batch of the open block, which is not empty, a block that needs
// no index. The record that sealed it with others may be lost, and those that followed are
// in another segment.
func (p *Partition) SealFirst(out *machine.Effects) { p.sealAs(alone(&p.open[0]), 1, out) }

// sealAs makes n open batches a block and writes a record of it.
func (p *Partition) sealAs(b Block, n int, out *machine.Effects) {
	out.Begin(kindSeal)
	writeBlock(out, &b, &Block{})
	out.End()
	p.seal(b, n, out)
}

// seal makes n open batches a block.
func (p *Partition) seal(b Block, n int, out *machine.Effects) {
	for i := range p.open[:n] {
		out.Freed = append(out.Freed, p.open[i].Body)
		p.openBytes -= uint64(p.open[i].Body.Size)
	}
	p.open = p.open[:copy(p.open, p.open[n:])]
	out.Added = append(out.Added, b.Bodies, b.Index)
	p.blocks.push(b)
}

// Append adds a batch and returns the number of its first event. The body must be in the
// segment of the open block, and MustSeal false. What the batch makes superfluous by its
// size is dropped.
func (p *Partition) Append(now time.Time, a Arrival, out *machine.Effects) SeqNo {
	b := Batch{First: p.next, At: p.stamp(now), Body: a.Body, Count: a.Count}
	if a.Producer == nil {
		out.Begin(kindAppend)
		writeBatch(out, &b)
	} else {
		out.Begin(kindAppendBy)
		writeBatch(out, &b)
		writeProducer(out, *a.Producer)
		p.producers.note(*a.Producer, a.Count, b.First)
	}
	out.End()
	p.add(b, out)
	p.trimBytes(out)
	return b.First
}

func (p *Partition) add(b Batch, out *machine.Effects) {
	out.Added = append(out.Added, b.Body)
	p.open = append(p.open, b)
	p.openBytes += uint64(b.Body.Size)
	p.bytes += uint64(b.Body.Size)
	p.next, p.last = b.End(), b.At
}
