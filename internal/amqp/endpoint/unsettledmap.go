// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"iter"
	"slices"
	"sort"
)

// entry is a delivery we sent that is not settled. The zero entry is none.
type entry struct {
	link     *Link
	ref      uint64
	value    any
	reported bool // the App was told an outcome
}

// minRing is the smallest ring.
const minRing = 16

// maxRing bounds a ring that is mostly empty.
const maxRing = 1 << 14

// unsettledMap keeps the unsettled deliveries of a session by id. Ids are assigned in
// sequence, so a ring holds the recent ones at the cost of an array; a few that
// stay unsettled while thousands pass move to a list. A peer with credit for
// everything leaves many thousands unsettled: then the ring grows, which costs less
// than a list of them.
//
// Invariant: next-base <= len(ring), and ring holds exactly the entries of
// [base, next); old holds only ids before base.
type unsettledMap struct {
	ring       []entry // length is a power of two
	base, next uint32
	old        []oldEntry // in the order of their ids; those that were removed are empty
	oldGone    int        // empty ones in old
	steps      uint64     // that between has taken
}

// oldEntry is an entry that the ring has no space for.
type oldEntry struct {
	entry
	id uint32
}

// put adds an entry and returns its id.
func (g *unsettledMap) put(e entry) uint32 {
	if g.full() {
		g.freeSlot()
	}
	id := g.next
	g.ring[g.slot(id)] = e
	g.next++
	return id
}

// skip assigns an id that is never looked up.
func (g *unsettledMap) skip() uint32 {
	if g.base == g.next {
		g.base++
		g.next++
		return g.next - 1
	}
	return g.put(entry{})
}

// full reports whether put has to grow the ring or move entries first.
func (g *unsettledMap) full() bool { return int(g.next-g.base) == len(g.ring) }

// free returns how many entries can be put before the ring has to grow.
func (g *unsettledMap) free() int { return len(g.ring) - int(g.next-g.base) }

// growth returns by how many places freeSlot makes the map grow at most.
func (g *unsettledMap) growth() int { return max(minRing, len(g.ring)) }

// size returns about how many bytes the map takes, and what the App keeps beside.
func (g *unsettledMap) size() int { return (len(g.ring) + cap(g.old)) * unsettledCost }

func (g *unsettledMap) slot(id uint32) int { return int(id) & (len(g.ring) - 1) }

// freeSlot lets the ring start later, grow, or shed its oldest entries.
func (g *unsettledMap) freeSlot() {
	g.trim()
	n := len(g.ring)
	if int(g.next-g.base) <= n/2 && n > 0 {
		return
	}
	if n < maxRing || g.dense() {
		ring := make([]entry, max(minRing, 2*n))
		for id := g.base; id != g.next; id++ {
			ring[int(id)&(len(ring)-1)] = g.ring[g.slot(id)]
		}
		g.ring = ring
		return
	}
	for range n / 4 {
		e := &g.ring[g.slot(g.base)]
		if e.link != nil {
			g.keepOld(oldEntry{*e, g.base})
		}
		*e = entry{}
		g.base++
	}
}

// keepOld adds an entry to old. An id that comes again, after 2^32 deliveries, takes the
// place of the one before it, and of those up to there: they were never settled.
func (g *unsettledMap) keepOld(e oldEntry) {
	for n := len(g.old); n > 0 && e.id-g.old[0].id <= g.old[n-1].id-g.old[0].id; n-- {
		if first := &g.old[0]; first.link != nil {
			first.link.out--
		} else {
			g.oldGone--
		}
		g.old = g.old[1:]
	}
	g.old = append(g.old, e)
}

// dense reports whether at least half of the ring is unsettled.
func (g *unsettledMap) dense() bool {
	n := 0
	for i := range g.ring {
		if g.ring[i].link != nil {
			n++
		}
	}
	return n >= len(g.ring)/2
}

// trim moves base over entries that are settled, and gives a large ring back when
// that were all.
func (g *unsettledMap) trim() {
	for g.base != g.next && g.ring[g.slot(g.base)].link == nil {
		g.base++
	}
	if g.base == g.next && len(g.ring) > maxRing {
		g.ring = nil
	}
}

