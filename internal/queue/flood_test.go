// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// load is what arrives at one level.
type load struct {
	level     Level
	perSecond int
	objective time.Duration
}

// outcome is what became of a load.
type outcome struct {
	served, inTime int
	worst          time.Duration // the longest wait
}

// flood lets loads arrive at random for some time, while one worker takes capacity messages
// a second. Most is the limit of messages that wait at a level; more do not arrive.
func flood(t *testing.T, order Order, loads []load, capacity, most int, length time.Duration) map[Level]outcome {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 1))
	q := New(Config{LockFor: time.Minute, Order: order}, 1)
	var out Effects
	got := make(map[Level]outcome)
	next := make([]time.Time, len(loads))
	for i := range loads {
		next[i] = epochStart
	}
	for now := epochStart; now.Before(epochStart.Add(length)); now = now.Add(time.Second / time.Duration(capacity)) {
		for i, l := range loads {
			for ; !next[i].After(now); next[i] = next[i].Add(time.Duration(rnd.ExpFloat64() * float64(time.Second) / float64(l.perSecond))) {
				if q.LevelCount(l.level) < int64(most) {
					a := Arrival{Level: l.level, At: next[i], Key: fmt.Sprint("tenant", rnd.IntN(3))}
					if err := q.Enqueue(now, []Arrival{a}, make([]SeqNo, 1), &out); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if d, ok := q.Take(now, TakeOptions{ReceiveAndDelete: true}, &out); ok {
			i := slices.IndexFunc(loads, func(l load) bool { return l.level == d.Level })
			o, waited := got[d.Level], now.Sub(d.EnqueuedAt)
			o.served++
			o.worst = max(o.worst, waited)
			if waited <= loads[i].objective {
				o.inTime++
			}
			got[d.Level] = o
		}
		out.Reset()
	}
	return got
}

// Overload of low levels does not reach the levels above: what of the highest levels fits
// the capacity starts in time, however much waits below and however late that is.
func TestDeadlinesHoldAboveAFlood(t *testing.T) {
	for _, tt := range []struct {
		name     string
		capacity int
		loads    []load // the lowest comes last, and is more than there is capacity for
	}{
		{"a flood of free", 100, []load{{8, 20, 10 * time.Second}, {3, 500, 10 * time.Minute}}},
		{"a little too much", 100, []load{{8, 50, 10 * time.Second}, {3, 60, 2 * time.Minute}}},
		{"the low one is urgent", 100, []load{{8, 50, 10 * time.Second}, {3, 80, 2 * time.Second}}},
		{"three", 100, []load{{9, 10, time.Second}, {7, 40, 10 * time.Second}, {2, 200, time.Minute}}},
		{"nearly all is high", 100, []load{{8, 90, 10 * time.Second}, {3, 20, time.Minute}}},
	} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/fair=%t", tt.name, fair), func(t *testing.T) {
				order := Order{Discipline: Deadline, Objective: make([]time.Duration, 10), Fair: fair}
				for _, l := range tt.loads {
					order.Objective[l.level] = l.objective
				}
				got := flood(t, order, tt.loads, tt.capacity, 100_000, 40*time.Minute)
				for _, l := range tt.loads {
					t.Logf("level %d: %d of %d in time, the worst after %v", l.level, got[l.level].inTime, got[l.level].served, got[l.level].worst)
				}
				for _, l := range tt.loads[:len(tt.loads)-1] {
					o := got[l.level]
					if sent := l.perSecond * 2400; o.served < sent*95/100 || o.inTime*100 < o.served*99 {
						t.Errorf("level %d: %d of %d started within %v, of about %d; the worst after %v", l.level, o.inTime, o.served, l.objective, sent, o.worst)
					}
				}
				if lowest := tt.loads[len(tt.loads)-1]; got[lowest.level].inTime == got[lowest.level].served {
					t.Errorf("all of level %d is in time: there is no flood", lowest.level)
				}
			})
		}
	}
}

// What is ahead of a message by its explanation is delivered before it, and nothing else.
func TestExplanationUnderDeadlineAgreesWithTheDeliveries(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		order := Order{Discipline: Deadline, Objective: make([]time.Duration, 6)}
		for l := range order.Objective {
			order.Objective[l] = time.Duration(rnd.IntN(60)) * time.Second // zero is none
		}
		q := New(Config{LockFor: time.Hour, Order: order}, 1)
		var out Effects
		now := epochStart
		for range 40 {
			send(t, q, now, Arrival{Level: Level(rnd.IntN(6))}, 1)
			now = now.Add(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			if rnd.IntN(4) == 0 {
				serve(t, q, now)
			}
		}
		ahead := map[SeqNo]int{}
		for _, d := range peekAll(q, now, nil) {
			x := Explain{Seq: d.Seq}
			for done := false; !done; {
				done, _ = q.Explain(now, &x, 7)
			}
			for _, n := range x.Position.Ahead {
				ahead[d.Seq] += n
			}
			if late := now.After(d.EnqueuedAt.Add(order.Objective[d.Level])) && order.Objective[d.Level] > 0; late && x.Position.LateLevel != int(d.Level) {
				t.Fatalf("seed %d: message %d is late, and its level %d is not served by level: %+v", seed, d.Seq, d.Level, x.Position)
			}
		}
		for n := range len(ahead) {
			d, ok := q.Take(now, TakeOptions{}, &out)
			if !ok || ahead[d.Seq] != n {
				t.Fatalf("seed %d: message %d of level %d is number %d, and %d were ahead of it", seed, d.Seq, d.Level, n, ahead[d.Seq])
			}
			out.Reset()
		}
	}
}
