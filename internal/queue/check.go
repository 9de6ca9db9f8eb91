// SPDX-License-Identifier: Apache-2.0

package queue

import "fmt"

// overheads counts what groups and sessions count toward Footprint.
func (q *Queue) overheads() (names, states int64) {
	for b := range q.index.groups.byName {
		names += GroupOverhead(b.session, b.key)
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
	defer func(before uint64) { q.index.msgs.visits = before }(q.index.msgs.visits) // they are not those of a command
	var counts Counts
	perGroup := make(map[uint32]int)
	last, lent := SeqNo(0), 0
	for seq, e := q.index.msgs.next(0); e != nil; seq, e = q.index.msgs.next(seq + 1) {
		if seq <= last || seq > q.index.msgs.last {
			return fmt.Errorf("invariant 1: message %d after %d, highest %d", seq, last, q.index.msgs.last)
		}
		last = seq
		counts.Bytes += int64(e.bodySize)
		if e.flags&flagInherited != 0 {
			lent++
		}
		perGroup[e.group]++
		switch e.state() {
		case Ready:
			counts.Ready++
		case Locked:
			counts.Locked++
			if l := q.locks.all[e.stateIndex]; l.seq != seq {
				return fmt.Errorf("invariant 2: message %d has the lock of %d", seq, l.seq)
			}
		case Scheduled:
			counts.Scheduled++
			if a := q.schedule.all[e.stateIndex]; a.seq != seq {
				return fmt.Errorf("invariant 2: message %d has the appointment of %d", seq, a.seq)
			}
		case Deferred:
			counts.Deferred++
		}
	}
	if lent != len(q.index.msgs.arrivalTimes) {
		return fmt.Errorf("invariant 4: %d times of arrival are kept, for %d messages", len(q.index.msgs.arrivalTimes), lent)
	}
	for seq := range q.reasons {
		if q.index.msgs.get(seq) == nil {
			return fmt.Errorf("invariant 4: a reason is kept for message %d, which is gone", seq)
		}
	}
	if names, states := q.overheads(); names != q.index.groups.bytes || states != q.sessions.bytes {
		return fmt.Errorf("invariant 3: names count %d bytes and states %d, found %d and %d", q.index.groups.bytes, q.sessions.bytes, names, states)
	}
	if counts != q.Counts() {
		return fmt.Errorf("invariant 3: counted %+v, found %+v", q.Counts(), counts)
	}
	for n := 1; n < len(q.index.groups.all); n++ {
		if got := q.index.groups.all[n].refs; got != perGroup[uint32(n)] {
			return fmt.Errorf("invariant 4: group %d counts %d messages, found %d", n, got, perGroup[uint32(n)])
		}
	}
	if q.cfg.Sessions {
		if err := q.checkSessions(); err != nil {
			return err
		}
	}
	return q.index.check(q.listed)
}

// checkSessions verifies that every message is in the lists of its session.
func (q *Queue) checkSessions() error {
	offers, aside := make(map[*sessionLevel]int), make(map[*session]int)
	for seq, e := q.index.msgs.next(0); e != nil; seq, e = q.index.msgs.next(seq + 1) {
		s := q.sessionOf(e)
		if !e.is(Ready) {
			aside[s]++
			if at, ok := s.aside.after(seq - 1); !ok || at != seq {
				return fmt.Errorf("invariant 5: session %q has message %d, which is not aside", s.id, seq)
			}
			continue
		}
		if at, ok := s.ready.after(seq - 1); !ok || at != seq {
			return fmt.Errorf("invariant 5: session %q has message %d, which is not in its list", s.id, seq)
		}
		if err := q.checkOffer(s, orderKey{e.orderTime, seq}, e); err != nil {
			return err
		}
		offers[s.levelOf(e.level)]++
	}
	for o, n := range offers {
		if err := q.index.msgs.checkSorted(&o.sortedList, o.level, n); err != nil {
			return err
		}
	}
	for n := range q.sessions.all {
		if s := &q.sessions.all[n]; s.aside.n != aside[s] {
			return fmt.Errorf("invariant 5: session %q counts %d messages aside, found %d", s.id, s.aside.n, aside[s])
		}
	}
	return nil
}

// checkOffer verifies that a message is among those by which its session is
// ranked, and that a free session is in the levels by the oldest of each.
func (q *Queue) checkOffer(s *session, k orderKey, e *entry) error {
	o := s.levelOf(e.level)
	if o == nil {
		return fmt.Errorf("invariant 5: session %q has message %d, and nothing in level %d", s.id, k.seq, e.level)
	}
	first, ok := o.first(&q.index.msgs)
	if !ok || k.before(first) {
		return fmt.Errorf("invariant 5: session %q begins with %d in level %d, but has %d", s.id, first.seq, e.level, k.seq)
	}
	if free := s.lock == 0; free != (o.listedSeq == first.seq) {
		return fmt.Errorf("invariant 5: session %q, free %t, is in level %d by %d, not by %d", s.id, free, e.level, o.listedSeq, first.seq)
	}
	return nil
}
