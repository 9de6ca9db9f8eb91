// SPDX-License-Identifier: Apache-2.0

package queue

import "fmt"

// checkExpiries verifies that every page whose ready messages expire is in the heap,
// once, and not too late.
func (q *Queue) checkExpiries() error {
	for i, x := range q.msgs.expiries {
		if p := q.msgs.page(x.page); p == nil || p.has == (places{}) || int(p.expiry) != i+1 {
			return fmt.Errorf("invariant 9: expiry %d is of page %d, which does not know of it", i, x.page)
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
			return fmt.Errorf("invariant 9: message %d expires before its page is looked at", seq)
		}
	}
	return nil
}

// checkShelves verifies that every entry lies where its page says, and that the
// shelves know what is on them and who refers to them.
func (q *Queue) checkShelves() error {
	kept := map[uint32]bool{0: true, q.msgs.rest: true}
	for l := range q.levels.all {
		lane, ok := q.levels.all[l].lane.(*plainLane)
		if !ok || lane.line.laid() == 0 {
			continue
		}
		r, n := lane.line.row, -lane.line.row.place
		for s := r.first; s != 0; s = q.msgs.all[s].next {
			kept[s] = true
			n += int(q.msgs.all[s].used)
		}
		if n != r.n || r.fresh != 0 {
			return fmt.Errorf("invariant 8: the row of level %d has %d places, counts %d, waits for %d", l, n, r.n, r.fresh)
		}
	}
	for n := range q.msgs.all {
		sh := &q.msgs.all[n]
		if sh.kept != kept[uint32(n)] {
			return fmt.Errorf("invariant 8: shelf %d: kept %t", n, sh.kept)
		}
		if sh.entries == nil {
			continue
		}
		live := int32(0)
		for i := range sh.entries {
			if e := &sh.entries[i]; *e != (entry{}) {
				live++
				if e != q.msgs.get(e.seq) {
					return fmt.Errorf("invariant 8: message %d is not where its page says", e.seq)
				}
			}
		}
		if live != sh.live || live == 0 && !sh.kept {
			return fmt.Errorf("invariant 8: shelf %d counts %d entries, found %d", n, sh.live, live)
		}
	}
	return nil
}
