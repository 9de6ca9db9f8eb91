// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
)

// flaky is a journal whose disk is full now and then.
type flaky struct {
	journal.Journal
	rnd  *rand.Rand
	full int // of 100 calls, how many find no space
}

func (j *flaky) Append(c journal.Claim, g *journal.Group) error {
	if j.rnd.IntN(100) < j.full {
		return journal.ErrFull
	}
	return j.Journal.Append(c, g)
}

func (j *flaky) Truncate(ctx context.Context, c journal.Claim, r journal.Retain) error {
	if j.rnd.IntN(100) < j.full {
		return journal.ErrFull
	}
	return j.Journal.Truncate(ctx, c, r)
}

// TestRecoveryAfterAFullDisk: wherever an append finds no space, what is acknowledged is
// durable, and what is recovered is a state that has been.
func TestRecoveryAfterAFullDisk(t *testing.T) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 3))
			r := newRig(t, Options{SnapshotAfter: 2000, SnapshotStep: 3, VisitStep: 3})
			j := &flaky{rnd: rnd}
			r.wrap = func(w journal.Journal) journal.Journal { j.Journal = w; return j }
			r.crash(seed)
			states, acked, stuck := []string{r.h.state()}, 0, 0
			for range 600 {
				j.full = []int{0, 0, 30, 90}[rnd.IntN(4)]
				switch n := rnd.IntN(20); {
				case n < 12:
					number := len(states)
					states = append(states, "")
					r.do(func(h *counterHost) {
						randomCommand(t, rnd, h)
						states[number] = h.state()
						h.held.Hold(h.tx, Pending, fmt.Sprint(number))
					}, func() { acked = max(acked, number) })
				case n < 15:
					r.step()
				case n < 17:
					r.commit()
				case n < 18:
					r.work()
					r.checkBodies()
				case n < 19:
					r.now = r.now.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
				case rnd.IntN(3) == 0:
					for _, s := range r.h.seen {
						var number int
						_, _ = fmt.Sscan(s, &number)
						acked = max(acked, number)
					}
					r.crash(rnd.Uint64())
					got := r.h.state()
					at := slices.Index(states[acked:], got)
					if at < 0 {
						t.Fatalf("recovered\n%swhich was never, or before command %d of %d:\n%s", got, acked, len(states)-1, states[acked])
					}
					states = states[:acked+at+1]
					acked += at
				}
				r.step()
				if r.e.Stuck() {
					stuck++
				}
				r.check()
			}
			j.full = 0
			for range 3 {
				r.now = r.now.Add(time.Second)
				r.settle()
			}
			r.check()
			if got := r.h.state(); got != states[len(states)-1] || stuck == 0 {
				t.Errorf("at the end, stuck %d times\n%swant\n%s", stuck, got, states[len(states)-1])
			}
			if acked != len(states)-1 || r.e.snapshot.busy {
				t.Errorf("%d of %d commands are acknowledged, a snapshot is under way: %t", acked, len(states)-1, r.e.snapshot.busy)
			}
		})
	}
}
