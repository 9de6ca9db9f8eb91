// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"slices"

	"github.com/triagemq/triagemq/client"
)

// progress is how far a partition is handled, and how much of that is saved. It has no clock
// and no lock. It is guarded by the pump's mu.
//
//	savedTo     upTo        open
//	   ▼          ▼    ┌──────┴──────┐
//	───┼──────────┼────○──●──●──○──●──      ● done   ○ not done
//	   └─unsaved──┘
type progress struct {
	upTo    client.SeqNo // all events up to this are done; none: no event is
	savedTo client.SeqNo // the checkpoint
	unsaved int          // events that upTo has passed since a checkpoint was last due
	open    []entry      // with Async: begun and above upTo, in order
	left    int          // of open that are not done
	next    client.SeqNo // number of the event to begin with next; none: any
}

type entry struct {
	seqNo client.SeqNo
	done  bool
}

// newProgress begins after a checkpoint.
func newProgress(after client.SeqNo) progress {
	p := progress{upTo: max(after, none), savedTo: max(after, none), next: none}
	if after >= 0 || after == beginning {
		p.next = p.upTo + 1
	}
	return p
}

// gap reports whether events are missing before the one that is next, and after which.
func (p *progress) gap(n client.SeqNo) (after client.SeqNo, is bool) {
	return p.next - 1, p.next != none && n > p.next
}

// skipTo goes on behind a gap.
func (p *progress) skipTo(n client.SeqNo) { p.next = n }

// taken says that events are about to be handled.
func (p *progress) taken(events []*client.Received) { p.next = events[len(events)-1].SeqNo + 1 }

// startAfter begins after an event at which a reader starts that has no checkpoint.
func (p *progress) startAfter(n client.SeqNo) { p.upTo, p.next = max(p.upTo, n), n+1 }

// begin says that events are in work, in order.
func (p *progress) begin(events []*client.Received) {
	for _, e := range events {
		p.open = append(p.open, entry{seqNo: e.SeqNo})
	}
	p.left += len(events)
}

// forget undoes begin for an event and those after it.
func (p *progress) forget(n client.SeqNo) {
	from, _ := slices.BinarySearchFunc(p.open, n, bySeqNo)
	for _, e := range p.open[from:] {
		if !e.done {
			p.left--
		}
	}
	p.open = p.open[:from]
}

// done says that an event is done, and reports whether it was not before. Events that were
// not begun are left out.
func (p *progress) done(n client.SeqNo) bool {
	i, ok := slices.BinarySearchFunc(p.open, n, bySeqNo)
	if !ok || p.open[i].done {
		return false
	}
	p.open[i].done = true
	p.left--
	for len(p.open) > 0 && p.open[0].done {
		p.upTo = p.open[0].seqNo
		p.open = p.open[1:]
		p.unsaved++
	}
	return true
}

// handled says that events are done, without Async: they follow upTo.
func (p *progress) handled(events []*client.Received) {
	p.upTo = events[len(events)-1].SeqNo
	p.unsaved += len(events)
}

// isDone reports whether an event that was begun is done.
func (p *progress) isDone(n client.SeqNo) bool {
	i, ok := slices.BinarySearchFunc(p.open, n, bySeqNo)
	return !ok || p.open[i].done
}

// due returns the checkpoint that has to be saved before the next events are handled, and
// begins to count anew. Only events that it covers count: those that are done behind one that
// is not do not move it.
func (p *progress) due(policy CheckpointPolicy) (client.SeqNo, bool) {
	if policy.kind != everyCount || p.unsaved < policy.count {
		return 0, false
	}
	p.unsaved = 0
	return p.upTo, true
}

// saved says that a checkpoint is stored.
func (p *progress) saved(n client.SeqNo) { p.savedTo = max(p.savedTo, n) }

func bySeqNo(e entry, n client.SeqNo) int { return int(e.seqNo - n) }
