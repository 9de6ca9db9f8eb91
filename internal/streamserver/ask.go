// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// question is what a reader asks.
type question struct {
	next     stream.SeqNo // the next event that it has not got
	maxBytes int
	events   uint64 // what it has got since the last question
	bytes    uint64
}

// answer is where the next events are: in a sealed block, whose index the reader reads,
// or in batches. Everything before end is durable, and nothing else may be read.
type answer struct {
	block   stream.Block
	sealed  bool
	batches []stream.Batch
	end     stream.SeqNo
	endAt   int64 // time of the last event before end, in milliseconds; 0 is none
	err     error
}

// keptBatches is for how many batches a reader that waits has space. As many come at once
// while it keeps up.
const keptBatches = 32

// post asks the engine for the next events. A question whose caller did not wait for the
// answer is not asked again: the next caller gets it.
func (r *Reader) post(maxBytes int) error {
	if err := r.ended.Load(); err != nil {
		return *err
	}
	if r.asked || r.ready {
		return nil
	}
	r.fetch.release()
	r.question = question{next: r.fetch.next, maxBytes: max(maxBytes, 1), events: r.fetch.events, bytes: r.fetch.bytes}
	r.fetch.events, r.fetch.bytes = 0, 0
	if err := r.hub.SubmitReserved((*asking)(r)); err != nil {
		return err
	}
	r.asked = true
	return nil
}

// ask has the engine find the next events, and waits until there are some. An answer that
// was not used will do.
func (r *Reader) ask(ctx context.Context, maxBytes int) error {
	if err := r.post(maxBytes); err != nil || r.ready {
		return err
	}
	select {
	case <-r.answered:
		return r.take()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take takes over the answer, which is the reader's from now on.
func (r *Reader) take() error {
	r.asked, r.ready = false, r.answer.err == nil
	r.fetch.end, r.fetch.endAt = r.answer.end, r.answer.endAt
	return r.answer.err
}

// deliver gives the answer to the reader.
func (r *Reader) deliver() {
	if r.asking {
		r.asking = false
		r.answered <- struct{}{}
	}
}

// asking is the command of a question. There is one for each reader at most.
type asking Reader

// Fail implements [engine.Command].
func (q *asking) Fail(err error) {
	r := (*Reader)(q)
	r.asking = true
	r.answer.err = err
	r.deliver()
}

// Apply implements [engine.Command].
func (q *asking) Apply(tx *engine.Tx) {
	r := (*Reader)(q)
	r.asking = true
	if err := r.ended.Load(); err != nil {
		r.answer.err = *err
		r.deliver()
		return
	}
	p := r.p
	p.out.add(tx.Now(), r.question.events, r.question.bytes)
	r.seen = r.question.next
	if !r.find() {
		if cap(r.answer.batches) > keptBatches {
			r.answer.batches = nil
		}
		p.waiting = append(p.waiting, r)
		return
	}
	r.hub.answers.Hold(tx, 0, r)
}

// find fills in the answer, if there is one.
func (r *Reader) find() bool {
	p, a := r.p, &r.answer
	a.end, a.endAt = p.end, p.endAt
	a.batches = a.batches[:0]
	if p.end <= r.question.next {
		return false
	}
	var open []stream.Batch
	a.block, a.sealed, open = p.m.Find(r.question.next)
	if a.sealed {
		return a.block.First < p.end
	}
	size := 0
	for i := range open {
		if open[i].End() > p.end || i > 0 && size+int(open[i].Body.Size) > r.question.maxBytes {
			break
		}
		size += int(open[i].Body.Size)
		a.batches = append(a.batches, open[i])
	}
	return len(a.batches) > 0
}

// advance takes over that more of a partition is durable, and answers those who wait for
// it.
func (h *Hub) advance(e end) {
	p := e.p
	p.in.add(h.tx.Now(), e.arrived.events-p.in.events, e.arrived.bytes-p.in.bytes)
	p.end, p.endAt, p.given = e.seq, e.at, max(p.given, e.seq)
	waiting := p.waiting
	n := 0
	for _, r := range waiting {
		if r.find() {
			h.answers.Hold(h.tx, 0, r)
		} else {
			waiting[n] = r
			n++
		}
	}
	clear(waiting[n:])
	p.waiting = waiting[:n]
}
