// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// Check verifies the entries, the counts of ready messages, and that every ready message
// is where the order finds it. listed reports which messages of a session queue are
// listed.
func (x *Index) Check(listed func(entries.SeqNo, *entries.Entry) bool) error {
	if err := x.checkStats(); err != nil {
		return err
	}
	var runs []*entries.SlabRun
	for _, a := range []*arrangement{&x.arrangement, x.next.arrangement} {
		if a == nil {
			continue
		}
		for _, l := range a.levels.all {
			if p, ok := l.(*plainLane); ok && p.list.SlabRun() != nil {
				runs = append(runs, p.list.SlabRun())
			}
		}
	}
	if err := x.Entries.CheckSlabs(runs, x.next.runs); err != nil {
		return err
	}
	if err := x.Entries.CheckExpiries(); err != nil {
		return err
	}
	all := func(entries.SeqNo) bool { return true }
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
	perLevel, perClass := make(map[ordering.Level]readyStat), make(map[ordering.Class]readyStat)
	for seq, e := x.Entries.Next(0); e != nil; seq, e = x.Entries.Next(seq + 1) {
		if e.Is(entries.Ready) {
			perLevel[e.Level] = perLevel[e.Level].plus(e)
			perClass[e.Class] = perClass[e.Class].plus(e)
		}
	}
	for l, got := range x.byLevel {
		if got != perLevel[ordering.Level(l)] {
			return fmt.Errorf("invariant 3: level %d counts %+v ready, found %+v", l, got, perLevel[ordering.Level(l)])
		}
	}
	for c := range x.classes {
		st := &x.classes[c]
		if got := (readyStat{st.ready, st.bytes}); got != perClass[ordering.Class(c)] {
			return fmt.Errorf("invariant 3: class %d counts %+v ready, found %+v", c, got, perClass[ordering.Class(c)])
		}
	}
	return nil
}

// checkLanes verifies that the lanes of the arrangement in force have the listed
// messages that it follows, and no others.
func (x *Index) checkLanes(followed func(entries.SeqNo) bool, listed func(entries.SeqNo, *entries.Entry) bool) error {
	found := make(map[ordering.Level]int)
	for seq, e := x.Entries.Next(0); e != nil; seq, e = x.Entries.Next(seq + 1) {
		if !e.Is(entries.Ready) || !followed(seq) || x.sessionQueue && !listed(seq, e) {
			continue
		}
		found[e.Level]++
		lane := x.levels.all[e.Level]
		if fair, ok := lane.(*fairLane); ok {
			if err := x.checkFair(fair, e.Key(), e); err != nil {
				return err
			}
			continue
		}
		if first, ok := lane.first(x); !ok || x.precedes(e.Key(), first) {
			return fmt.Errorf("invariant 5: level %d begins with %d, but has %d", e.Level, first.Seq, seq)
		}
	}
	indebted := int64(0)
	for _, k := range x.keys.all[1:] {
		if k != nil && k.groups == 0 {
			indebted += entries.GroupCost("", k.name)
		}
	}
	if indebted != x.keys.indebted {
		return fmt.Errorf("invariant 3: keys without messages count %d bytes, found %d", x.keys.indebted, indebted)
	}
	for n := range x.keys.all {
		for _, l := range x.keys.all[n].listed() {
			if err := x.Entries.CheckSorted(&l.SortedList, l.level, l.Len()); err != nil {
				return err
			}
		}
	}
	for l := range x.levels.all {
		counted := found[ordering.Level(l)]
		if lane, ok := x.levels.all[l].(*plainLane); ok {
			counted = lane.n
			if err := x.Entries.CheckSorted(&lane.list, ordering.Level(l), lane.n); err != nil {
				return err
			}
		}
		if counted != found[ordering.Level(l)] {
			return fmt.Errorf("invariant 5: the lane of level %d counts %d, found %d", l, counted, found[ordering.Level(l)])
		}
		if x.levels.all[l] != nil && x.levels.open.has(ordering.Level(l)) != x.levels.all[l].open() {
			return fmt.Errorf("invariant 6: level %d: open %t", l, x.levels.open.has(ordering.Level(l)))
		}
	}
	return nil
}

// checkFair verifies that the list of a key has a message, and that it is eligible only
// below its cap.
func (x *Index) checkFair(f *fairLane, k entries.OrderKey, e *entries.Entry) error {
	n := x.fairKey(e.Group)
	l := f.find(x, n)
	if l == nil {
		return fmt.Errorf("invariant 5: message %d is in no line of key %q", k.Seq, x.keys.all[n].name)
	}
	if first, ok := l.SortedList.First(&x.Entries); !ok || k.Before(first) || (f.aged || f.finish) && first != l.first {
		return fmt.Errorf("invariant 5: key %q begins with %d, but has %d", x.keys.all[n].name, first.Seq, k.Seq)
	}
	if l.started != x.keys.all[n].started {
		return fmt.Errorf("invariant 5: key %q was started as %d, its line as %d", x.keys.all[n].name, x.keys.all[n].started, l.started)
	}
	if l.eligible && (x.keys.all[n].atCap() || !f.finish && l.load != x.keys.all[n].load()) {
		return fmt.Errorf("invariant 5: key %q has a turn at load %d", x.keys.all[n].name, l.load)
	}
	return nil
}
