// SPDX-License-Identifier: Apache-2.0

package order

import (
	"testing"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// testIndex is an index without a queue.
type testIndex struct{ Index }

type levelSpan struct{ lo, hi ordering.Level }

func newTestIndex(o ordering.Order) *testIndex { return &testIndex{New(o, false)} }

// send makes so many messages of a level ready.
func (x *testIndex) send(l ordering.Level, n int) {
	for range n {
		seq := x.Entries.Last + 1
		e := x.Entries.Put(seq, x.RunFor(entries.OrderKey{At: 1, Seq: seq}, l))
		*e = entries.Entry{Seq: seq, OrderTime: 1, Level: l}
		e.SetState(entries.Ready)
		x.Ready++
		x.Count(seq, e)
		x.Add(e.Key(), e)
	}
}

// deliver removes the next message of a range and returns its level.
func (x *testIndex) deliver(t *testing.T, r levelSpan) ordering.Level {
	t.Helper()
	k, ok := x.Pick(1, r.lo, r.hi)
	if !ok {
		t.Fatalf("nothing to deliver in %+v", r)
	}
	e := x.Entries.Get(k.Seq)
	l := e.Level
	x.Uncount(e)
	x.Ready--
	e.SetState(entries.Locked)
	x.Take(k, e)
	x.Entries.Delete(k.Seq)
	return l
}

// Ranges are remembered, but not without end.
func TestRangesAreBounded(t *testing.T) {
	q := newTestIndex(ordering.Order{Discipline: ordering.Weighted})
	q.send(100, 10_000)
	q.send(101, 10_000)
	for lo := range ordering.Level(100) {
		for hi := ordering.Level(101); hi < 150; hi++ {
			q.deliver(t, levelSpan{lo, hi})
		}
	}
	if got := len(q.sharing().ranges); got != maxRanges {
		t.Errorf("%d ranges are remembered, want %d", got, maxRanges)
	}
}

// age lets time pass for every level.
func (w *weighted) age(by int64) {
	w.now += by
	for l := range w.time {
		w.time[l] += by
	}
	for _, x := range w.ranges {
		x.now += by
		for l := range x.time {
			x.time[l] += by
		}
	}
}

// After a million deliveries the virtual times are reset; the choices stay the same (B6).
func TestSharesHoldWhenTimeBeginsAnew(t *testing.T) {
	for _, test := range []struct {
		name  string
		wants []levelSpan
		least [3]int // of 12,000 deliveries, by level
	}{
		{"all levels", []levelSpan{{0, 255}}, [3]int{3999, 3999, 3999}},
		{"a range", []levelSpan{{1, 3}}, [3]int{3999, 3999, 3999}},
		// What a receiver of levels 2 and 3 gets counts, but for no more than one
		// delivery: level 1 has more than a third of the other half, and not all.
		{"both", []levelSpan{{0, 255}, {2, 3}}, [3]int{2500, 4400, 4400}},
	} {
		t.Run(test.name, func(t *testing.T) {
			wants := test.wants
			q := newTestIndex(ordering.Order{Discipline: ordering.Weighted})
			for l := range ordering.Level(3) {
				q.send(1+l, 1)
			}
			for _, w := range wants {
				q.send(q.deliver(t, w), 1)
			}
			q.sharing().age(timeLimit - 1000*weightUnit)
			var got [3]int
			for i := range 60_000 {
				l := q.deliver(t, wants[i%len(wants)])
				got[l-1]++
				q.send(l, 1)
				if (i+1)%12_000 > 0 {
					continue
				}
				for l, n := range got {
					if n < test.least[l] {
						t.Fatalf("delivery %d: of 12000 the levels got %v, want at least %v", i, got, test.least)
					}
				}
				clear(got[:])
			}
		})
	}
}
