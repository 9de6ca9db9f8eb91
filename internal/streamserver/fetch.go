// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// fetch is how far a reader is, and what it reads with, on its own goroutine.
type fetch struct {
	next  stream.SeqNo // the next event that was not returned
	end   stream.SeqNo // of the partition, as of the last answer
	endAt int64        // see answer
	// since leaves out batches before a time, in milliseconds, up to an event. It is where
	// the partition ended when the reader was opened: a start is a position, not a filter.
	since      int64
	sinceUntil stream.SeqNo

	block stream.Block   // whose batches are in index
	index []stream.Batch // of a sealed block
	freed machine.Ref    // a body or index that was freed when it was read last

	events uint64 // what was returned since the last question
	bytes  uint64

	*buffers // while it reads, and until the next call; nil while it waits
}

// buffers are what reading needs. Readers that wait have none, so that thousands of them at
// the end of their partitions cost little.
type buffers struct {
	raw    []byte         // of an index, as it is stored
	chosen []stream.Batch // those that are read
	reads  []journal.Read
	bodies []byte // space for all of them, unless the caller gives it
	out    []Batch
}

var spareBuffers = sync.Pool{New: func() any { return new(buffers) }}

// acquire sees to it that there are buffers.
func (f *fetch) acquire() {
	if f.buffers == nil {
		f.buffers = spareBuffers.Get().(*buffers)
	}
}

// release gives the buffers back. What was returned is not valid any more.
func (f *fetch) release() {
	if b := f.buffers; b != nil {
		clear(b.reads) // some of it may be the caller's
		clear(b.out)
		f.buffers = nil
		spareBuffers.Put(b)
	}
}

// load reads the batches of an answer. It returns none if they are to be asked for again,
// or are lost.
func (r *Reader) load(ctx context.Context, maxBytes int) ([]Batch, error) {
	f, batches := &r.fetch, r.answer.batches
	f.acquire()
	if !r.answer.sealed {
		f.block, f.index = stream.Block{}, nil
	} else {
		var err error
		if batches, err = r.loadIndex(ctx); batches == nil {
			return nil, err
		}
	}
	f.choose(batches, r.answer.end, maxBytes)
	if len(f.chosen) == 0 {
		return nil, nil
	}
	if err := f.prepare(r.opts.Space); err != nil {
		return nil, err
	}
	r.hub.Read(ctx, f.reads)
	return r.collect(ctx)
}

// loadIndex returns the batches of a sealed block.
func (r *Reader) loadIndex(ctx context.Context) ([]stream.Batch, error) {
	f, block := &r.fetch, r.answer.block
	if f.block == block {
		return f.index, nil
	}
	f.block = stream.Block{}
	if b, alone := block.Alone(); alone {
		f.index = append(f.index[:0], b)
		f.block = block
		return f.index, nil
	}
	f.acquire()
	read := []journal.Read{{At: journal.Position(block.Index.At), Buf: slices.Grow(f.raw[:0], journal.RecordSize(int(block.Index.Size)+1))}}
	r.hub.Read(ctx, read)
	f.raw = read[0].Buf
	raw, err := engine.Body(&read[0])
	if err == nil {
		f.index, err = stream.DecodeIndex(raw, block, f.index[:0])
	}
	if err != nil {
		if ctx.Err() != nil {
			f.buffers = nil // the journal may be writing to it
			return nil, context.Cause(ctx)
		}
		return nil, f.unreadable(r, block.Index, block.First, block.End, fmt.Errorf("index: %w", err))
	}
	f.block = block
	return f.index, nil
}

// choose selects the batches that are read.
func (f *fetch) choose(batches []stream.Batch, end stream.SeqNo, maxBytes int) {
	f.chosen = f.chosen[:0]
	size := 0
	for _, b := range batches[stream.Holding(batches, f.next):] {
		if b.End() > end || len(f.chosen) > 0 && size+int(b.Body.Size) > maxBytes {
			break
		}
		if b.At < f.since && b.First < f.sinceUntil {
			f.next = b.End()
			continue
		}
		size += int(b.Body.Size)
		f.chosen = append(f.chosen, b)
	}
}

// prepare makes reads of the batches that were chosen.
func (f *fetch) prepare(give func(n int) ([]byte, error)) error {
	space := func(b *stream.Batch) int { return journal.RecordSize(int(b.Body.Size) + 1) }
	size := 0
	for i := range f.chosen {
		size += space(&f.chosen[i])
	}
	bodies := f.bodies
	switch {
	case give != nil:
		var err error
		if bodies, err = give(size); err != nil {
			return err
		}
	case cap(bodies) < size:
		f.bodies = make([]byte, size)
		bodies = f.bodies
	}
	f.reads = f.reads[:0]
	from := 0
	for i := range f.chosen {
		to := from + space(&f.chosen[i])
		f.reads = append(f.reads, journal.Read{At: journal.Position(f.chosen[i].Body.At), Buf: bodies[from:from:to]})
		from = to
	}
	return nil
}

// collect returns what was read.
func (r *Reader) collect(ctx context.Context) ([]Batch, error) {
	f := &r.fetch
	clear(f.out)
	f.out = f.out[:0]
	for i := range f.reads {
		b := &f.chosen[i]
		raw, err := engine.Body(&f.reads[i])
		if err == nil && len(raw) != int(b.Body.Size) {
			err = fmt.Errorf("%w: %d bytes instead of %d", journal.ErrCorrupt, len(raw), b.Body.Size)
		}
		if err != nil && len(f.out) > 0 {
			break // the next call looks at it again
		}
		if err != nil && ctx.Err() != nil {
			f.buffers = nil // the journal may be writing to it
			return nil, context.Cause(ctx)
		}
		if err != nil {
			from := f.next
			if err := f.unreadable(r, b.Body, b.First, b.End(), err); err != nil || f.next == from {
				return nil, err
			}
			continue // it is lost, and what follows was read
		}
		skip := max(0, f.next-b.First)
		f.out = append(f.out, Batch{First: b.First, Count: int(b.Count), At: time.UnixMilli(b.At), Raw: raw, Skip: int(skip)})
		f.next = b.End()
		f.events += uint64(b.Count) - uint64(skip)
		f.bytes += uint64(len(raw))
	}
	return f.out, nil
}

// unreadable decides about events that could not be read. What retention has freed is
// asked for again: the engine knows what is the oldest event by now. If it still says that
// they are there, or the bytes are damaged, they are lost, and the reader goes on behind
// them. Any other error is the reader's.
func (f *fetch) unreadable(r *Reader, ref machine.Ref, first, end stream.SeqNo, err error) error {
	switch {
	case errors.Is(err, journal.ErrFreed) && f.freed != ref:
		f.freed = ref
		return nil
	case errors.Is(err, journal.ErrFreed), errors.Is(err, journal.ErrCorrupt), errors.Is(err, stream.ErrIndex):
		r.hub.damages.add(Damage{Partition: r.opts.Partition, First: first, Count: int64(end - first), Err: err})
		f.next = max(f.next, end)
		return nil
	}
	return err
}
