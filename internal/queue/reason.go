// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// A dead letter keeps the body it had. Why it died is kept beside it, in a body of
// its own that may be shared, so that a message dies without being read or written
// again. Only dead letters have one, so it is not part of an entry.

// setReason says where the reason of a message is kept.
func (q *Queue) setReason(seq SeqNo, reason Ref, out *machine.Effects) {
	q.dropReason(seq, out)
	if q.reasons == nil {
		q.reasons = make(map[SeqNo]Ref)
	}
	q.reasons[seq] = reason
	out.Added = append(out.Added, reason)
}

// dropReason forgets the reason of a message, if it has one.
func (q *Queue) dropReason(seq SeqNo, out *machine.Effects) {
	if reason, ok := q.reasons[seq]; ok {
		out.Freed = append(out.Freed, reason)
		delete(q.reasons, seq)
	}
}

// recordReasons logs the reasons of the messages from first to last.
func (q *Queue) recordReasons(first, last SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.index.Entries.Next(first); e != nil && seq <= last; seq, e = q.index.Entries.Next(seq + 1) {
		reason, ok := q.reasons[seq]
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
func (q *Queue) moveReasons(first, last SeqNo, move func(Ref) (Ref, bool), out *machine.Effects) {
	for seq, e := q.index.Entries.Next(first); e != nil && seq <= last; seq, e = q.index.Entries.Next(seq + 1) {
		if reason, ok := q.reasons[seq]; ok {
			if to, ok := move(reason); ok {
				q.setReason(seq, to, out)
			}
		}
	}
}

func (q *Queue) replayReasons(r *machine.Reader, out *machine.Effects) error {
	for r.Len() > 0 {
		seq, reason := record.ReadSeq(r), r.Ref()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		if q.index.Entries.Get(seq) == nil {
			return fmt.Errorf("%w: a reason for message %d, which is gone", ErrCorrupt, seq)
		}
		q.setReason(seq, reason, out)
	}
	return nil
}
