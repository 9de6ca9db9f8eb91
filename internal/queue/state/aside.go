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

// A dead letter keeps its body. Its reason is in a body of its own, which several dead
// letters may share, so that dead-lettering neither reads nor rewrites the message. It is
// in a map, because only dead letters have one.

// SetReason sets where the reason of a message is stored.
func (q *Core) SetReason(seq entries.SeqNo, reason machine.Ref, out *machine.Effects) {
	q.DropReason(seq, out)
	q.Reasons.Set(seq, reason)
	out.Added = append(out.Added, reason)
}

// DropReason removes the reason of a message, if it has one.
func (q *Core) DropReason(seq entries.SeqNo, out *machine.Effects) {
	if reason, ok := q.Reasons.Get(seq); ok {
		out.Freed = append(out.Freed, reason)
		q.Reasons.Delete(seq)
	}
}

// RecordReasons logs the reasons of the messages from first to last.
func (q *Core) RecordReasons(first, last entries.SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		reason, ok := q.Reasons.Get(seq)
		if !ok {
			continue
		}
		if !began {
			out.Begin(record.KindReasons)
			began = true
		}
		out.Uint(uint64(seq))
		out.Ref(reason)
	}
	if began {
		out.End()
	}
}

// moveReasons lets the owner move the reasons of the messages from first to last.
func (q *Core) moveReasons(first, last entries.SeqNo, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) {
	for seq, e := q.Index.Entries.Next(first); e != nil && seq <= last; seq, e = q.Index.Entries.Next(seq + 1) {
		if reason, ok := q.Reasons.Get(seq); ok {
			if to, ok := move(reason); ok {
				q.SetReason(seq, to, out)
			}
		}
	}
}

func (q *Core) replayReasons(r *machine.Reader, out *machine.Effects) error {
	for r.Len() > 0 {
		seq, reason := record.ReadSeq(r), r.Ref()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		if q.Index.Entries.Get(seq) == nil {
			if err := q.absent(seq, "a reason for message %d, which does not exist", seq); err != nil {
				return err
			}
			continue
		}
		q.SetReason(seq, reason, out)
	}
	return nil
}
