// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"slices"

	"github.com/triagemq/triagemq/client"
)

// tracker knows which events of a partition are done, and up to where without a gap. It is
// guarded by the pump's mu.
type tracker struct {
	upTo client.SeqNo // all events up to this are done; none: no event is
	open []entry      // begun and above upTo, in order
	left int          // of open that are not done
}

type entry struct {
	seqNo client.SeqNo
	done  bool
}

// begin says that events are in work, in order.
func (t *tracker) begin(events []*client.Received) {
	for _, e := range events {
		t.open = append(t.open, entry{seqNo: e.SeqNo})
	}
	t.left += len(events)
}

// forget undoes begin for an event and those after it.
func (t *tracker) forget(n client.SeqNo) {
	from, _ := slices.BinarySearchFunc(t.open, n, bySeqNo)
	for _, e := range t.open[from:] {
		if !e.done {
			t.left--
		}
	}
	t.open = t.open[:from]
}

// done says that an event is done. Events that were not begun are none of its business.
func (t *tracker) done(n client.SeqNo) {
	i, ok := slices.BinarySearchFunc(t.open, n, bySeqNo)
	if !ok || t.open[i].done {
		return
	}
	t.open[i].done = true
	t.left--
	for len(t.open) > 0 && t.open[0].done {
		t.upTo = t.open[0].seqNo
		t.open = t.open[1:]
	}
}

// isDone reports whether an event that was begun is done.
func (t *tracker) isDone(n client.SeqNo) bool {
	i, ok := slices.BinarySearchFunc(t.open, n, bySeqNo)
	return !ok || t.open[i].done
}

func bySeqNo(e entry, n client.SeqNo) int { return int(e.seqNo - n) }
