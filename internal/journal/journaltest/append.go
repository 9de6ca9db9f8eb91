// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
)

func newShardIsEmpty(t *testing.T, s Store) {
	_, got := claim(t, s.Open(t), 7)
	wantEntries(t, got, nil)
}

func recordsAreReplayedInOrder(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	var want []entry
	for i := range 300 {
		group := make([]string, 1+i%4)
		for n := range group {
			group[n] = fmt.Sprintf("%d.%d %s", i, n, strings.Repeat("x", i))
		}
		want = append(want, o.add(t, group...)...)
	}
	s.Settle(t)
	o, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
	o.wantRead(t, want...)
}

func positionsGrow(t *testing.T, s Store) {
	j := s.Open(t)
	a, _ := claim(t, j, 1)
	b, _ := claim(t, j, 2)
	last := journal.Position(0)
	for range 100 {
		for _, e := range append(a.add(t, "one", "two"), b.add(t, "three")...) {
			if e.at <= last {
				t.Fatalf("position %d after %d", e.at, last)
			}
			last = e.at
		}
	}
	s.Settle(t)
	a, _ = claim(t, s.Open(t), 1)
	if e := a.add(t, "after restart"); e[0].at <= last {
		t.Fatalf("after a restart position %d comes after %d", e[0].at, last)
	}
}

func readableAtOnce(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	for i := range 200 {
		o.wantRead(t, o.add(t, fmt.Sprint("a", i), fmt.Sprint("b", i))...)
	}
}

func recordsOfAnySize(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	rng := rand.New(rand.NewPCG(1, 2))
	var want []entry
	for _, size := range []int{0, 1, 7, 8, 9, 500, 4071, 4072, 4073, 4096, 5000, int(o.SegmentSize / 2)} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		want = append(want, o.add(t, string(b))...)
	}
	o.wantRead(t, want...)
	s.Settle(t)
	o.wantRead(t, want...)
	o, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
	o.wantRead(t, want...)
}

func readAppends(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	e := o.add(t, "world", strings.Repeat("w", 9000))
	for range 2 { // pending, then stored
		for _, e := range e {
			got, err := journal.ReadOne(t.Context(), o.j, e.at, []byte("hello "))
			if err != nil || string(got) != "hello "+e.payload {
				t.Fatalf("read: %.40q, %v", got, err)
			}
		}
		s.Settle(t)
	}
}

func readMany(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	stored := o.add(t, "one", strings.Repeat("two", 3000))
	s.Settle(t)
	pending := o.add(t, "three")
	reads := []journal.Read{
		{At: stored[1].at, Buf: []byte("a ")}, {At: 0}, {At: pending[0].at}, {At: stored[0].at, Buf: []byte("b ")},
		{At: stored[0].at + 1000*journal.Position(o.SegmentSize)}, {At: stored[0].at},
	}
	o.j.Read(t.Context(), reads)
	for i, want := range []string{"a " + stored[1].payload, "", "three", "b one", "", "one"} {
		r := reads[i]
		switch {
		case want == "" && !errors.Is(r.Err, journal.ErrFreed):
			t.Errorf("read %d: %.40q, %v, want %v", i, r.Buf, r.Err, journal.ErrFreed)
		case want != "" && (r.Err != nil || string(r.Buf) != want):
			t.Errorf("read %d: %.40q, %v, want %.40q", i, r.Buf, r.Err, want)
		}
	}
	o.j.Read(t.Context(), nil)
}

func unknownIsGone(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	e := o.add(t, "only")
	for _, at := range []journal.Position{0, e[0].at + 1000*journal.Position(o.SegmentSize)} {
		if got, err := journal.ReadOne(t.Context(), o.j, at, nil); !errors.Is(err, journal.ErrFreed) {
			t.Errorf("read at %d: %q, %v, want %v", at, got, err, journal.ErrFreed)
		}
	}
}

func groupTooLarge(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	half := make([]byte, o.SegmentSize/2)
	err := o.j.Append(o.Claim, &journal.Group{Records: [][]byte{half, half, half}, At: make([]journal.Position, 3)})
	if !errors.Is(err, journal.ErrTooLarge) {
		t.Fatalf("append of one and a half segments: %v, want %v", err, journal.ErrTooLarge)
	}
	want := o.add(t, "small")
	s.Settle(t)
	_, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
}

func emptyGroup(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	o.add(t)
	want := o.add(t, "one")
	s.Settle(t)
	_, got := claim(t, s.Open(t), 1)
	wantEntries(t, got, want)
}

func appendCopies(t *testing.T, s Store) {
	o, _ := claim(t, s.Open(t), 1)
	b, at := []byte("before"), make([]journal.Position, 1)
	if err := o.j.Append(o.Claim, &journal.Group{Records: [][]byte{b}, At: at}); err != nil {
		t.Fatal(err)
	}
	copy(b, "AFTER!")
	o.wantRead(t, entry{at[0], "before"})
	s.Settle(t)
	o.wantRead(t, entry{at[0], "before"})
}

func manyShards(t *testing.T, s Store) {
	const shards, groups = 8, 100
	j := s.Open(t)
	want := make([][]entry, shards)
	var owners []owner
	for i := range shards {
		o, _ := claim(t, j, journal.Shard(i))
		owners = append(owners, o)
	}
	var wg sync.WaitGroup
	for i, o := range owners {
		wg.Go(func() {
			at := make([]journal.Position, 2)
			for n := range groups {
				p := fmt.Sprintf("shard %d group %d", i, n)
				if err := o.j.Append(o.Claim, &journal.Group{Records: [][]byte{[]byte(p), []byte(p)}, At: at}); err != nil {
					t.Errorf("append: %v", err)
					return
				}
				want[i] = append(want[i], entry{at[0], p}, entry{at[1], p})
			}
		})
	}
	wg.Wait()
	s.Settle(t)
	j = s.Open(t)
	for i := range shards {
		_, got := claim(t, j, journal.Shard(i))
		wantEntries(t, got, want[i])
	}
}
