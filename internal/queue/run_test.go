// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// TestRunKeepsTheOrder removes messages from a long list at its head and from
// anywhere in it, adds some again, and wants them in order and without a slab too
// many.
func TestRunKeepsTheOrder(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		q := New(Config{LockFor: time.Hour}, 1)
		var out Effects
		var waiting []SeqNo
		var held []Token
		inRun := 0
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
			inRun = max(inRun, q.core.Index.PlainList(0).InRun())
			if step%500 == 0 {
				if err := q.Check(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		}
		if err := q.Check(); err != nil {
			t.Fatal(err)
		}
		if inRun < 10*entries.SlabLen {
			t.Errorf("seed %d: %d in the run at most: too few to show anything", seed, inRun)
		}
		kept := q.core.Index.Entries.Usage().Slabs
		if most := (len(waiting)+len(held))/(entries.SlabLen/4) + 8; kept > most {
			t.Errorf("seed %d: %d slabs for %d messages", seed, kept, len(waiting)+len(held))
		}
		for _, want := range waiting {
			if got := serve(t, q, epochStart).Seq; got != want {
				t.Fatalf("seed %d: served %d, want %d", seed, got, want)
			}
		}
	}
}
