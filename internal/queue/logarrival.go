// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// A reply goes as its request would: its age counts from when that arrived. The
// entry of such a message has the age by which it is ordered, and a flag; when
// the message really arrived is kept aside, because few need it.

// enqueuedAt returns when a message arrived, which is what consumers see.
func (q *Queue) enqueuedAt(seq SeqNo, e *entries.Entry) int64 {
	return q.index.Entries.EnqueuedAt(seq, e)
}

// logArrivalTimes logs when those of the messages from first to last arrived that were lent
// an age.
func (q *Queue) logArrivalTimes(first, last SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.index.Entries.Next(first); e != nil && seq <= last; seq, e = q.index.Entries.Next(seq + 1) {
		if e.Flags&entries.FlagInherited == 0 {
			continue
		}
		if !began {
			out.Begin(record.KindArrivalTimes)
			began = true
		}
		out.Uint(uint64(seq))
		out.Fixed(q.index.Entries.ArrivalTimes[seq])
	}
	if began {
		out.End()
	}
}

func (q *Queue) replayArrived(r *machine.Reader) error {
	for r.Len() > 0 {
		seq, at := record.ReadSeq(r), r.Time()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.index.Entries.Get(seq)
		if e == nil {
			return fmt.Errorf("%w: no message %d that arrived", ErrCorrupt, seq)
		}
		q.index.Entries.SetArrivalTime(seq, e, at)
	}
	return nil
}
