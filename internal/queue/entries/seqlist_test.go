// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSeqListAgreesWithASlice adds and removes at both ends and in the middle, now
// mostly the one and now mostly the other.
func TestSeqListAgreesWithASlice(t *testing.T) {
	var store Store
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var l SeqList
		var want []SeqNo
		size := 1 << (2 * (1 + seed%5))
		for step := range 20_000 {
			grow := step / size % 2 * 6
			switch n := rnd.IntN(10); {
			case n < 2+grow/2: // at the end
				seq := SeqNo(1)
				if len(want) > 0 {
					seq = want[len(want)-1] + 1 + SeqNo(rnd.IntN(5))
				}
				l.push(OrderKey{0, seq})
				want = append(want, seq)
			case n < 2+grow: // anywhere
				seq := SeqNo(1 + rnd.IntN(10*size))
				if at, found := slices.BinarySearch(want, seq); !found {
					l.insert(&store, OrderKey{0, seq}, byNumber)
					want = slices.Insert(want, at, seq)
				}
			case len(want) == 0:
			case n == 9:
				l.PopFirst()
				want = want[1:]
			case n == 8 && rnd.IntN(2) == 0:
				l.popLast()
				want = want[:len(want)-1]
			default:
				at := rnd.IntN(len(want))
				l.Remove(OrderKey{0, want[at]})
				want = slices.Delete(want, at, at+1)
			}
			if l.n != len(want) || l.n > 0 && (l.First() != want[0] || l.last() != want[len(want)-1]) {
				t.Fatalf("seed %d, step %d: %d from %d to %d, want %v", seed, step, l.n, l.First(), l.last(), want)
			}
			if step%64 == 0 {
				var got []SeqNo
				for seq, ok := l.After(0); ok; seq, ok = l.After(seq) {
					got = append(got, seq)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %v, want %v", seed, step, got, want)
				}
			}
		}
		if m := l.many; m != nil && len(m.list)-m.head > 1+4*len(want)/chunkSeqs+4 {
			t.Errorf("seed %d: %d chunks for %d numbers", seed, len(m.list)-m.head, len(want))
		}
	}
}
