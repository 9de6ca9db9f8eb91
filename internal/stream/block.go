// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"slices"

	"github.com/triagemq/triagemq/internal/machine"
)

// Batch is where one batch of events is.
type Batch struct {
	First SeqNo       // number of its first event
	At    int64       // when it was enqueued, in milliseconds since 1970
	Body  machine.Ref // the batch as it came
	Count uint32      // events in it
}

// End returns the number behind the last event.
func (b *Batch) End() SeqNo { return b.First + SeqNo(b.Count) }

// Block is a run of batches whose places are in the journal and not in memory.
type Block struct {
	First, End SeqNo // of its events; End is behind the last
	From, To   int64 // times of its first and its last batch, in milliseconds
	// Bodies is those of all its batches, which are in one segment of the journal: the
	// place of the first, and the size of all of them.
	Bodies machine.Ref
	// Index is where the places of the batches are: see DecodeIndex. Without a size there
	// is none, and the block is one batch.
	Index machine.Ref
}

// alone returns the block that a batch makes by itself.
func alone(b *Batch) Block {
	return Block{First: b.First, End: b.End(), From: b.At, To: b.At, Bodies: b.Body, Index: machine.Ref{At: b.Body.At}}
}

// Alone returns the batch of a block that has no index; false if it has one.
func (b *Block) Alone() (Batch, bool) {
	return Batch{First: b.First, At: b.From, Body: b.Bodies, Count: uint32(b.End - b.First)}, b.Index.Size == 0
}

// blockOf returns the block that a run of batches makes.
func blockOf(batches []Batch, index machine.Ref) Block {
	first, last := &batches[0], &batches[len(batches)-1]
	b := Block{
		First: first.First, End: last.End(),
		From: first.At, To: last.At,
		Bodies: machine.Ref{At: first.Body.At}, Index: index,
	}
	for i := range batches {
		b.Bodies.Size += batches[i].Body.Size
	}
	return b
}

// follows reports whether the block can be behind another.
func (b *Block) follows(last Block) bool {
	return b.First >= last.End && b.Bodies.At > last.Bodies.At
}

// bytes is what the block counts toward the size of its partition.
func (b *Block) bytes() uint64 { return uint64(b.Bodies.Size) }

// blocks are the sealed blocks of a partition, oldest first. They come at the end and
// go at the beginning.
type blocks struct {
	all  []Block
	head int // those before it are gone
	back int // how often times go back, within the others and between them
}

func (b *blocks) list() []Block { return b.all[b.head:] }

func (b *blocks) len() int { return len(b.all) - b.head }

func (b *blocks) push(x Block) {
	if n := len(b.all); n > b.head && x.From < b.all[n-1].To {
		b.back++
	}
	if x.To < x.From {
		b.back++
	}
	b.all = append(b.all, x)
}

// drop removes the oldest one.
func (b *blocks) drop() {
	old := &b.all[b.head]
	if n := b.head + 1; n < len(b.all) && b.all[n].From < old.To {
		b.back--
	}
	if old.To < old.From {
		b.back--
	}
	if b.head++; b.head >= 64 && b.head > len(b.all)/2 {
		b.all = append(b.all[:0], b.all[b.head:]...)
		b.head = 0
	}
}

// holding returns the first block with events at seq or behind; len if there is none.
func (b *blocks) holding(seq SeqNo) int {
	i, _ := slices.BinarySearchFunc(b.list(), seq, func(x Block, seq SeqNo) int {
		if x.End <= seq {
			return -1
		}
		return 1
	})
	return i
}

// since returns the first block with a batch of that time or later; len if there is
// none.
func (b *blocks) since(ms int64) int {
	if b.back > 0 { // rare: a clock was wrong
		i := slices.IndexFunc(b.list(), func(x Block) bool { return max(x.From, x.To) >= ms })
		if i < 0 {
			return b.len()
		}
		return i
	}
	i, _ := slices.BinarySearchFunc(b.list(), ms, func(x Block, ms int64) int {
		if x.To < ms {
			return -1
		}
		return 1
	})
	return i
}
