// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// The goroutine of a shard never reads the disk. What needs a body that is not in
// the cache asks for it with fetch and is parked; the body is read beside the shard
// and comes back through the mailbox.
//
//	shard's goroutine      fetch ──► waiting ──► batch           fetched ──► taker
//	                                               │                ▲
//	background, at most maxFetches at a time       └── read bodies ─┘

const (
	maxFetches = 4       // pieces of background work at a time
	fetchCount = 64      // bodies that one of them reads at most
	fetchBytes = 1 << 20 // bytes of bodies, unless it is a single one
)

// fetch is a body that is read for somebody.
type fetch struct {
	slot  *slot
	d     queue.Delivery // number, token, and where the body and the reason are
	taker fetchTaker

	msg     *message.Message
	damaged bool  // msg stands in for a body that cannot be read
	err     error // ErrFreed: the message is there, and its body is not
	done    bool
}

// fetchTaker is told, on the shard's goroutine, that a body was read, or why not.
type fetchTaker interface{ fetched(s *Shard, f *fetch) }

// fetches is what a shard reads in the background.
type fetches struct {
	waiting []*fetch // oldest first
	running int      // pieces of background work
}

// fetch has a body read. Its taker is told in a later step.
func (s *Shard) fetch(f *fetch) { s.fetches.waiting = append(s.fetches.waiting, f) }

// startFetches hands what waits to the background, as far as that has room.
func (s *Shard) startFetches() {
	x := &s.fetches
	for len(x.waiting) > 0 && x.running < maxFetches {
		n, size := 0, 0
		for n < len(x.waiting) && n < fetchCount && (n == 0 || size < fetchBytes) {
			size += int(x.waiting[n].d.Body.Size)
			n++
		}
		batch := &fetchBatch{fetches: slices.Clone(x.waiting[:n])}
		x.waiting = slices.Delete(x.waiting, 0, n)
		x.running++
		s.background(func() {
			batch.read(s.ctx, s.journal)
			_ = s.mail.push(batch) // a shard that has stopped needs no bodies
		})
	}
}

// fetchBatch is the operation that brings bodies back.
type fetchBatch struct{ fetches []*fetch }

// read reads the bodies, all at once.
func (b *fetchBatch) read(ctx context.Context, j journal.Journal) {
	reads := make([]journal.Read, 0, len(b.fetches))
	for _, f := range b.fetches {
		reads = appendReads(reads, &f.d)
	}
	j.Read(ctx, reads)
	for _, f := range b.fetches {
		n := 1
		if f.d.Reason != (queue.Ref{}) {
			n = 2
		}
		f.msg, f.damaged, f.err = f.slot.parse(&f.d, reads[:n])
		reads = reads[n:]
	}
}

func (b *fetchBatch) run(s *Shard) {
	s.fetches.running--
	for _, f := range b.fetches {
		if errors.Is(f.err, journal.ErrFreed) && f.relocate() {
			s.fetch(f)
			continue
		}
		f.done = true
		f.taker.fetched(s, f)
	}
}

func (b *fetchBatch) fail(error) {}

// relocate looks up where a body is that was not where it had been, and reports
// whether that is another place.
func (f *fetch) relocate() bool {
	d, ok := f.slot.q.Lookup(f.d.Seq)
	if !ok || d.Body == f.d.Body && d.Reason == f.d.Reason {
		return false
	}
	f.d.Body, f.d.Reason = d.Body, d.Reason
	return true
}
