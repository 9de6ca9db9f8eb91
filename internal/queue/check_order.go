// SPDX-License-Identifier: Apache-2.0

package queue

import "fmt"

// check verifies the entries, the counts of ready messages, and that every ready
// message is where the order finds it. listed tells which messages of a session
// queue are listed.
func (x *Index) check(listed func(SeqNo, *entry) bool) error {
	if err := x.checkStats(); err != nil {
		return err
	}
	var runs []*slabRun
	for _, a := range []*arrangement{&x.arrangement, x.next.arrangement} {
		if a == nil {
			continue
		}
		for _, l := range a.levels.all {
			if p, ok := l.(*plainLane); ok && p.list.inRun() > 0 {
				runs = append(runs, p.list.run)
			}
		}
	}
	if err := x.msgs.checkSlabs(runs, x.next.runs); err != nil {
		return err
	}
	if err := x.msgs.checkExpiries(); err != nil {
		return err
	}
	all := func(SeqNo) bool { return true }
	if err := x.checkLanes(all, listed); err != nil || x.next.arrangement == nil {
		return err
	}
	x.swap()
	defer x.swap()
	if err := x.checkLanes(x.next.has, listed); err != nil {
		return fmt.Errorf("second index: %w", err)
	}
	return nil
}

// checkStats verifies the counts of ready messages by level and class.
func (x *Index) checkStats() error {
	perLevel, perClass := make(map[Level]readyStat), make(map[Class]readyStat)
	for seq, e := x.msgs.next(0); e != nil; seq, e = x.msgs.next(seq + 1) {
		if e.is(Ready) {
			perLevel[e.level] = perLevel[e.level].plus(e)
			perClass[e.class] = perClass[e.class].plus(e)
		}
	}
	for l, got := range x.byLevel {
		if got != perLevel[Level(l)] {
			return fmt.Errorf("invariant 3: level %d counts %+v ready, found %+v", l, got, perLevel[Level(l)])
		}
	}
	for c := range x.classes {
		st := &x.classes[c]
		if got := (readyStat{st.ready, st.bytes}); got != perClass[Class(c)] {
			return fmt.Errorf("invariant 3: class %d counts %+v ready, found %+v", c, got, perClass[Class(c)])
		}
	}
	return nil
}

// checkLanes verifies that the lanes of the arrangement in force have the listed
// messages that it follows, and no others.
func (x *Index) checkLanes(followed func(SeqNo) bool, listed func(SeqNo, *entry) bool) error {
	found := make(map[Level]int)
	for seq, e := x.msgs.next(0); e != nil; seq, e = x.msgs.next(seq + 1) {
		if !e.is(Ready) || !followed(seq) || x.sessionQueue && !listed(seq, e) {
			continue
		}
		found[e.level]++
		lane := x.levels.all[e.level]
		if fair, ok := lane.(*fairLane); ok {
			if err := x.checkFair(fair, orderKey{e.orderTime, seq}, e); err != nil {
				return err
			}
			continue
		}
		if first, ok := lane.first(x); !ok || x.precedes(orderKey{e.orderTime, seq}, first) {
			return fmt.Errorf("invariant 5: level %d begins with %d, but has %d", e.level, first.seq, seq)
		}
	}
	for n := range x.keys.all {
		for _, l := range x.keys.all[n].lists {
			if err := x.msgs.checkSorted(&l.sortedList, l.level, l.list.n); err != nil {
				return err
			}
		}
	}
	for l := range x.levels.all {
		counted := found[Level(l)]
		if lane, ok := x.levels.all[l].(*plainLane); ok {
			counted = lane.n
			if err := x.msgs.checkSorted(&lane.list, Level(l), lane.n); err != nil {
				return err
			}
		}
		if counted != found[Level(l)] {
			return fmt.Errorf("invariant 5: the lane of level %d counts %d, found %d", l, counted, found[Level(l)])
		}
		if x.levels.all[l] != nil && x.levels.open.has(Level(l)) != x.levels.all[l].open() {
			return fmt.Errorf("invariant 6: level %d: open %t", l, x.levels.open.has(Level(l)))
		}
	}
	return nil
}

// checkFair verifies that the line of a key has a message, and that it takes
// turns only below its cap.
func (x *Index) checkFair(f *fairLane, k orderKey, e *entry) error {
	n := x.fairKey(e.group)
	l := f.find(x, n)
	if l == nil {
		return fmt.Errorf("invariant 5: message %d is in no line of key %q", k.seq, x.keys.all[n].name)
	}
	if first, ok := l.sortedList.first(&x.msgs); !ok || k.before(first) || (f.aged || f.finish) && first != l.first {
		return fmt.Errorf("invariant 5: key %q begins with %d, but has %d", x.keys.all[n].name, first.seq, k.seq)
	}
	if l.started != x.keys.all[n].started {
		return fmt.Errorf("invariant 5: key %q was started as %d, its line as %d", x.keys.all[n].name, x.keys.all[n].started, l.started)
	}
	if l.eligible && (x.keys.all[n].atCap() || !f.finish && l.load != x.keys.all[n].load()) {
		return fmt.Errorf("invariant 5: key %q has a turn at load %d", x.keys.all[n].name, l.load)
	}
	return nil
}
