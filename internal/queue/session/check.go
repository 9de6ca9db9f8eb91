// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
)

// Check verifies that every message is in the lists of its session.
func (ss *Table) Check(x *order.Index) error {
	offers, aside, retries := make(map[*level]int), make(map[*Session]int), make(map[*Session]int)
	for seq, e := x.Entries.Next(0); e != nil; seq, e = x.Entries.Next(seq + 1) {
		s := ss.Of(x, e)
		if !e.Is(entries.Ready) {
			aside[s]++
			if e.Is(entries.Retrying) {
				retries[s]++
			}
			if at, ok := s.aside.After(seq - 1); !ok || at != seq {
				return fmt.Errorf("invariant 5: session %q has message %d, which is not aside", s.ID, seq)
			}
			continue
		}
		if at, ok := s.ready.After(seq - 1); !ok || at != seq {
			return fmt.Errorf("invariant 5: session %q has message %d, which is not in its list", s.ID, seq)
		}
		if err := checkLevel(x, s, e.Key(), e); err != nil {
			return err
		}
		offers[s.levelOf(e.Level)]++
	}
	held, states, ids := int64(0), uint64(0), uint64(0)
	for _, s := range ss.All {
		if s != nil {
			held += heldCost(s.ID, s.State)
		}
		if s != nil && s.State != (machine.Ref{}) {
			states, ids = states+1, ids+uint64(len(s.ID))
		}
	}
	if states != ss.states || ids != ss.ids {
		return fmt.Errorf("invariant 3: %d states of sessions with %d bytes of ids are counted, found %d with %d", ss.states, ss.ids, states, ids)
	}
	if held != ss.held {
		return fmt.Errorf("invariant 3: states count %d bytes in memory, found %d", ss.held, held)
	}
	for o, n := range offers {
		if err := x.Entries.CheckSorted(&o.SortedList, o.level, n); err != nil {
			return err
		}
	}
	for n := range ss.All {
		if s := ss.All[n]; s != nil && s.aside.Len() != aside[s] {
			return fmt.Errorf("invariant 5: session %q counts %d messages aside, found %d", s.ID, s.aside.Len(), aside[s])
		}
		if s := ss.All[n]; s != nil && s.retries != retries[s] {
			return fmt.Errorf("invariant 5: session %q counts %d retries, found %d", s.ID, s.retries, retries[s])
		}
	}
	return nil
}

// checkLevel verifies that a message is among those by which its session is
// ranked, and that a free session is in the levels by the oldest of each.
func checkLevel(x *order.Index, s *Session, k entries.OrderKey, e *entries.Entry) error {
	o := s.levelOf(e.Level)
	if o == nil {
		return fmt.Errorf("invariant 5: session %q has message %d, and nothing in level %d", s.ID, k.Seq, e.Level)
	}
	first, ok := o.First(&x.Entries)
	if !ok || k.Before(first) {
		return fmt.Errorf("invariant 5: session %q begins with %d in level %d, but has %d", s.ID, first.Seq, e.Level, k.Seq)
	}
	if free := s.free(); free != (o.listedSeq == first.Seq) {
		return fmt.Errorf("invariant 5: session %q, free %t, is in level %d by %d, not by %d", s.ID, free, e.Level, o.listedSeq, first.Seq)
	}
	return nil
}

// StateBytes counts what the states count toward the size of the queue.
func (ss *Table) StateBytes() (n int64) {
	for i := range ss.All {
		if s := ss.All[i]; s != nil {
			n += StateCost(s.ID, s.State)
		}
	}
	return n
}
