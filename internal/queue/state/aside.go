// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// A reply is ordered by the order time of its request. Its entry has that time, and a
// flag; its own arrival time is in a map beside the entries, because few messages
// need it.

// EnqueuedAt returns when a message arrived, which is what consumers see.
func (q *Core) EnqueuedAt(seq entries.SeqNo, e *entries.Entry) int64 {
	return q.Index.Entries.EnqueuedAt(seq, e)
}

// LogArrivalTimes logs the arrival times of those messages from first to last whose
// order time is another.
func (q *Core) LogArrivalTimes(first, last entries.SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		if e.Flags&entries.FlagInherited == 0 {
			continue
		}
		if !began {
			out.Begin(record.KindArrivalTimes)
			began = true
		}
		out.Uint(uint64(seq))
		out.Fixed(q.Index.Entries.EnqueuedAt(seq, e))
	}
	if began {
		out.End()
	}
}

func (q *Core) replayArrivalTimes(r *machine.Reader) error {
	for r.Len() > 0 {
		seq, at := record.ReadSeq(r), r.Time()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.Index.Entries.Get(seq)
		if e == nil {
			if err := q.absent(seq, "no message %d that arrived", seq); err != nil {
				return err
			}
			continue
		}
		q.Index.Entries.SetArrivalTime(seq, e, at)
	}
	return nil
}

// Refs has bodies beside those of messages, for the few messages that have one: the reason
// of a dead letter, and the state that a consumer has saved. So neither dead-lettering nor
// saving reads or writes the message. Several messages may share one.
type Refs struct {
	entries.Table[entries.SeqNo, machine.Ref]
	Bytes int64       // of all bodies
	kind  record.Kind // of the records that list them: (seq, ref) …
}

// HasBeside reports whether any message has a body beside its own.
func (q *Core) HasBeside() bool { return q.Reasons.Len()|q.Saved.Len() != 0 }

// Put sets the body beside a message in place of the one it has; the zero Ref is none.
func (t *Refs) Put(seq entries.SeqNo, body machine.Ref, out *machine.Effects) {
	t.Drop(seq, out)
	if body == (machine.Ref{}) {
		return
	}
	t.Set(seq, body)
	t.Bytes += int64(body.Size)
	out.Added = append(out.Added, body)
}

// Drop removes the body beside a message, if it has one.
func (t *Refs) Drop(seq entries.SeqNo, out *machine.Effects) {
	if t.Len() == 0 {
		return
	}
	if body, ok := t.Get(seq); ok {
		out.Freed = append(out.Freed, body)
		t.Bytes -= int64(body.Size)
		t.Delete(seq)
	}
}

// Log logs the bodies beside the messages from first to last.
func (q *Core) Log(t *Refs, first, last entries.SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		body, ok := t.Get(seq)
		if !ok {
			continue
		}
		if !began {
			out.Begin(t.kind)
			began = true
		}
		out.Uint(uint64(seq))
		out.Ref(body)
	}
	if began {
		out.End()
	}
}

// snapRefs writes the bodies beside the messages from first to last into a snapshot, and lets
// the owner move them.
func (q *Core) snapRefs(t *Refs, first, last entries.SeqNo, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) {
	if t.Len() == 0 {
		return
	}
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		if body, ok := t.Get(seq); ok {
			if to, ok := move(body); ok {
				t.Put(seq, to, out)
			}
		}
	}
	q.Log(t, first, last, out)
}

func (q *Core) replayRefs(t *Refs, r *machine.Reader, out *machine.Effects) error {
	for r.Len() > 0 {
		seq, body := record.ReadSeq(r), r.Ref()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		if q.Index.Entries.Get(seq) == nil {
			if err := q.absent(seq, "record %#02x is about message %d, which does not exist", t.kind, seq); err != nil {
				return err
			}
			continue
		}
		t.Put(seq, body, out)
	}
	return nil
}
