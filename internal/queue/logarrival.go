// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
)

// A reply goes as its request would: its age counts from when that arrived. The
// entry of such a message has the age by which it is ordered, and a flag; when
// the message really arrived is kept aside, because few need it.

// enqueuedAt returns when a message arrived, which is what consumers see.
func (q *Queue) enqueuedAt(seq SeqNo, e *entry) int64 { return q.index.msgs.enqueuedAt(seq, e) }

// lent logs when those of the messages from first to last arrived that were lent
// an age.
func (q *Queue) logArrivalTimes(first, last SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.index.msgs.next(first); e != nil && seq <= last; seq, e = q.index.msgs.next(seq + 1) {
		if e.flags&flagInherited == 0 {
			continue
		}
		if !began {
			out.Begin(kindArrivalTimes)
			began = true
		}
		out.Uint(uint64(seq))
		out.Fixed(q.index.msgs.arrivalTimes[seq])
	}
	if began {
		out.End()
	}
}

func (q *Queue) replayArrived(r *machine.Reader) error {
	for r.Len() > 0 {
		seq, at := readSeq(r), r.Time()
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.index.msgs.get(seq)
		if e == nil {
			return fmt.Errorf("%w: no message %d that arrived", ErrCorrupt, seq)
		}
		q.index.msgs.setArrivalTime(seq, e, at)
	}
	return nil
}
