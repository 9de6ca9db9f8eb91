// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStoreFindsWhatIsInIt deletes in random order and inserts again out of
// order, over several directories with gaps between them.
func TestStoreFindsWhatIsInIt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Store
	in := map[SeqNo]bool{}
	put := func(seq SeqNo) {
		e := s.Put(seq, nil)
		if *e != (Entry{Seq: seq}) {
			t.Fatalf("the place of %d is not clean: %+v", seq, *e)
		}
		e.SetState(Ready)
		e.BodyAt = uint64(seq)
		in[seq] = true
	}
	compare := func() {
		t.Helper()
		var got []SeqNo
		for seq, e := s.Next(0); e != nil; seq, e = s.Next(seq + 1) {
			got = append(got, seq)
			if e.BodyAt != uint64(seq) || s.Get(seq) != e {
				t.Fatalf("message %d has the entry of %d", seq, e.BodyAt)
			}
		}
		want := make([]SeqNo, 0, len(in))
		for seq := range in {
			want = append(want, seq)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%d messages, want %d", len(got), len(want))
		}
	}
	const span = 40_000
	for seq := range SeqNo(span) {
		put(seq + 1)
	}
	put(10_000_000) // far away, as after a long life
	all := rnd.Perm(span)
	for i, n := range all {
		seq := SeqNo(n + 1)
		s.Delete(seq)
		delete(in, seq)
		if s.Get(seq) != nil {
			t.Fatalf("deleted %d is still there", seq)
		}
		if i%4000 == 0 {
			compare()
		}
		if back := SeqNo(all[rnd.IntN(i+1)] + 1); i%10 == 0 && !in[back] {
			put(back)
		}
	}
	compare()
}
