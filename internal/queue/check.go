// SPDX-License-Identifier: Apache-2.0

package queue

import "fmt"

// overheads counts what groups and sessions count toward Footprint.
func (q *Queue) overheads() (names, states int64) {
	for b := range q.groups.byName {
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
	defer func(before uint64) { q.msgs.visits = before }(q.msgs.visits) // they are not those of a command
	var counts Counts
	perLevel := make(map[Level]readyStat)
	perClass := make(map[Class]readyStat)
	perGroup := make(map[uint32]int)
	last, lent := SeqNo(0), 0
	for seq, e := q.msgs.next(0); e != nil; seq, e = q.msgs.next(seq + 1) {
		if seq <= last || seq > q.msgs.last {
			return fmt.Errorf("invariant 1: message %d after %d, highest %d", seq, last, q.msgs.last)
		}
		last = seq
		counts.Bytes += int64(e.bodySize)
		if e.flags&flagLent != 0 {
			lent++
		}
		perGroup[e.group]++
		switch e.state() {
		case Ready:
			counts.Ready++
			perLevel[e.level] = perLevel[e.level].plus(e)
			perClass[e.class] = perClass[e.class].plus(e)
		case Locked:
			counts.Locked++
			if l := q.locks.all[e.slot]; l.seq != seq {
				return fmt.Errorf("invariant 2: message %d has the lock of %d", seq, l.seq)
			}
		case Scheduled:
			counts.Scheduled++
			if a := q.schedule.all[e.slot]; a.seq != seq {
				return fmt.Errorf("invariant 2: message %d has the appointment of %d", seq, a.seq)
			}
		case Deferred:
			counts.Deferred++
		}
	}
	if lent != len(q.arrived) {
		return fmt.Errorf("invariant 4: %d times of arrival are kept, for %d messages", len(q.arrived), lent)
	}
	for seq := range q.reasons {
		if q.msgs.get(seq) == nil {
			return fmt.Errorf("invariant 4: a reason is kept for message %d, which is gone", seq)
		}
	}
	if names, states := q.overheads(); names != q.groups.bytes || states != q.sessions.bytes {
		return fmt.Errorf("invariant 3: names count %d bytes and states %d, found %d and %d", q.groups.bytes, q.sessions.bytes, names, states)
	}
	if counts != q.counts {
		return fmt.Errorf("invariant 3: counted %+v, found %+v", q.counts, counts)
	}
	for l, got := range q.byLevel {
		if got != perLevel[Level(l)] {
			return fmt.Errorf("invariant 3: level %d counts %+v ready, found %+v", l, got, perLevel[Level(l)])
		}
	}
	for c := range q.classes {
		st := &q.classes[c]
		if got := (readyStat{st.ready, st.bytes}); got != perClass[Class(c)] {
			return fmt.Errorf("invariant 3: class %d counts %+v ready, found %+v", c, got, perClass[Class(c)])
		}
	}
	for n := 1; n < len(q.groups.all); n++ {
		if got := q.groups.all[n].refs; got != perGroup[uint32(n)] {
			return fmt.Errorf("invariant 4: group %d counts %d messages, found %d", n, got, perGroup[uint32(n)])
		}
	}
	if err := q.checkSlabs(); err != nil {
		return err
	}
	if err := q.checkExpiries(); err != nil {
		return err
	}
	if err := q.checkOrder(func(SeqNo) bool { return true }); err != nil || q.next.index == nil {
		return err
	}
	q.exchange()
	defer q.exchange()
	if err := q.checkOrder(q.next.has); err != nil {
		return fmt.Errorf("second index: %w", err)
	}
	return nil
}

// readyStat is how many messages of a level or class are ready, and the bytes of
// their bodies.
type readyStat struct{ ready, bytes int64 }

func (s readyStat) plus(e *entry) readyStat {
	return readyStat{s.ready + 1, s.bytes + int64(e.bodySize)}
}

// checkOrder verifies that every ready message can be found by who should find
// it: in its lane, or in its session, which is in the lanes if it is free. followed
// says which messages the index follows.
func (q *Queue) checkOrder(followed func(SeqNo) bool) error {
	lanes, offers := make(map[Level]int), make(map[*offer]int)
	aside := make(map[*session]int)
	for seq, e := q.msgs.next(0); e != nil; seq, e = q.msgs.next(seq + 1) {
		if !e.is(Ready) {
			if q.cfg.Sessions {
				s := q.sessionOf(e)
				aside[s]++
				if at, ok := s.aside.after(seq - 1); !ok || at != seq {
					return fmt.Errorf("invariant 5: session %q has message %d, which is not aside", s.id, seq)
				}
			}
			continue
		}
		if q.cfg.Sessions {
			s := q.sessionOf(e)
			if at, ok := s.line.after(seq - 1); !ok || at != seq {
				return fmt.Errorf("invariant 5: session %q has message %d, which is not in its list", s.id, seq)
			}
			if err := q.checkOffer(s, orderKey{e.enqueued, seq}, e); err != nil {
				return err
			}
			offers[s.offerOf(e.level)]++
			if !s.shows(seq, e.level) {
				continue
			}
		}
		if !followed(seq) {
			continue
		}
		lanes[e.level]++
		lane := q.levels.all[e.level]
		if fair, ok := lane.(*fairLane); ok {
			if err := q.checkFair(fair, orderKey{e.enqueued, seq}, e); err != nil {
				return err
			}
			continue
		}
		if first, ok := lane.first(q); !ok || q.precedes(orderKey{e.enqueued, seq}, first) {
			return fmt.Errorf("invariant 5: level %d begins with %d, but has %d", e.level, first.seq, seq)
		}
	}
	for o, n := range offers {
		if err := q.checkLine(&o.sortedList, o.level, n); err != nil {
			return err
		}
	}
	for n := range q.sessions.all {
		if s := &q.sessions.all[n]; s.aside.n != aside[s] {
			return fmt.Errorf("invariant 5: session %q counts %d messages aside, found %d", s.id, s.aside.n, aside[s])
		}
	}
	for n := range q.keys.all {
		for _, l := range q.keys.all[n].lines {
			if err := q.checkLine(&l.sortedList, l.level, l.list.n); err != nil {
				return err
			}
		}
	}
	for l := range q.levels.all {
		counted := lanes[Level(l)]
		if lane, ok := q.levels.all[l].(*plainLane); ok {
			counted = lane.n
			if err := q.checkLine(&lane.line, Level(l), lane.n); err != nil {
				return err
			}
		}
		if counted != lanes[Level(l)] {
			return fmt.Errorf("invariant 5: the lane of level %d counts %d, found %d", l, counted, lanes[Level(l)])
		}
		if q.levels.all[l] != nil && q.levels.open.has(Level(l)) != q.levels.all[l].open() {
			return fmt.Errorf("invariant 6: level %d: open %t", l, q.levels.open.has(Level(l)))
		}
	}
	return nil
}

// checkOffer verifies that a message is among those by which its session is
// ranked, and that a free session is in the levels by the oldest of each.
func (q *Queue) checkOffer(s *session, k orderKey, e *entry) error {
	o := s.offerOf(e.level)
	if o == nil {
		return fmt.Errorf("invariant 5: session %q has message %d, and nothing in level %d", s.id, k.seq, e.level)
	}
	first, ok := o.first(&q.msgs)
	if !ok || k.before(first) {
		return fmt.Errorf("invariant 5: session %q begins with %d in level %d, but has %d", s.id, first.seq, e.level, k.seq)
	}
	if free := s.lock == 0; free != (o.shown == first.seq) {
		return fmt.Errorf("invariant 5: session %q, free %t, is in level %d by %d, not by %d", s.id, free, e.level, o.shown, first.seq)
	}
	return nil
}

// checkFair verifies that the line of a key has a message, and that it takes
// turns only below its cap.
func (q *Queue) checkFair(f *fairLane, k orderKey, e *entry) error {
	n := q.fairKey(e.group)
	l := f.find(q, n)
	if l == nil {
		return fmt.Errorf("invariant 5: message %d is in no line of key %q", k.seq, q.keys.all[n].name)
	}
	if first, ok := l.sortedList.first(&q.msgs); !ok || k.before(first) || (f.aged || f.finish) && first != l.first {
		return fmt.Errorf("invariant 5: key %q begins with %d, but has %d", q.keys.all[n].name, first.seq, k.seq)
	}
	if l.started != q.keys.all[n].started {
		return fmt.Errorf("invariant 5: key %q was started as %d, its line as %d", q.keys.all[n].name, q.keys.all[n].started, l.started)
	}
	if l.enlisted && (q.keys.all[n].full() || !f.finish && l.load != q.keys.all[n].load()) {
		return fmt.Errorf("invariant 5: key %q has a turn at load %d", q.keys.all[n].name, l.load)
	}
	return nil
}
