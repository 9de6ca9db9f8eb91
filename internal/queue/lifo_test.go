// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Far more messages than a chunk of the stack has space for, most of which leave from
// the middle or come back to it.
func TestLifoOfManyKeepsTheOrder(t *testing.T) {
	q := New(Config{LockFor: time.Hour, Order: Order{LevelOrder: Lifo}}, 1)
	rnd := rand.New(rand.NewPCG(1, 2))
	var out Effects
	var waiting []SeqNo // by number, which is by age
	var held []Token
	last := SeqNo(0)
	for i := range 20_000 {
		switch n := rnd.IntN(10); {
		case n < 5 && i%4000 < 2000 || n < 3: // grows and shrinks
			send(t, q, epochStart, Arrival{}, 1)
			last++
			waiting = append(waiting, last)
		case n < 7:
			d, ok := q.Take(epochStart, TakeOptions{}, &out)
			if !ok {
				break
			}
			if want := waiting[len(waiting)-1]; d.Seq != want {
				t.Fatalf("step %d: took %d, want %d", i, d.Seq, want)
			}
			waiting = waiting[:len(waiting)-1]
			held = append(held, d.Token)
		case n < 8 && len(waiting) > 0:
			at := rnd.IntN(len(waiting))
			if err := q.Remove(epochStart, waiting[at], &out); err != nil {
				t.Fatal(err)
			}
			waiting = slices.Delete(waiting, at, at+1)
		case len(held) > 0:
			at := rnd.IntN(len(held))
			if _, err := q.Release(epochStart, held[at], &out); err != nil {
				t.Fatal(err)
			}
			place, _ := slices.BinarySearch(waiting, held[at].Seq)
			waiting = slices.Insert(waiting, place, held[at].Seq)
			held = slices.Delete(held, at, at+1)
		}
		out.Reset()
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
	if len(waiting) < 2*125 {
		t.Fatalf("%d wait in the end: too few to show anything", len(waiting))
	}
	if k, _ := q.core.Index.PlainList(0).First(&q.core.Index.Entries); k.Seq != waiting[0] {
		t.Errorf("the oldest is %d, want %d", k.Seq, waiting[0])
	}
	for len(waiting) > 0 {
		if got, want := serve(t, q, epochStart).Seq, waiting[len(waiting)-1]; got != want {
			t.Fatalf("served %d, want %d", got, want)
		}
		waiting = waiting[:len(waiting)-1]
	}
}