// get returns the entry of a delivery, or nil.
func (g *unsettledMap) get(id uint32) *entry {
	if id-g.base < g.next-g.base {
		if e := &g.ring[g.slot(id)]; e.link != nil {
			return e
		}
		return nil
	}
	if i := g.oldFrom(id); i < len(g.old) && g.old[i].id == id && g.old[i].link != nil {
		return &g.old[i].entry
	}
	return nil
}

// oldFrom returns where in old the ids begin that are not before id. Ids are counted from
// the first in old: one that is before it is behind all others.
func (g *unsettledMap) oldFrom(id uint32) int {
	return sort.Search(len(g.old), func(i int) bool { return g.old[i].id-g.old[0].id >= id-g.old[0].id })
}

func (g *unsettledMap) remove(id uint32) {
	if id-g.base < g.next-g.base {
		g.ring[g.slot(id)] = entry{}
		if id == g.base {
			g.trim()
		}
		return
	}
	if i := g.oldFrom(id); i < len(g.old) && g.old[i].id == id && g.old[i].link != nil {
		g.old[i].entry = entry{}
		g.oldGone++
		g.tidyOld()
	}
}

// tidyOld drops the empty entries of old when they are half of it.
func (g *unsettledMap) tidyOld() {
	if 2*g.oldGone < len(g.old) {
		return
	}
	g.old = slices.DeleteFunc(g.old, func(e oldEntry) bool { return e.link == nil })
	g.oldGone = 0
	if 4*len(g.old) < cap(g.old) {
		g.old = slices.Clone(g.old)
	}
}

// between yields the entries with ids from first to last, which may be removed
// meanwhile. Ids are serial numbers [AMQP 2.8.10]: a last before first names none. It
// takes as many steps as there are entries, however long the range is that a peer
// made up.
func (g *unsettledMap) between(first, last uint32) iter.Seq2[uint32, *entry] {
	return func(yield func(uint32, *entry) bool) {
		if int32(last-first) < 0 {
			return
		}
		// Removing entries may move the others, so each is looked for by its id.
		for i := g.firstOld(first, last); i < len(g.old) && g.old[i].id-first <= last-first; {
			e := &g.old[i]
			id := e.id
			g.steps++
			if e.link != nil && !yield(id, &e.entry) {
				return
			}
			if id == last {
				break
			}
			i = g.firstOld(id+1, last)
		}
		id, n := g.overlap(first, last)
		g.steps += uint64(n)
		for ; n > 0; n, id = n-1, id+1 {
			if id-g.base >= g.next-g.base {
				continue // everything up to there was removed by the caller
			}
			if e := &g.ring[g.slot(id)]; e.link != nil && !yield(id, e) {
				return
			}
		}
	}
}

// overlap returns what the ids from first to last and the ring have in common: the first
// id of it, and how many there are, which is never more than the ring has.
func (g *unsettledMap) overlap(first, last uint32) (id, n uint32) {
	held, span := g.next-g.base, last-first
	if skip := first - g.base; skip < held {
		return first, min(held-skip-1, span) + 1
	}
	if before := g.base - first; before <= span {
		return g.base, min(held, span-before+1)
	}
	return g.base, 0
}

// firstOld returns where in old the ids from first to last begin; its length if there is
// none of them.
func (g *unsettledMap) firstOld(first, last uint32) int {
	if len(g.old) == 0 {
		return 0
	}
	lowest := g.old[0].id
	if highest := g.old[len(g.old)-1].id; first-lowest <= highest-lowest {
		return g.oldFrom(first)
	}
	if lowest-first <= last-first {
		return 0
	}
	return len(g.old)
}

// owes reports whether the App was told an outcome of a delivery that is not settled.
func (g *unsettledMap) owes() bool {
	for i := range g.old {
		if g.old[i].reported {
			return true
		}
	}
	for i := range g.ring {
		if g.ring[i].reported {
			return true
		}
	}
	return false
}

// forget removes the entries of a link.
func (g *unsettledMap) forget(l *Link) {
	g.old = slices.DeleteFunc(g.old, func(e oldEntry) bool { return e.link == l || e.link == nil })
	g.oldGone = 0
	for id := g.base; id != g.next; id++ {
		if e := &g.ring[g.slot(id)]; e.link == l {
			*e = entry{}
		}
	}
	g.trim()
}
