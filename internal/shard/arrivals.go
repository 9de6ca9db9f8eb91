// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"slices"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// arrivals says where in the journal the messages of a slot, up to a number, have
// come. A message that nobody has failed depends on that alone, and not on what
// the shard has written since: handed out, it need not wait for the next sync.
type arrivals struct {
	upTo queue.SeqNo
	at   journal.Position
}

// place notes where the messages of the slots that gave out numbers since the last
// commit have come, and where others have come back.
func (s *Shard) place(at journal.Position) {
	for _, sl := range s.risen {
		sl.risen = false
		sl.settleDown(s.tx.Durable())
		sl.coming = append(sl.coming, arrivals{sl.last, at})
	}
	s.risen = s.risen[:0]
	for _, sl := range s.fenced {
		sl.fence, sl.fenced = at, false
	}
	s.fenced = s.fenced[:0]
}

// settleDown drops what is durable by now, so that there is never more than the
// journal has on its way.
func (sl *slot) settleDown(durable journal.Position) {
	n := 0
	for n < len(sl.coming) && sl.coming[n].at <= durable {
		sl.safe = sl.coming[n].upTo
		n++
	}
	sl.coming = slices.Delete(sl.coming, 0, n)
}

// arrived returns what has to be durable for a message to have come: zero if it has
// come for good, pending if it is not even appended.
func (sl *slot) arrived(seq queue.SeqNo, durable journal.Position) journal.Position {
	if seq <= sl.safe {
		return 0
	}
	sl.settleDown(durable)
	if seq <= sl.safe {
		return 0
	}
	i, _ := slices.BinarySearchFunc(sl.coming, seq, func(a arrivals, seq queue.SeqNo) int { return cmp.Compare(a.upTo, seq) })
	if i == len(sl.coming) {
		return engine.Pending
	}
	return sl.coming[i].at
}
