// SPDX-License-Identifier: Apache-2.0

package shard

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

// place notes where the messages of the queues that gave out numbers since the last
// commit have come, and where others have come back.
func (s *Shard) place(at journal.Position) {
	for _, hq := range s.risen {
		hq.risen = false
		hq.settleDown(s.tx.Durable())
		hq.coming = append(hq.coming, arrivals{hq.last, at})
	}
	s.risen = s.risen[:0]
	for _, hq := range s.fenced {
		hq.fence, hq.fenced = at, false
	}
	s.fenced = s.fenced[:0]
}

// settleDown drops what is durable by now, so that there is never more than the
// journal has on its way.
func (hq *hostedQueue) settleDown(durable journal.Position) {
	n := 0
	for n < len(hq.coming) && hq.coming[n].at <= durable {
		hq.safe = hq.coming[n].upTo
		n++
	}
	hq.coming = slices.Delete(hq.coming, 0, n)
}

// arrived returns what has to be durable for a message to have come: zero if it has
// come for good, pending if it is not even appended.
func (hq *hostedQueue) arrived(seq queue.SeqNo, durable journal.Position) journal.Position {
	if seq <= hq.safe {
		return 0
	}
	hq.settleDown(durable)
	if seq <= hq.safe {
		return 0
	}
	i, _ := slices.BinarySearchFunc(hq.coming, seq, func(a arrivals, seq queue.SeqNo) int { return cmp.Compare(a.upTo, seq) })
	if i == len(hq.coming) {
		return engine.Pending
	}
	return hq.coming[i].at
}
