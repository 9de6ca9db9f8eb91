// SPDX-License-Identifier: Apache-2.0

package arrivals

import (
	"cmp"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// Tracker knows where the arrivals of one queue are in the journal. The zero value is
// that of a queue without messages.
type Tracker struct {
	last    queue.SeqNo // highest number assigned
	durable queue.SeqNo // highest number whose arrival is known to be durable
	pending []group     // those after it, as far as they are appended
}

// group is where the journal has the arrivals up to a number.
type group struct {
	upTo queue.SeqNo
	at   journal.Position
}

// Recovered sets the highest number of a queue that was recovered. All its messages are
// durable.
func (t *Tracker) Recovered(last queue.SeqNo) { t.last, t.durable = last, last }

// Assigned notes that the queue has assigned a number. It returns false if that is not
// higher than those before.
func (t *Tracker) Assigned(seq queue.SeqNo) bool {
	if seq <= t.last {
		return false
	}
	t.last = seq
	return true
}

// Appended notes where the numbers assigned so far were appended. What is durable by
// now is no longer pending.
func (t *Tracker) Appended(at, durable journal.Position) {
	t.prune(durable)
	t.pending = append(t.pending, group{t.last, at})
}

func (t *Tracker) prune(durable journal.Position) {
	n := 0
	for n < len(t.pending) && t.pending[n].at <= durable {
		t.durable = t.pending[n].upTo
		n++
	}
	t.pending = slices.Delete(t.pending, 0, n)
}

// Position returns what has to be durable for a message to have arrived: zero if the
// arrival is durable. It returns false if the arrival is not appended yet.
func (t *Tracker) Position(seq queue.SeqNo, durable journal.Position) (journal.Position, bool) {
	if seq <= t.durable {
		return 0, true
	}
	return t.find(seq, durable)
}

func (t *Tracker) find(seq queue.SeqNo, durable journal.Position) (journal.Position, bool) {
	t.prune(durable)
	if seq <= t.durable {
		return 0, true
	}
	i, _ := slices.BinarySearchFunc(t.pending, seq, func(g group, seq queue.SeqNo) int { return cmp.Compare(g.upTo, seq) })
	if i == len(t.pending) {
		return 0, false
	}
	return t.pending[i].at, true
}
