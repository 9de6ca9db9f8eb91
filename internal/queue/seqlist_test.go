// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestSeqListAgreesWithASlice adds and removes at both ends and in the middle, now
// mostly the one and now mostly the other.
func TestSeqListAgreesWithASlice(t *testing.T) {
	q := New(Config{}, 1)
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var l seqList
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
				l.push(orderKey{0, seq})
				want = append(want, seq)
			case n < 2+grow: // anywhere
				seq := SeqNo(1 + rnd.IntN(10*size))
				if at, found := slices.BinarySearch(want, seq); !found {
					l.insert(&q.index.msgs, orderKey{0, seq}, byNumber)
					want = slices.Insert(want, at, seq)
				}
			case len(want) == 0:
			case n == 9:
				l.popFirst()
				want = want[1:]
			case n == 8 && rnd.IntN(2) == 0:
				l.popLast()
				want = want[:len(want)-1]
			default:
				at := rnd.IntN(len(want))
				l.remove(orderKey{0, want[at]})
				want = slices.Delete(want, at, at+1)
			}
			if l.n != len(want) || l.n > 0 && (l.first() != want[0] || l.last() != want[len(want)-1]) {
				t.Fatalf("seed %d, step %d: %d from %d to %d, want %v", seed, step, l.n, l.first(), l.last(), want)
			}
			if step%64 == 0 {
				var got []SeqNo
				for seq, ok := l.after(0); ok; seq, ok = l.after(seq) {
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

// TestRowOfManyKeepsTheOrder lets messages leave a long line at its head and from
// anywhere in it, and come back, and wants them in order and without a slab too
// many.
func TestRowOfManyKeepsTheOrder(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		q := New(Config{LockFor: time.Hour}, 1)
		var out Effects
		var waiting []SeqNo
		var held []Token
		rowed := 0
		for step := range 12_000 {
			switch n := rnd.IntN(20); {
			case n < 8 && step%6000 < 3000 || n == 0 || len(waiting) == 0:
				for range 1 + rnd.IntN(12) {
					waiting = append(waiting, q.Last()+1)
					send(t, q, epochStart, Arrival{}, 1)
				}
			case n < 10:
				d := take(t, q, epochStart)
				if d.Seq != waiting[0] {
					t.Fatalf("seed %d, step %d: took %d, want %d", seed, step, d.Seq, waiting[0])
				}
				waiting, held = waiting[1:], append(held, d.Token)
			case n < 12 && len(held) > 0:
				at := rnd.IntN(len(held))
				if _, err := q.Release(epochStart, held[at], &out); err != nil {
					t.Fatal(err)
				}
				place, _ := slices.BinarySearch(waiting, held[at].Seq)
				waiting = slices.Insert(waiting, place, held[at].Seq)
				held = slices.Delete(held, at, at+1)
			default:
				at := min(len(waiting)-1, rnd.IntN(1+rnd.IntN(len(waiting))))
				for range min(1+rnd.IntN(3), len(waiting)-at) {
					if err := q.Remove(epochStart, waiting[at], &out); err != nil {
						t.Fatal(err)
					}
					waiting = slices.Delete(waiting, at, at+1)
				}
			}
			out.Reset()
			rowed = max(rowed, q.index.levels.all[0].(*plainLane).list.inRun())
			if step%500 == 0 {
				if err := q.Check(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		if rowed < 10*slabLen {
			t.Errorf("seed %d: %d in the run at most: too few to show anything", seed, rowed)
		}
		kept := 0
		for i := range q.index.msgs.all {
			if q.index.msgs.all[i].entries != nil {
				kept++
			}
		}
		if most := (len(waiting)+len(held))/(thinSlab/2) + 8; kept > most {
			t.Errorf("seed %d: %d slabs for %d messages", seed, kept, len(waiting)+len(held))
		}
		for _, want := range waiting {
			if got := serve(t, q, epochStart).Seq; got != want {
				t.Fatalf("seed %d: served %d, want %d", seed, got, want)
			}
		}
	}
}
