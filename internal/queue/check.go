// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// overheads counts what groups and sessions count toward Footprint.
func (q *Queue) overheads() (names, states int64) {
	for b := range q.index.Groups.ByName {
		names += GroupOverhead(b.Session, b.Key)
	}
	for i := range q.sessions.all {
		states += stateCost(q.sessions.all[i].id, q.sessions.all[i].state)
	}
	return names, states
}

// Check compares everything the queue counts and refers to with its messages. It
// returns the first invariant that does not hold, by its number in doc.go. It
// looks at every message: for tests, and for the owner after a replay.
func (q *Queue) Check() error {
	defer func(before uint64) { q.index.Entries.Visits = before }(q.index.Entries.Visits) // they are not those of a command
	var counts Counts
	perGroup := make(map[uint32]int)
	last, lent := SeqNo(0), 0
	for seq, e := q.index.Entries.Next(0); e != nil; seq, e = q.index.Entries.Next(seq + 1) {
		if seq <= last || seq > q.index.Entries.Last {
			return fmt.Errorf("invariant 1: message %d after %d, highest %d", seq, last, q.index.Entries.Last)
		}
		last = seq
		counts.Bytes += int64(e.BodySize)
		if e.Flags&entries.FlagInherited != 0 {
			lent++
		}
		perGroup[e.Group]++
		switch e.State() {
		case Ready:
			counts.Ready++
		case Locked:
			counts.Locked++
			if l := q.locks.All[e.StateIndex]; l.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the lock of %d", seq, l.Seq)
			}
		case Scheduled:
			counts.Scheduled++
			if a := q.schedule.All[e.StateIndex]; a.Seq != seq {
				return fmt.Errorf("invariant 2: message %d has the appointment of %d", seq, a.Seq)
			}
		case Deferred:
			counts.Deferred++
		}
	}
	if lent != len(q.index.Entries.ArrivalTimes) {
		return fmt.Errorf("invariant 4: %d times of arrival are kept, for %d messages", len(q.index.Entries.ArrivalTimes), lent)
	}
	for seq := range q.reasons {
		if q.index.Entries.Get(seq) == nil {
			return fmt.Errorf("invariant 4: a reason is kept for message %d, which is gone", seq)
		}
	}
	if names, states := q.overheads(); names != q.index.Groups.Bytes || states != q.sessions.bytes {
		return fmt.Errorf("invariant 3: names count %d bytes and states %d, found %d and %d", q.index.Groups.Bytes, q.sessions.bytes, names, states)
	}
	if counts != q.Counts() {
		return fmt.Errorf("invariant 3: counted %+v, found %+v", q.Counts(), counts)
	}
	for n := 1; n < len(q.index.Groups.All); n++ {
		if got := q.index.Groups.All[n].Refs; got != perGroup[uint32(n)] {
			return fmt.Errorf("invariant 4: group %d counts %d messages, found %d", n, got, perGroup[uint32(n)])
		}
	}
	if q.cfg.Sessions {
		if err := q.checkSessions(); err != nil {
			return err
		}
	}
	return q.index.Check(q.listed)
}

// checkSessions verifies that every message is in the lists of its session.
func (q *Queue) checkSessions() error {
	offers, aside := make(map[*sessionLevel]int), make(map[*session]int)
	for seq, e := q.index.Entries.Next(0); e != nil; seq, e = q.index.Entries.Next(seq + 1) {
		s := q.sessionOf(e)
		if !e.Is(Ready) {
			aside[s]++
			if at, ok := s.aside.After(seq - 1); !ok || at != seq {
				return fmt.Errorf("invariant 5: session %q has message %d, which is not aside", s.id, seq)
			}
			continue
		}
		if at, ok := s.ready.After(seq - 1); !ok || at != seq {
			return fmt.Errorf("invariant 5: session %q has message %d, which is not in its list", s.id, seq)
		}
		if err := q.checkOffer(s, e.Key(), e); err != nil {
			return err
		}
		offers[s.levelOf(e.Level)]++
	}
	for o, n := range offers {
		if err := q.index.Entries.CheckSorted(&o.SortedList, o.level, n); err != nil {
			return err
		}
	}
	for n := range q.sessions.all {
		if s := &q.sessions.all[n]; s.aside.Len() != aside[s] {
			return fmt.Errorf("invariant 5: session %q counts %d messages aside, found %d", s.id, s.aside.Len(), aside[s])
		}
	}
	return nil
}

// checkOffer verifies that a message is among those by which its session is
// ranked, and that a free session is in the levels by the oldest of each.
func (q *Queue) checkOffer(s *session, k entries.OrderKey, e *entries.Entry) error {
	o := s.levelOf(e.Level)
	if o == nil {
		return fmt.Errorf("invariant 5: session %q has message %d, and nothing in level %d", s.id, k.Seq, e.Level)
	}
	first, ok := o.First(&q.index.Entries)
	if !ok || k.Before(first) {
		return fmt.Errorf("invariant 5: session %q begins with %d in level %d, but has %d", s.id, first.Seq, e.Level, k.Seq)
	}
	if free := s.lock == 0; free != (o.listedSeq == first.Seq) {
		return fmt.Errorf("invariant 5: session %q, free %t, is in level %d by %d, not by %d", s.id, free, e.Level, o.listedSeq, first.Seq)
	}
	return nil
}
