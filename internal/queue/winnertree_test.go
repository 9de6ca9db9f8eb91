// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// plainShares is the weighted discipline in its plainest form: at each choice it
// looks at every level.
type plainShares struct {
	waiting [256]int
	in      [256]bool // had something waiting at the last choice
	time    [256]int64
	now     int64
	weights []uint32
}

func (p *plainShares) next() (best int) {
	best = -1
	for l := len(p.waiting) - 1; l >= 0; l-- {
		if p.waiting[l] == 0 {
			p.in[l] = false
			continue
		}
		if !p.in[l] {
			p.in[l], p.time[l] = true, max(p.time[l], p.now)
		}
		if best < 0 || p.time[l] < p.time[best] {
			best = l
		}
	}
	if best >= 0 {
		p.waiting[best]--
		p.now = p.time[best]
		p.time[best] += int64(1<<40) / int64(p.weights[best])
	}
	return best
}

// Levels run empty and come back all the time here, which is where a tournament
// that plays only what has changed may forget somebody.
func TestWeightedServesTheSameAsThePlainModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		levels := []int{2, 3, 9, 256}[seed%4]
		burst := 1 + rnd.IntN(8)
		model := &plainShares{weights: make([]uint32, 256)}
		for l := range model.weights {
			model.weights[l] = 1 + rnd.Uint32N(5)
		}
		q := New(Config{LockFor: time.Minute, Order: Order{Discipline: Weighted, Weight: model.weights}}, 1)
		var out Effects
		for step := range 400 {
			for range rnd.IntN(burst) {
				l := rnd.IntN(levels)
				send(t, q, epochStart, Arrival{Level: Level(l)}, 1)
				model.waiting[l]++
			}
			for range rnd.IntN(burst) {
				want, got := model.next(), -1
				if d, ok := q.Take(epochStart, TakeOptions{}, &out); ok {
					got = int(d.Level)
				}
				if got != want {
					t.Fatalf("seed %d, step %d: level %d was served, want %d", seed, step, got, want)
				}
			}
		}
	}
}
