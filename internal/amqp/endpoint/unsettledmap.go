// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"iter"
	"slices"
)

// entry is a delivery we sent that is not settled. The zero entry is none.
type entry struct {
	link     *Link
	ref      uint64
	value    any
	reported bool // the App was told an outcome
}

// maxRing bounds a ring that is mostly empty.
const maxRing = 1 << 14

// unsettledMap keeps the unsettled deliveries of a session by id. Ids are assigned in
// sequence, so a ring holds the recent ones at the cost of an array; a few that
// stay unsettled while thousands pass move to a map. A peer with credit for
// everything leaves many thousands unsettled: then the ring grows, which costs less
// than a map of them.
//
// Invariant: next-base <= len(ring), and ring holds exactly the entries of
// [base, next); old holds only ids before base.
type unsettledMap struct {
	ring       []entry // length is a power of two
	base, next uint32
	old        map[uint32]*entry
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

// size returns about how many bytes the map takes, and what the App keeps beside.
func (g *unsettledMap) size() int { return (len(g.ring) + 2*len(g.old)) * unsettledCost }

func (g *unsettledMap) slot(id uint32) int { return int(id) & (len(g.ring) - 1) }

// freeSlot lets the ring start later, grow, or shed its oldest entries.
func (g *unsettledMap) freeSlot() {
	g.trim()
	n := len(g.ring)
	if int(g.next-g.base) <= n/2 && n > 0 {
		return
	}
	if n < maxRing || g.dense() {
		ring := make([]entry, max(16, 2*n))
		for id := g.base; id != g.next; id++ {
			ring[int(id)&(len(ring)-1)] = g.ring[g.slot(id)]
		}
		g.ring = ring
		return
	}
	if g.old == nil {
		g.old = make(map[uint32]*entry)
	}
	for range n / 4 {
		e := &g.ring[g.slot(g.base)]
		if e.link != nil {
			kept := *e
			g.old[g.base] = &kept
		}
		*e = entry{}
		g.base++
	}
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
	return g.old[id]
}

func (g *unsettledMap) remove(id uint32) {
	if id-g.base < g.next-g.base {
		g.ring[g.slot(id)] = entry{}
		if id == g.base {
			g.trim()
		}
		return
	}
	delete(g.old, id)
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
		for _, id := range g.oldBetween(first, last) {
			if !yield(id, g.old[id]) {
				return
			}
		}
		id, n := g.overlap(first, last)
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

// oldBetween returns the ids in old from first to last, in order.
func (g *unsettledMap) oldBetween(first, last uint32) []uint32 {
	if len(g.old) == 0 {
		return nil
	}
	if first == last {
		if g.old[first] == nil {
			return nil
		}
		return []uint32{first}
	}
	ids := slices.Collect(func(yield func(uint32) bool) {
		for id := range g.old {
			if id-first <= last-first && !yield(id) {
				return
			}
		}
	})
	slices.SortFunc(ids, func(a, b uint32) int { return int(int32(a - b)) })
	return ids
}

// owes reports whether the App was told an outcome of a delivery that is not settled.
func (g *unsettledMap) owes() bool {
	for _, e := range g.old {
		if e.reported {
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
	for id, e := range g.old {
		if e.link == l {
			delete(g.old, id)
		}
	}
	for id := g.base; id != g.next; id++ {
		if e := &g.ring[g.slot(id)]; e.link == l {
			*e = entry{}
		}
	}
	g.trim()
}
