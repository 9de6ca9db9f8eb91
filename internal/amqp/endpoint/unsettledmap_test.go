// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestLedgerAgainstMap does random things to a map and to a plain map.
func TestUnsettledMapAgainstMap(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var g unsettledMap
		g.base, g.next = ^uint32(0)-1000, ^uint32(0)-1000 // ids wrap around soon
		model := map[uint32]uint64{}
		links := []*Link{{}, {}}
		for step := range uint64(60_000) {
			switch n := rnd.IntN(100); {
			case n < 55:
				id := g.put(entry{link: links[rnd.IntN(2)], ref: step})
				model[id] = step
			case n < 60:
				g.skip()
			case n < 95:
				id := g.next - rnd.Uint32N(30)
				if rnd.IntN(50) == 0 {
					id = g.next - rnd.Uint32N(40_000)
				}
				e := g.get(id)
				if ref, ok := model[id]; ok != (e != nil) || ok && e.ref != ref {
					t.Fatalf("seed %d step %d: entry %d is %v, want %v %v", seed, step, id, e, ref, ok)
				}
				g.remove(id)
				delete(model, id)
			case step%1000 == 0:
				first := g.next - rnd.Uint32N(40_000)
				last := first + rnd.Uint32N(50_000)
				var got []uint32
				for id := range g.between(first, last) {
					got = append(got, id)
					g.remove(id)
				}
				want := slices.SortedFunc(func(yield func(uint32) bool) {
					for id := range maps.Keys(model) {
						if id-first <= last-first && !yield(id) {
							return
						}
					}
				}, func(a, b uint32) int { return int(int32(a - b)) })
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d step %d: between %d and %d there are %d entries, want %d", seed, step, first, last, len(got), len(want))
				}
				for _, id := range want {
					delete(model, id)
				}
			}
		}
		g.forget(links[0])
		g.forget(links[1])
		for id := range model {
			if g.get(id) != nil {
				t.Fatalf("entry %d outlived its link", id)
			}
		}
	}
}

// One delivery that is never settled does not make a ring grow for those that are.
func TestUnsettledMapMovesWhatStaysBehind(t *testing.T) {
	var g unsettledMap
	stays := g.put(entry{link: new(Link), ref: 7})
	for range 10 * maxRing {
		g.remove(g.put(entry{link: new(Link)}))
	}
	if len(g.ring) > maxRing {
		t.Errorf("ring of %d entries for one, want at most %d", len(g.ring), maxRing)
	}
	if e := g.get(stays); e == nil || e.ref != 7 {
		t.Errorf("entry %d is %v, want the one with 7", stays, e)
	}
}

// A peer that settles late costs a ring while it does, and no map.
func TestUnsettledMapGrowsWhileMuchIsUnsettled(t *testing.T) {
	var g unsettledMap
	l := new(Link)
	for range 10 * maxRing {
		g.put(entry{link: l})
	}
	if len(g.old) > 0 || len(g.ring) > 16*maxRing {
		t.Errorf("%d entries in a map and a ring of %d, want none and at most %d", len(g.old), len(g.ring), 16*maxRing)
	}
	for id := range g.between(0, 10*maxRing) {
		g.remove(id)
	}
	if len(g.ring) > maxRing {
		t.Errorf("ring of %d entries for none, want at most %d", len(g.ring), maxRing)
	}
}

// A range takes as many steps as there are deliveries, not as it has ids, and one whose
// end is before its begin names none.
func TestBetweenLooksAtWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		base, held  uint32
		first, last uint32
		want        int
	}{
		{0, 0, 1 << 20, 1<<31 + 5, 0},
		{0, 0, 0, 1<<31 - 1, 0},
		{0, 4, 1 << 20, 1<<31 + 5, 0},
		{0, 4, 0, 1<<31 - 1, 4},
		{0, 4, 2, 1<<31 + 1, 2},
		{0, 4, 1<<31 + 2, 1, 2}, // as far before the first as a range may begin
		{0, 4, 3, 2, 0},
		{0, 4, 0, 1 << 31, 0},
		{0, 4, 4, 3, 0},
		{^uint32(1), 4, ^uint32(0), 0, 2},
		{^uint32(1), 4, 1 << 31, 1<<32 - 1, 2},
		{1 << 31, 4, 1 << 20, 1<<31 + 1, 2},
		{7, 4, 8, 8, 1},
	} {
		g := unsettledMap{base: c.base, next: c.base}
		l := new(Link)
		for range c.held {
			g.put(entry{link: l})
		}
		for range 100 { // two thousand million steps each would be noticed
			n := 0
			for id := range g.between(c.first, c.last) {
				if id-c.first > c.last-c.first {
					t.Fatalf("%+v: it yields %d", c, id)
				}
				n++
			}
			if n != c.want {
				t.Fatalf("%+v: %d entries", c, n)
			}
		}
		if _, n := g.overlap(c.first, c.last); n > c.held {
			t.Errorf("%+v: %d steps", c, n)
		}
	}
}

// What is old is found by its id, also where ids begin again, and an id that comes again
// takes the place of the one before.
func TestOldEntriesAreKeptInOrder(t *testing.T) {
	l := new(Link)
	g := unsettledMap{base: 1 << 30, next: 1 << 30}
	for _, id := range []uint32{^uint32(0) - 2, ^uint32(0), 3, 10} {
		l.out++
		g.keepOld(oldEntry{entry{link: l, ref: uint64(id)}, id})
	}
	for _, c := range []struct {
		first, last uint32
		want        []uint32
	}{
		{^uint32(0) - 2, 10, []uint32{^uint32(0) - 2, ^uint32(0), 3, 10}},
		{^uint32(0) - 1000, 2, []uint32{^uint32(0) - 2, ^uint32(0)}},
		{^uint32(0) - 1, 3, []uint32{^uint32(0), 3}},
		{4, 9, nil},
		{11, 1 << 20, nil},
		{4, 1 << 20, []uint32{10}},
		{^uint32(0) - 1000, ^uint32(0) - 3, nil},
	} {
		var got []uint32
		for id, e := range g.between(c.first, c.last) {
			if e.ref != uint64(id) {
				t.Fatalf("entry %d is that of %d", id, e.ref)
			}
			got = append(got, id)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("between %d and %d: %v, want %v", c.first, c.last, got, c.want)
		}
	}
	l.out++
	g.keepOld(oldEntry{entry{link: l, ref: 1}, 1})
	if g.get(^uint32(0)) != nil || g.get(1) == nil || g.get(3) == nil || l.out != 3 {
		t.Errorf("an id came again: %d entries of %d deliveries", len(g.old), l.out)
	}
}
