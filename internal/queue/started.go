// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// noteStarted logs that the fair key of a message is started, if it is with this
// delivery.
func (q *Queue) noteStarted(e *entries.Entry, out *Effects) {
	k, logged := q.index.Start(e)
	if !logged {
		return
	}
	out.Begin(record.KindStarted)
	writeStarted(&out.Effects, k)
	out.End()
}

func writeStarted(out *machine.Effects, k order.StartedKey) {
	out.Uint(k.Number)
	out.String(k.Name)
}

// snapStarted writes which keys were started. A key that is started meanwhile has a
// record of its own. If the keys are numbered anew, it begins again: to read of a key
// twice does no harm.
func (q *Queue) snapStarted(c cursor, b *machine.Budget, out *machine.Effects) cursor {
	if c.keys != q.index.Numbering() {
		c = cursor{phase: phaseStarted, keys: q.index.Numbering()}
	}
	part, first, began := newChunk(b, out), c.next, false
	for ; c.next < uint64(q.index.KeyCount()) && part.more(c.next == first); c.next++ {
		q.index.Entries.Visits++
		k, ok := q.index.StartedKey(int(c.next))
		if !ok {
			continue
		}
		if !began {
			out.Begin(record.KindStarted)
			began = true
		}
		writeStarted(out, k)
	}
	if began {
		out.End()
	}
	if c.next >= uint64(q.index.KeyCount()) {
		return cursor{phase: phaseEnd}
	}
	return c
}

// replayStarted reads which keys were started. Inside a snapshot the messages of a
// key may not be restored yet: the part about keys, at its end, repeats it.
func (q *Queue) replayStarted(r *machine.Reader) error {
	for r.Len() > 0 {
		number, name := r.Uint(), r.String()
		if r.Bad() || number == 0 {
			r.Fail()
			return nil
		}
		if !q.index.StartByName(name, number) && !q.restore.inSnapshot {
			return fmt.Errorf("%w: no key %q to start", ErrCorrupt, name)
		}
	}
	return nil
}
