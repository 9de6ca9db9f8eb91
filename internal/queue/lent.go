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
func (q *Queue) enqueuedAt(seq SeqNo, e *entry) int64 {
	if e.flags&flagLent == 0 {
		return e.enqueued
	}
	return q.arrived[seq]
}

// lend says that a message arrived later than its age tells.
func (q *Queue) lend(seq SeqNo, e *entry, arrived int64) {
	if q.arrived == nil {
		q.arrived = make(map[SeqNo]int64)
	}
	e.flags |= flagLent
	q.arrived[seq] = arrived
}

// lent logs when those of the messages from first to last arrived that were lent
// an age.
func (q *Queue) lent(first, last SeqNo, out *machine.Effects) {
	began := false
	for seq, e := q.msgs.next(first); e != nil && seq <= last; seq, e = q.msgs.next(seq + 1) {
		if e.flags&flagLent == 0 {
			continue
		}
		if !began {
			out.Begin(kindArrived)
			began = true
		}
		out.Uint(uint64(seq))
		out.Fixed(q.arrived[seq])
	}
	if began {
		out.End()
	}
}

func (q *Queue) replayArrived(r *machine.Reader) error {
	for r.Len() > 0 {
		seq, at := readSeq(r), r.Time()
		if r.Bad() || q.unseen(seq) {
			continue
		}
		e := q.msgs.get(seq)
		if e == nil {
			return fmt.Errorf("%w: no message %d that arrived", ErrCorrupt, seq)
		}
		q.lend(seq, e, at)
	}
	return nil
}
