// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// ReaderOptions say what a reader reads.
type ReaderOptions struct {
	Partition int
	Group     string // consumer group; epochs and the limit of readers are each for one group
	Name      string // in errors and for operators
	Epoch     *int64 // nil is none
	From      stream.Start
	// Ended is called once if the reader ends by itself: another has stolen it, or the
	// hub is gone. It is called on the engine's goroutine and must not block, and may be
	// called before OpenReader has returned. If Close comes first it is never called; nil
	// is none.
	Ended func(error)
	// Space returns n bytes for what Next is about to read. They are the reader's until
	// the next call of Next or Space; if Next fails, they stay the reader's. So a caller can
	// charge what is read before it is, and give it back while there is nothing to read.
	// An error ends Next. Nil is that the reader has space of its own.
	Space func(n int) ([]byte, error)
}

// Reader reads one partition from a position on. Its methods but Close are for one
// goroutine.
//
// It asks the engine where the next batches are, and reads them itself. From the moment
// it asks until it is answered, question and answer belong to the engine:
//
//	reader's goroutine   Next ─► question ┐             ┌ answer ─► read index, bodies ─► batches
//	engine's goroutine                    └ find ┬──────┤
//	                                             └ wait ┘ more is durable
type Reader struct {
	hub  *Hub
	opts ReaderOptions

	question question
	answer   answer
	answered chan struct{} // one answer fits into it, and there is never more
	ended    atomic.Pointer[error]

	// Owned by the engine.
	p       *partition // nil before it was admitted
	asking  bool       // a question is not answered
	seen    stream.SeqNo
	sinceAt time.Time // when it was opened

	// Owned by the goroutine that calls Next.
	asked bool // a question is under way
	ready bool // the answer was not used
	fetch fetch
}

// Batch is one batch as it was appended.
type Batch struct {
	First stream.SeqNo // number of its first event
	Count int
	At    time.Time // when it was enqueued
	Raw   []byte
	Skip  int // so many events at its beginning are before the start of the reader
}

// OpenReader begins to read. An EpochError, a ReadersError or a PositionError says why it
// cannot.
func (h *Hub) OpenReader(ctx context.Context, o ReaderOptions) (*Reader, error) {
	r := h.newReader(o)
	if err := h.do(ctx, r.open); err != nil {
		r.Close() // it may be opened still
		return nil, err
	}
	return r, nil
}

func (h *Hub) newReader(o ReaderOptions) *Reader {
	if o.Epoch != nil {
		epoch := *o.Epoch
		o.Epoch = &epoch
	}
	return &Reader{hub: h, opts: o, answered: make(chan struct{}, 1)}
}

// open finds the position of the reader and adds it to its group.
func (r *Reader) open(tx *engine.Tx) error {
	p, err := r.hub.partition(r.opts.Partition)
	if err != nil {
		return err
	}
	from, since := p.m.Begin(r.opts.From, p.end)
	if from > max(p.given, p.m.First()) {
		return &PositionError{Asked: from, Last: p.given - 1}
	}
	if g := p.groups[r.opts.Group]; g != nil {
		if err := g.admit(r); err != nil {
			return err
		}
	}
	if err := r.hub.admitted(r); err != nil {
		return err
	}
	p.join(r)
	r.p, r.seen, r.sinceAt = p, from, tx.Now()
	r.fetch.next, r.fetch.since, r.fetch.sinceUntil = from, since, p.end
	r.fetch.end, r.fetch.endAt = p.end, p.endAt
	return nil
}

// Wait returns when Next would return without waiting. A reader whose caller gives it the
// space holds no bodies meanwhile: thousands of readers at the end of their partitions
// cost little.
func (r *Reader) Wait(ctx context.Context) error { return r.ask(ctx, waitBytes) }

// waitBytes is how many bytes of batches are found for Wait, which does not know how many
// Next will ask for.
const waitBytes = 1 << 20

// Position returns the number of the next event that the reader has not returned; that of
// a reader which begins at the end is what the next event will have.
func (r *Reader) Position() stream.SeqNo { return r.fetch.next }

// Next returns the next batches, together up to about maxBytes but at least one. It
// waits until there is something. What it returns is valid until the next call.
func (r *Reader) Next(ctx context.Context, maxBytes int) ([]Batch, error) {
	for {
		if err := r.ask(ctx, maxBytes); err != nil {
			return nil, err
		}
		r.ready = false
		batches, err := r.load(ctx, maxBytes)
		if len(batches) > 0 || err != nil {
			return batches, err
		}
	}
}

// Rewind has Next begin again with an event that it has returned already: its caller could
// not use what follows.
func (r *Reader) Rewind(n stream.SeqNo) {
	f := &r.fetch
	f.events -= min(f.events, uint64(max(0, f.next-n)))
	f.next = min(f.next, n)
}

// End returns the last durable event of the partition, as of the last call of Next or
// Wait, and when it was enqueued. Without any it is -1.
func (r *Reader) End() (last stream.SeqNo, at time.Time) {
	if r.fetch.endAt == 0 {
		return r.fetch.end - 1, time.Time{}
	}
	return r.fetch.end - 1, time.UnixMilli(r.fetch.endAt)
}

// AtEnd reports whether the reader waits for events that are yet to come: it has got all
// others, or they are lost. It may be called from any goroutine.
func (r *Reader) AtEnd(ctx context.Context) (bool, error) {
	var waits bool
	err := r.hub.do(ctx, func(*engine.Tx) error {
		waits = slices.Contains(r.p.waiting, r)
		return nil
	})
	if err != nil {
		return false, err
	}
	return waits, nil
}

// Close ends the reader. A call of Next or Wait that waits returns ErrClosed. It does not
// block, and a second call does nothing. A reader that is opened after it does not meet
// this one any more.
func (r *Reader) Close() {
	err := ErrClosed
	if r.ended.CompareAndSwap(nil, &err) {
		_ = r.hub.SubmitReserved((*closing)(r)) // an engine that has stopped has no readers
	}
}

// end ends the reader, on the engine's goroutine. It was removed from its group.
func (r *Reader) end(err error) {
	ended := r.ended.CompareAndSwap(nil, &err)
	if r.asking {
		r.answer.err = *r.ended.Load()
		r.deliver()
	}
	if ended && r.opts.Ended != nil {
		r.opts.Ended(err)
	}
}

// closing is the command that ends a reader.
type closing Reader

// Apply implements [engine.Command].
func (c *closing) Apply(*engine.Tx) {
	r := (*Reader)(c)
	if r.p != nil {
		r.p.remove(r)
		r.end(ErrClosed)
	}
}

// Fail implements [engine.Command].
func (c *closing) Fail(error) {}
