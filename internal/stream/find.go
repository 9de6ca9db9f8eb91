// SPDX-License-Identifier: Apache-2.0

package stream

import "slices"

// Begin returns the number of the event with which a reader begins, if the partition
// ends at end. For a time it may be some batches early: those before since, in
// milliseconds, are to be left out. A number behind end is returned as it is.
func (p *Partition) Begin(s Start, end SeqNo) (from SeqNo, since int64) {
	switch s.kind {
	case startLatest:
		return end, 0
	case startSeq:
		return max(s.seq, p.First()), 0
	case startTime:
		since = s.at.UnixMilli()
		if s.at.Nanosecond()%1e6 != 0 { // not a whole millisecond: the next one
			since++
		}
		return min(p.since(since), end), since
	}
	return min(p.First(), end), 0
}

// since returns the number of the first event of that time or later, or of one in the
// same block before it.
func (p *Partition) since(ms int64) SeqNo {
	if i := p.blocks.since(ms); i < p.blocks.len() {
		return p.blocks.list()[i].First
	}
	for i := range p.open {
		if p.open[i].At >= ms {
			return p.open[i].First
		}
	}
	return p.next
}

// Find returns where the event from is, or the oldest one if that is newer: in a sealed
// block, or in batches of the open one, which are valid until the next command. There are
// none if the event is yet to come.
func (p *Partition) Find(from SeqNo) (block Block, sealed bool, open []Batch) {
	if i := p.blocks.holding(from); i < p.blocks.len() {
		return p.blocks.list()[i], true, nil
	}
	return Block{}, false, p.open[Holding(p.open, from):]
}

// Holding returns the first of batches with events at seq or behind; len if there is
// none.
func Holding(batches []Batch, seq SeqNo) int {
	i, _ := slices.BinarySearchFunc(batches, seq, func(b Batch, seq SeqNo) int {
		if b.End() <= seq {
			return -1
		}
		return 1
	})
	return i
}

// TimeOf returns about when an event was enqueued, in milliseconds; zero if it is yet to
// come.
func (p *Partition) TimeOf(seq SeqNo) int64 {
	block, sealed, open := p.Find(seq)
	switch {
	case sealed:
		return block.From
	case len(open) > 0:
		return open[0].At
	}
	return 0
}

// EventsFrom returns how many events there are from a number on. Numbers that were left out
// after a loss are none.
func (p *Partition) EventsFrom(seq SeqNo) (n int64) {
	seq = max(seq, p.First())
	if n = int64(p.Behind() - seq); n < lostNumbers {
		return max(n, 0)
	}
	n = 0
	sealed := p.blocks.list()
	for i := p.blocks.holding(seq); i < len(sealed); i++ {
		n += int64(sealed[i].End - max(seq, sealed[i].First))
	}
	for i := Holding(p.open, seq); i < len(p.open); i++ {
		n += int64(p.open[i].End() - max(seq, p.open[i].First))
	}
	return n
}

// BytesFrom returns about how many bytes of batches there are from an event on.
func (p *Partition) BytesFrom(seq SeqNo) (n uint64) {
	for i := Holding(p.open, seq); i < len(p.open); i++ {
		n += uint64(p.open[i].Body.Size)
	}
	sealed := p.blocks.list()[p.blocks.holding(seq):]
	if len(sealed) > exactBlocks { // the others are as large as these on average
		var some uint64
		for i := range exactBlocks {
			some += sealed[i*(len(sealed)/exactBlocks)].bytes()
		}
		return n + some/exactBlocks*uint64(len(sealed))
	}
	for i := range sealed {
		n += sealed[i].bytes()
	}
	return n
}

// exactBlocks is how many blocks are added up at most.
const exactBlocks = 1024
