// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/stream"
)

const (
	// connectionAhead is about how many bytes of events are on their way to one
	// connection, or an eighth of its memory. Its receivers share it, but each may have
	// leastAhead, or one batch.
	connectionAhead = 32 << 20
	leastAhead      = 32 << 10
	mostAhead       = 512 << 10
	// chunksAhead is how many chunks of a receiver the connection has not sent: while one
	// is sent, the next is made.
	chunksAhead = 2
)

// share is how many bytes one receiver may have on their way: a half as they are stored,
// and a quarter in each of its chunks.
func (c *links) share() int {
	ahead := min(connectionAhead, c.Memory().Limit()/8)
	return int(min(max(ahead/max(c.receivers.Load(), 1), leastAhead), mostAhead))
}

// How long a receiver waits before it asks for memory again that others have used up.
const (
	soonestAgain = 10 * time.Millisecond
	latestAgain  = time.Second
)

// take charges n bytes, for which it waits until ctx ends. Events on their way free their
// memory soon: they go on when an account is used up by what stays. A caller that holds
// some must not wait for more, because all receivers might.
func (c *links) take(ctx context.Context, n int64) error {
	for again := soonestAgain; !c.Memory().TakeBeyond(n); again = min(2*again, latestAgain) {
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	c.held.Add(n)
	return nil
}

// release gives n bytes back that take has charged.
func (c *links) release(n int64) {
	c.held.Add(-n)
	c.Memory().Release(n)
}

// run opens the reader and reads until the link is gone or the reader ends.
func (r *receiver) run(o broker.EventReaderOptions) {
	ctx, cancel := context.WithTimeout(r.ctx, openTimeout)
	from, err := r.c.broker.OpenEventReader(ctx, r.path, o)
	cancel()
	if err != nil {
		r.c.Do(func() { r.opened(nil, 0, err) })
		return
	}
	defer from.Close()
	position := int64(from.Position())
	r.c.Do(func() { r.opened(from, position, nil) })
	if err := r.read(from); r.ctx.Err() == nil && !errors.Is(err, broker.ErrReaderClosed) {
		// Behind the last chunk, which may still be sent.
		r.c.Post(azure.Event{To: r, Kind: eventEnded, Err: err})
	}
}

// read reads for as long as the link is there. It returns why it has ended.
func (r *receiver) read(from *broker.EventReader) error {
	w := chunkWriter{r: r}
	for {
		// Without credit nothing is read, and nothing is held while there is nothing.
		if err := r.awaitSpace(); err != nil {
			return err
		}
		if err := from.Wait(r.ctx); err != nil {
			return err
		}
		batches, err := from.Next(r.ctx, r.c.share()/2)
		if err != nil {
			r.c.release(int64(len(r.space))) // the journal may still be writing to it
			return err
		}
		if r.metrics {
			last, at := from.End()
			w.events.SetMetrics(int64(last), at, time.Now())
		}
		next, whole, err := w.write(batches)
		r.giveSpaceBack()
		if err != nil {
			return err
		}
		if !whole {
			from.Rewind(next)
		}
	}
}

// takeSpace is what the reader reads into. It waits until there is memory for it.
func (r *receiver) takeSpace(n int) ([]byte, error) {
	r.giveSpaceBack() // what could not be read
	if err := r.c.take(r.ctx, int64(n)); err != nil {
		return nil, err
	}
	r.space = buffer(n)[:n]
	return r.space, nil
}

// giveSpaceBack ends the use of what takeSpace has returned.
func (r *receiver) giveSpaceBack() {
	if r.space != nil {
		r.c.release(int64(len(r.space)))
		recycle(r.space)
		r.space = nil
	}
}

// awaitSpace waits until another chunk may be made and the peer has granted credit.
func (r *receiver) awaitSpace() error {
	for r.ahead.Load() >= chunksAhead || !r.granted.Load() {
		select {
		case <-r.look:
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// patience is how long what was read is kept for a peer that takes no more of it. Then
// others get the memory, and it is read again.
const patience = time.Second

// awaitChunk waits until another chunk may be made, and reports whether it may.
func (r *receiver) awaitChunk() (bool, error) {
	if r.ahead.Load() < chunksAhead {
		return true, nil
	}
	end := time.NewTimer(patience)
	defer end.Stop()
	for r.ahead.Load() >= chunksAhead {
		select {
		case <-r.look:
		case <-end.C:
			return false, nil
		case <-r.ctx.Done():
			return false, context.Cause(r.ctx)
		}
	}
	return true, nil
}

// chunkWriter makes chunks of batches.
type chunkWriter struct {
	r      *receiver
	events message.EventWriter
	out    *chunk // that is being made; nil for none
	limit  int    // bytes that it may have
}

// write hands the events of batches to the connection. If it has not taken all of them for
// a while, next is the first of the others.
func (w *chunkWriter) write(batches []broker.EventBatch) (next stream.SeqNo, whole bool, err error) {
	if w.r.batches {
		return w.writeStored(batches)
	}
	left := 0 // about how many bytes the events have that were not written
	for i := range batches {
		left += len(batches[i].Raw) + batches[i].Count*eventOverhead
	}
	for i := range batches {
		b := &batches[i]
		seq := int64(b.First)
		skip := b.Skip
		for w.events.Open(b.Raw, seq, b.At); w.events.Next(); seq++ {
			if skip > 0 {
				skip--
				continue
			}
			need := w.events.Size()
			if w.out == nil || len(w.out.payloads.Bytes)+need > w.limit {
				if ok, err := w.begin(need, left); !ok {
					return stream.SeqNo(seq), false, err
				}
			}
			before := len(w.out.payloads.Bytes)
			w.out.append(&w.events)
			w.out.next = seq + 1
			left -= len(w.out.payloads.Bytes) - before
		}
		if err := w.events.Err(); err != nil {
			w.r.c.Log().Error("read events", "entity", w.r.path, "sequence", seq, "err", err)
		}
	}
	w.post()
	return 0, true, nil
}

// writeStored is write for a receiver that takes batches as they are stored.
func (w *chunkWriter) writeStored(batches []broker.EventBatch) (next stream.SeqNo, whole bool, err error) {
	left := 0
	for i := range batches {
		left += len(batches[i].Raw) + eventOverhead
	}
	for i := range batches {
		b := &batches[i]
		out := message.EventBatch{First: int64(b.First), At: b.At, Count: b.Count, Skip: b.Skip, Stored: b.Raw}
		need := out.Size()
		if w.out == nil || len(w.out.payloads.Bytes)+need > w.limit {
			if ok, err := w.begin(need, left); !ok {
				return b.First, false, err
			}
		}
		w.out.appendBatch(&out)
		left -= need
	}
	w.post()
	return 0, true, nil
}

// begin posts the chunk that is full, and begins another when the connection has sent one;
// it reports whether that was soon enough. need is how many bytes come next, left about how
// many in all.
func (w *chunkWriter) begin(need, left int) (bool, error) {
	w.post()
	if ok, err := w.r.awaitChunk(); !ok {
		return false, err
	}
	w.limit = max(min(left, w.r.c.share()/4), need)
	w.out = w.r.c.newChunk(w.limit)
	return true, nil
}

// post hands the chunk to the connection, if there is one.
func (w *chunkWriter) post() {
	if w.out == nil {
		return
	}
	w.r.ahead.Add(1)
	w.r.c.Post(azure.Event{To: w.r, Kind: eventChunk, Value: w.out})
	w.out = nil
}
