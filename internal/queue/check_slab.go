// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
)

// checkExpiries verifies that every page whose ready messages expire is in the heap
// once, with a bound that is not too late.
func (q *Queue) checkExpiries() error {
	for i, x := range q.msgs.expiries {
		if p := q.msgs.page(x.page); p == nil || p.has == (pageSet{}) || int(p.expiry) != i+1 {
			return fmt.Errorf("invariant 9: expiry %d is of page %d, which has another index", i, x.page)
		}
		if up := (i - 1) / 2; i > 0 && x.at < q.msgs.expiries[up].at {
			return fmt.Errorf("invariant 9: expiry %d is before expiry %d, which is above it", i, up)
		}
	}
	for seq, e := q.msgs.next(0); e != nil; seq, e = q.msgs.next(seq + 1) {
		if !e.is(Ready) || e.life == 0 {
			continue
		}
		if p := q.msgs.page(uint64(seq) >> pageBits); p.expiry == 0 || q.msgs.expiries[p.expiry-1].at > e.expiry() {
			return fmt.Errorf("invariant 9: message %d expires before its page is scanned", seq)
		}
	}
	return nil
}

// checkSlabs verifies that every entry is at the address that its page has, and that
// slabs count their entries and know whether they are pinned.
func (q *Queue) checkSlabs() error {
	kept, cleared := map[uint32]bool{0: true, q.msgs.shared: true}, map[uint32]bool{}
	for _, r := range q.next.runs {
		for s := r.first; s != 0; s = q.msgs.all[s].next {
			kept[s], cleared[s] = true, true
		}
	}
	lanes := slices.Clone(q.levels.all)
	if q.next.index != nil {
		lanes = append(lanes, q.next.levels.all...)
	}
	for l := range lanes {
		lane, ok := lanes[l].(*plainLane)
		if !ok || lane.line.inRun() == 0 {
			continue
		}
		r, n, prev := lane.line.run, 0, uint32(0)
		for s := r.first; s != 0; prev, s = s, q.msgs.all[s].next {
			sh := &q.msgs.all[s]
			if sh.prev != prev || sh.inRun == 0 && s != r.last || kept[s] {
				return fmt.Errorf("invariant 8: slab %d of level %d, behind %d: %d in the run, before it %d", s, l, prev, sh.inRun, sh.prev)
			}
			kept[s] = true
			n += int(sh.inRun)
		}
		if n != r.n || r.pending != 0 || prev != r.last {
			return fmt.Errorf("invariant 8: the run of level %d has %d messages, counts %d, pending %d", l, n, r.n, r.pending)
		}
	}
	for n := range q.msgs.all {
		sh := &q.msgs.all[n]
		if sh.pinned != kept[uint32(n)] {
			return fmt.Errorf("invariant 8: slab %d: pinned %t", n, sh.pinned)
		}
		if sh.entries == nil {
			continue
		}
		live, waiting := uint8(0), uint8(0)
		for i := range sh.entries {
			e := &sh.entries[i]
			if *e == (entry{}) {
				continue
			}
			live++
			if e != q.msgs.get(e.seq) {
				return fmt.Errorf("invariant 8: message %d is not at the address of its page", e.seq)
			}
			if e.flags&flagInRun != 0 {
				waiting++
			}
		}
		if live != sh.live || live == 0 && !sh.pinned || waiting != sh.inRun && !cleared[uint32(n)] {
			return fmt.Errorf("invariant 8: slab %d counts %d entries and %d in a run, found %d and %d", n, sh.live, sh.inRun, live, waiting)
		}
	}
	return nil
}

// checkLine verifies that a list of a level has n messages, all of them ready, in
// the order of their keys.
func (q *Queue) checkLine(l *sortedList, level Level, n int) error {
	if got := l.list.n + l.inRun(); got != n {
		return fmt.Errorf("invariant 5: a list of level %d has %d messages, counts %d", level, got, n)
	}
	var last orderKey
	inOrder := func(e *entry) error {
		k := orderKey{e.enqueued, e.seq}
		if !e.is(Ready) || e.level != level || !last.before(k) || l.tail.before(k) {
			return fmt.Errorf("invariant 5: message %d, %v, of level %d is in a list of level %d behind %d", e.seq, e.state(), e.level, level, last.seq)
		}
		last = k
		return nil
	}
	if err := q.checkList(&l.list, byOrderTime, inOrder); err != nil {
		return err
	}
	if last = (orderKey{}); l.inRun() == 0 {
		return nil
	}
	for s, from := l.run.first, l.run.slot; s != 0; s, from = q.msgs.all[s].next, 0 {
		for i := from; i < slabLen; i++ {
			e := &q.msgs.all[s].entries[i]
			if e.flags&flagInRun == 0 {
				continue
			}
			if err := inOrder(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkList verifies that a list counts its messages, that its chunks know where they
// begin, and that each message passes a test.
func (q *Queue) checkList(l *seqList, by listOrder, test func(*entry) error) error {
	found := l.few
	if m := l.many; m != nil {
		for i := m.head; i < len(m.list); i++ {
			c := m.list[i]
			if c.from == c.to && l.n > 0 {
				return fmt.Errorf("invariant 5: a list of %d messages has an empty chunk", l.n)
			}
			for _, seq := range c.seqs[c.from:c.to] {
				if i > m.head && q.msgs.keyOf(seq, by).before(c.low) {
					return fmt.Errorf("invariant 5: message %d is before its chunk", seq)
				}
				found = append(found, seq)
			}
		}
	}
	if len(found) != l.n {
		return fmt.Errorf("invariant 5: a list counts %d messages, found %d", l.n, len(found))
	}
	for _, seq := range found {
		e := q.msgs.get(seq)
		if e == nil {
			return fmt.Errorf("invariant 5: a list has message %d, which is gone", seq)
		}
		if err := test(e); err != nil {
			return err
		}
	}
	return nil
}
