// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// sharedOrders are the two orders in which levels have shares.
func sharedOrders(weights []uint32) map[string]Order {
	return map[string]Order{
		"weighted":  {Discipline: Weighted, Weight: weights},
		"saturated": {Weight: weights, Saturation: Saturation{Waiting: 1}},
	}
}

func takeFrom(t testing.TB, q *Queue, w TakeOptions) Level {
	t.Helper()
	var out Effects
	w.ReceiveAndDelete = true
	d, ok := q.Take(epochStart, w, &out)
	if !ok {
		t.Fatalf("nothing to take from %+v", w)
	}
	return d.Level
}

func only(l Level) TakeOptions { return TakeOptions{MinLevel: l, MaxLevel: l, HasMaxLevel: true} }

// A receiver of one level takes thousands out of turn. Later receivers, and the
// level itself, has its share from the first delivery on (B6).
func TestSharesHoldAfterARangeReceiver(t *testing.T) {
	for name, order := range sharedOrders(nil) {
		t.Run(name, func(t *testing.T) {
			q := New(Config{LockFor: time.Minute, Order: order}, 1)
			send(t, q, epochStart, Arrival{Level: 1}, 10_000)
			send(t, q, epochStart, Arrival{Level: 5}, 10_000)
			for range 4000 {
				takeFrom(t, q, only(5))
			}
			send(t, q, epochStart, Arrival{Level: 7}, 10_000) // a newcomer
			send(t, q, epochStart, Arrival{Level: 3}, 10_000) // and another
			got := map[Level]int{}
			for i := range 400 {
				got[takeFrom(t, q, TakeOptions{})]++
				if i == 7 && len(got) != 4 {
					t.Errorf("the first 8 deliveries were %v, want all four levels", got)
				}
			}
			for _, l := range []Level{1, 3, 5, 7} {
				if got[l] < 99 || got[l] > 101 {
					t.Errorf("level %d got %d of 400 deliveries, want 100: %v", l, got[l], got)
				}
			}
		})
	}
}

// A level that a range receiver has emptied comes back as a newcomer (B6).
func TestEmptiedLevelOwesNothing(t *testing.T) {
	for name, order := range sharedOrders(nil) {
		t.Run(name, func(t *testing.T) {
			q := New(Config{LockFor: time.Minute, Order: order}, 1)
			send(t, q, epochStart, Arrival{Level: 1}, 10_000)
			send(t, q, epochStart, Arrival{Level: 5}, 4000)
			for range 4000 {
				takeFrom(t, q, only(5))
			}
			takeFrom(t, q, TakeOptions{})
			send(t, q, epochStart, Arrival{Level: 5}, 1)
			for i := 1; takeFrom(t, q, TakeOptions{}) != 5; i++ {
				if i == 3 {
					t.Fatal("level 5 is not among the next three")
				}
			}
		})
	}
}

// Inside a range the shares hold as well, whatever waits outside of it (B6).
func TestSharesHoldInsideARange(t *testing.T) {
	for name, order := range sharedOrders([]uint32{1, 1, 1, 1, 1, 3}) {
		t.Run(name, func(t *testing.T) {
			q := New(Config{LockFor: time.Minute, Order: order}, 1)
			for l := range Level(6) {
				send(t, q, epochStart, Arrival{Level: l}, 5000)
			}
			got := map[Level]int{}
			for range 4000 {
				got[takeFrom(t, q, TakeOptions{MinLevel: 4, MaxLevel: 5})]++
			}
			if got[4] != 1000 || got[5] != 3000 {
				t.Errorf("a range of weights 1 and 3 got %v, want 1000 and 3000", got)
			}
		})
	}
}

// Receivers of all kinds of ranges come in any mixture, and levels run empty and
// come back. For each range: while a level waits, no other is served oftener than
// its weight allows (B6).
func TestNoLevelWaitsLongerThanItsShare(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		weights := make([]uint32, 10)
		for l := range weights {
			weights[l] = 1 + rnd.Uint32N(5)
		}
		for name, order := range sharedOrders(weights) {
			q := New(Config{LockFor: time.Minute, Order: order}, 1)
			var wants []TakeOptions
			for range 1 + rnd.IntN(4) {
				lo := Level(rnd.IntN(10))
				wants = append(wants, TakeOptions{MinLevel: lo, MaxLevel: lo + Level(rnd.IntN(10-int(lo))), HasMaxLevel: true})
			}
			wants = append(wants, TakeOptions{})
			// passed[r][j][l] is how often receivers of range r got level l since j,
			// which waits all the time, was served last.
			passed := make([][10][10]int, len(wants))
			reset := func(j Level) {
				for r := range passed {
					passed[r][j] = [10]int{}
				}
			}
			for step := range 3000 {
				if rnd.IntN(2) == 0 {
					l := Level(rnd.IntN(10))
					send(t, q, epochStart, Arrival{Level: l}, 1+rnd.IntN(3))
					continue
				}
				r := rnd.IntN(len(wants))
				if step%1000 > 500 {
					r = 0 // now and then one of them is alone
				}
				if !q.HasReady(epochStart, wants[r]) {
					continue
				}
				l := takeFrom(t, q, wants[r])
				for j := range Level(10) {
					if q.LevelCount(j) == 0 || j < wants[r].lowest() || j > wants[r].highest() {
						reset(j)
						continue
					}
					if passed[r][j][l]++; j != l && passed[r][j][l] > int(weights[l]/weights[j])+1 {
						t.Fatalf("%s, seed %d, step %d: range %+v served level %d %d times while level %d waited, weights %d and %d",
							name, seed, step, wants[r], l, passed[r][j][l], j, weights[l], weights[j])
					}
				}
				reset(l)
			}
		}
	}
}
