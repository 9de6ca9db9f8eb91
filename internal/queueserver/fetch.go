// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// What needs a body that is not in the cache has it read beside the shard: see
// [engine.Fetch].

// fetch is a body that is read in the background.
type fetch struct {
	queue *hostedQueue
	d     queue.Delivery // number, token, and where the body is, and what is beside it
	taker fetchTaker

	msg     *message.Message
	damaged bool  // msg is a placeholder
	err     error // ErrFreed: the message exists, and its body does not
	done    bool
}

// fetchTaker is told, on the shard's goroutine, that a body was read, or why not.
type fetchTaker interface{ fetched(s *Shard, f *fetch) }

// Size implements [engine.Fetch].
func (f *fetch) Size() int { return int(f.d.Size()) }

// AppendReads implements [engine.Fetch].
func (f *fetch) AppendReads(reads []journal.Read) []journal.Read {
	return bodies.AppendReads(reads, &f.d)
}

// Read implements [engine.Fetch].
func (f *fetch) Read(reads []journal.Read) {
	f.msg, f.damaged, f.err = bodies.Parse(reads, f.queue.part != Main)
}

// Fetched implements [engine.Fetch].
func (f *fetch) Fetched(tx *engine.Tx) {
	if errors.Is(f.err, journal.ErrFreed) && f.relocate() {
		tx.Fetch(f)
		return
	}
	f.done = true
	f.taker.fetched(f.queue.shard, f)
}

// relocate looks up where a body is that was not where it had been, and reports
// whether that is another place.
func (f *fetch) relocate() bool {
	d, ok := f.queue.q.Lookup(f.d.Seq)
	return ok && bodies.Moved(&f.d, &d)
}
