// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"cmp"
	"slices"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// arrivals says where in the journal the messages of a queue, up to a number, have
// come. A message that nobody has failed depends on that alone, and not on what
// the shard has written since: handed out, it need not wait for the next sync.
type arrivals struct {
	upTo queue.SeqNo
	at   journal.Position
}

// recordArrivals notes where the journal has the messages whose numbers were assigned
// since the last commit, and those that were returned.
func (s *Shard) recordArrivals(at journal.Position) {
	for _, hq := range s.assignedSeqs {
		hq.assignedSeqs = false
		hq.pruneDurable(s.tx.Durable())
		hq.pendingArrivals = append(hq.pendingArrivals, arrivals{hq.lastSeq, at})
	}
	s.assignedSeqs = s.assignedSeqs[:0]
	for _, hq := range s.fenced {
		hq.fence, hq.fenced = at, false
	}
	s.fenced = s.fenced[:0]
}

// pruneDurable drops the arrivals that are durable by now, so that there are never more
// than the journal has on its way.
func (hq *hostedQueue) pruneDurable(durable journal.Position) {
	n := 0
	for n < len(hq.pendingArrivals) && hq.pendingArrivals[n].at <= durable {
		hq.durableSeq = hq.pendingArrivals[n].upTo
		n++
	}
	hq.pendingArrivals = slices.Delete(hq.pendingArrivals, 0, n)
}

// arrived returns what has to be durable for a message to have come: zero if it has
// come for good, pending if it is not even appended.
func (hq *hostedQueue) arrived(seq queue.SeqNo, durable journal.Position) journal.Position {
	if seq <= hq.durableSeq {
		return 0
	}
	hq.pruneDurable(durable)
	if seq <= hq.durableSeq {
		return 0
	}
	i, _ := slices.BinarySearchFunc(hq.pendingArrivals, seq, func(a arrivals, seq queue.SeqNo) int { return cmp.Compare(a.upTo, seq) })
	if i == len(hq.pendingArrivals) {
		return engine.Pending
	}
	return hq.pendingArrivals[i].at
}
