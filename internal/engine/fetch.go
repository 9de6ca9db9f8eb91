// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// The engine's goroutine never reads the disk. A command that needs bodies asks for them
// with Tx.Fetch; they are read beside the engine and come back through the mailbox.
//
//	engine's goroutine     Fetch ──► waiting ──► batch           Fetched
//	                                               │                ▲
//	background, at most maxFetches at a time       └── read, Read ──┘

const (
	maxFetches = 4 // pieces of background work at a time
	// FetchCount is how many bodies one of them reads at most, FetchBytes how many
	// bytes of them, unless it is a single one.
	FetchCount = 64
	FetchBytes = 1 << 20
)

// Fetch is something that needs bodies.
type Fetch interface {
	// Size is how many bytes it is about.
	Size() int
	// AppendReads adds what has to be read.
	AppendReads(reads []journal.Read) []journal.Read
	// Read takes what was read, on any goroutine.
	Read(reads []journal.Read)
	// Fetched is called after Read, on the engine's goroutine.
	Fetched(tx *Tx)
}

// fetches is what an engine reads in the background.
type fetches struct {
	waiting []Fetch // oldest first
	running int     // pieces of background work
}

// startFetches passes waiting reads to the background, up to its limit.
func (e *Engine) startFetches() {
	x := &e.fetches
	for len(x.waiting) > 0 && x.running < maxFetches {
		n, size := 0, 0
		for n < len(x.waiting) && n < FetchCount && (n == 0 || size < FetchBytes) {
			size += x.waiting[n].Size()
			n++
		}
		batch := &fetchBatch{fetches: slices.Clone(x.waiting[:n])}
		x.waiting = slices.Delete(x.waiting, 0, n)
		x.running++
		e.background(func() {
			e.read(batch.fetches)
			_ = e.mail.push(batch) // an engine that has stopped needs no bodies
		})
	}
}

// read reads for several, all at once.
func (e *Engine) read(fs []Fetch) {
	reads := make([]journal.Read, 0, len(fs))
	ends := make([]int, len(fs))
	for i, f := range fs {
		reads = f.AppendReads(reads)
		ends[i] = len(reads)
	}
	e.journal.Read(e.readCtx, reads)
	from := 0
	for i, f := range fs {
		f.Read(reads[from:ends[i]])
		from = ends[i]
	}
}

// fetchBatch is the command that brings bodies back.
type fetchBatch struct{ fetches []Fetch }

// Apply implements Command.
func (b *fetchBatch) Apply(tx *Tx) {
	tx.e.fetches.running--
	for _, f := range b.fetches {
		f.Fetched(tx)
	}
}

// Fail implements Command.
func (b *fetchBatch) Fail(error) {}

// ReadOf asks the journal for a body.
func ReadOf(ref machine.Ref) journal.Read {
	return journal.Read{At: journal.Position(ref.At), Buf: make([]byte, 0, ref.Size+1)}
}
