// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/ordering"
)

// CheckExpiries verifies that every page whose ready messages expire is in the heap
// once, with a bound that is not too late.
func (s *Store) CheckExpiries() error {
	for i, x := range s.expiries {
		if p := s.page(x.page); p == nil || p.has == (pageSet{}) || int(p.expiry) != i+1 {
			return fmt.Errorf("invariant 9: expiry %d is of page %d, which has another index", i, x.page)
		}
		if up := (i - 1) / 2; i > 0 && x.at < s.expiries[up].at {
			return fmt.Errorf("invariant 9: expiry %d is before expiry %d, which is above it", i, up)
		}
	}
	for seq, e := s.Next(0); e != nil; seq, e = s.Next(seq + 1) {
		if !e.Is(Ready) || e.Life == 0 {
			continue
		}
		if p := s.page(uint64(seq) >> pageBits); p.expiry == 0 || s.expiries[p.expiry-1].at > e.Expiry() {
			return fmt.Errorf("invariant 9: message %d expires before its page is scanned", seq)
		}
	}
	return nil
}

// CheckSlabs verifies that every entry is at the address that its page has, and that
// slabs count their entries and know whether they are pinned. runs are those of all
// lists; discarded ones are not counted any more.
func (s *Store) CheckSlabs(runs []*SlabRun, discarded []SlabRun) error {
	pinned, cleared := map[uint32]bool{0: true, s.shared: true}, map[uint32]bool{}
	for _, r := range discarded {
		for n := r.first; n != 0; n = s.all[n].next {
			pinned[n], cleared[n] = true, true
		}
	}
	for i, r := range runs {
		n, prev := 0, uint32(0)
		for id := r.first; id != 0; prev, id = id, s.all[id].next {
			sl := &s.all[id]
			if sl.prev != prev || sl.inRun == 0 && id != r.last || pinned[id] {
				return fmt.Errorf("invariant 8: slab %d of run %d, behind %d: %d in the run, before it %d", id, i, prev, sl.inRun, sl.prev)
			}
			pinned[id] = true
			n += int(sl.inRun)
		}
		if n != r.n || r.pending != 0 || prev != r.last {
			return fmt.Errorf("invariant 8: run %d has %d messages, counts %d, pending %d", i, n, r.n, r.pending)
		}
	}
	if err := s.checkMemory(); err != nil {
		return err
	}
	for n := range s.all {
		sh := &s.all[n]
		if sh.pinned != pinned[uint32(n)] {
			return fmt.Errorf("invariant 8: slab %d: pinned %t", n, sh.pinned)
		}
		if sh.entries == nil {
			continue
		}
		live, waiting := uint8(0), uint8(0)
		for i := range sh.entries {
			e := &sh.entries[i]
			if *e == (Entry{}) {
				continue
			}
			live++
			if e != s.Get(e.Seq) {
				return fmt.Errorf("invariant 8: message %d is not at the address of its page", e.Seq)
			}
			if e.Flags&flagInRun != 0 {
				waiting++
			}
		}
		if live != sh.live || live == 0 && !sh.pinned || waiting != sh.inRun && !cleared[uint32(n)] {
			return fmt.Errorf("invariant 8: slab %d counts %d entries and %d in a run, found %d and %d", n, sh.live, sh.inRun, live, waiting)
		}
	}
	return nil
}

// checkMemory verifies that the slabs and pages that are counted are those that exist.
func (s *Store) checkMemory() error {
	slots, inRuns := len(s.spare)*SlabLen, int64(0)
	for n := range s.all {
		slots += len(s.all[n].entries)
		inRuns += int64(s.all[n].inRun)
	}
	if slots != s.slots || inRuns != s.inRuns {
		return fmt.Errorf("invariant 3: %d slots and %d messages in runs are counted, found %d and %d", s.slots, s.inRuns, slots, inRuns)
	}
	fulls, packs := len(s.spareFull), len(s.sparePack)
	for _, d := range s.dirs {
		for i := range d.pages {
			if d.pages[i].full != nil {
				fulls++
			}
			if d.pages[i].pack != nil {
				packs++
			}
		}
	}
	if fulls != s.fulls || packs != s.packs {
		return fmt.Errorf("invariant 3: %d full and %d packed pages are counted, found %d and %d", s.fulls, s.packs, fulls, packs)
	}
	return nil
}

// CheckSorted verifies that a list of a level has n messages, all of them ready, in
// the order of their keys.
func (s *Store) CheckSorted(l *SortedList, level ordering.Level, n int) error {
	if got := l.list.Len() + l.InRun(); got != n {
		return fmt.Errorf("invariant 5: a list of level %d has %d messages, counts %d", level, got, n)
	}
	var last OrderKey
	inOrder := func(e *Entry) error {
		k := OrderKey{e.OrderTime, e.Seq}
		if !e.Is(Ready) || e.Level != level || !last.Before(k) || l.tail.Before(k) {
			return fmt.Errorf("invariant 5: message %d, %v, of level %d is in a list of level %d behind %d", e.Seq, e.State(), e.Level, level, last.Seq)
		}
		last = k
		return nil
	}
	if err := s.checkList(&l.list, byOrderTime, inOrder); err != nil {
		return err
	}
	if last = (OrderKey{}); l.InRun() == 0 {
		return nil
	}
	for id, from := l.run.first, l.run.slot; id != 0; id, from = s.all[id].next, 0 {
		for i := from; i < SlabLen; i++ {
			e := &s.all[id].entries[i]
			if e.Flags&flagInRun == 0 {
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
func (s *Store) checkList(l *SeqList, by listOrder, test func(*Entry) error) error {
	found := l.few
	if m := l.many; m != nil {
		for i := m.head; i < len(m.list); i++ {
			c := m.list[i]
			if c.from == c.to && l.n > 0 {
				return fmt.Errorf("invariant 5: a list of %d messages has an empty chunk", l.n)
			}
			for _, seq := range c.seqs[c.from:c.to] {
				if i > m.head && s.keyOf(seq, by).Before(c.low) {
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
		e := s.Get(seq)
		if e == nil {
			return fmt.Errorf("invariant 5: a list has message %d, which does not exist", seq)
		}
		if err := test(e); err != nil {
			return err
		}
	}
	return nil
}
