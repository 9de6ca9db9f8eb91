// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"
)

// crowd returns a queue of n messages that wait, in ten levels.
func crowd(t testing.TB, cfg Config, n int) *Queue {
	t.Helper()
	q := New(cfg, 1)
	var out Effects
	as, seqs := make([]Arrival, 1000), make([]SeqNo, 1000)
	for i := 0; i < n; i += len(as) {
		for j := range as {
			as[j] = Arrival{Body: Ref{At: uint64(i + j + 1), Size: 256}, Level: Level((i + j) % 10), Key: fmt.Sprint("k", (i+j)%100)}
			if cfg.Sessions {
				as[j].Session, as[j].InSession = fmt.Sprint("s", (i+j)%500), true
			}
		}
		if err := q.Enqueue(epochStart.Add(time.Duration(i)), as, seqs, &out); err != nil {
			t.Fatal(err)
		}
		out.Reset()
	}
	return q
}

// visited returns how many messages, keys and sessions do visits.
func visited(q *Queue, do func()) uint64 {
	before := q.msgs.visits
	do()
	return q.msgs.visits - before
}

// A pause visits nothing, however many messages wait (A9).
func TestPauseVisitsNothing(t *testing.T) {
	for name, order := range map[string]Order{
		"plain": {}, "lifo": {Within: Lifo}, "fair": {Fair: true}, "finish": {Fair: true, Within: FinishFirst}, "weighted": benchOrder(Weighted),
	} {
		for _, sessions := range []bool{false, true} {
			q := crowd(t, Config{LockFor: time.Minute, Order: order, Sessions: sessions}, 50_000)
			cfg := q.Config()
			var out Effects
			for _, paused := range []bool{true, false} {
				cfg.ReceivePaused, cfg.SendPaused = paused, paused
				n := visited(q, func() { q.Configure(epochStart, cfg, &out) })
				if n > 0 {
					t.Errorf("%s, sessions %t: a pause visited %d messages", name, sessions, n)
				}
				if q.HasReady(epochStart, Want{}) && (paused || sessions) {
					t.Errorf("paused %t, and something is ready", paused)
				}
			}
		}
	}
}

// A pause, or any other setting that is not about the order, leaves the order as it
// is: whose turn it is, how far each share is used, and what a pace allows (A9).
func TestPauseLeavesTheOrderAlone(t *testing.T) {
	pause := func(q *Queue) {
		var out Effects
		cfg := q.Config()
		cfg.ReceivePaused = true
		q.Configure(epochStart, cfg, &out)
		cfg.ReceivePaused = false
		q.Configure(epochStart, cfg, &out)
	}
	t.Run("pace", func(t *testing.T) {
		q := New(Config{LockFor: time.Minute, Order: Order{Fair: true, Others: Share{Rate: 1}}}, 1)
		send(t, q, epochStart, Arrival{Key: "k"}, 2)
		serve(t, q, epochStart)
		pause(q)
		if q.HasReady(epochStart, Want{}) {
			t.Error("after a pause a key has its pace once more")
		}
	})
	t.Run("shares", func(t *testing.T) {
		q := New(Config{LockFor: time.Minute, Order: Order{Discipline: Weighted}}, 1)
		send(t, q, epochStart, Arrival{Level: 1}, 10)
		send(t, q, epochStart, Arrival{Level: 2}, 10)
		for i := range 10 {
			if got, want := serve(t, q, epochStart).Level, Level(2-i%2); got != want {
				t.Fatalf("delivery %d is of level %d, want %d", i, got, want)
			}
			pause(q)
		}
	})
	t.Run("saturation", func(t *testing.T) {
		q := New(Config{LockFor: time.Minute, Order: Order{Saturation: Saturation{Waiting: 10}}}, 1)
		send(t, q, epochStart, Arrival{Level: 1}, 10)
		send(t, q, epochStart, Arrival{Level: 2}, 1)
		for range 4 {
			serve(t, q, epochStart)
		}
		pause(q)
		if !q.Saturated(epochStart) {
			t.Error("after a pause a saturated queue, still above the half, is not saturated")
		}
	})
}

// Another order is put in force in steps, and every step visits a bounded number of
// messages. Until the last of them the old order holds (A9).
func TestReorderVisitsABoundedNumber(t *testing.T) {
	const messages, step = 30_000, 500
	orders := []Order{{}, {Fair: true}, {Fair: true, Within: FinishFirst}, {Discipline: Weighted}, {Fair: true, Others: Share{Cap: 3}}, {}}
	for _, sessions := range []bool{false, true} {
		q := crowd(t, Config{LockFor: time.Minute, Sessions: sessions}, messages)
		var out Effects
		for i, o := range orders {
			cfg := q.Config()
			cfg.Order = o
			if n := visited(q, func() { q.Configure(epochStart, cfg, &out) }); n > 0 {
				t.Errorf("order %d: Configure visited %d messages", i, n)
			}
			steps := 0
			for more := q.Reordering(); more; steps++ {
				if n := visited(q, func() { more = q.Reorder(step) }); n > step+shelfLen {
					t.Fatalf("order %d: a step visited %d messages", i, n)
				}
				if d, ok := q.Take(epochStart, Want{}, &out); ok {
					if _, err := q.Release(epochStart, d.Token, &out); err != nil {
						t.Fatal(err)
					}
				}
			}
			if rebuilt := i > 0 && o.Fair != orders[i-1].Fair; rebuilt && steps < messages/step {
				t.Errorf("order %d: %d steps", i, steps)
			} else if !rebuilt && !o.Fair && steps > 0 {
				t.Errorf("order %d: the lines are the same, and it took %d steps", i, steps)
			}
			if !q.InForce() {
				t.Errorf("order %d is not in force", i)
			}
			if err := q.Check(); err != nil {
				t.Errorf("order %d: %v", i, err)
			}
		}
	}
}

// Where the newest goes first instead of the oldest, or levels are chosen by another
// discipline, the messages are where they were (A9).
func TestOtherDisciplineVisitsNothing(t *testing.T) {
	q := crowd(t, Config{LockFor: time.Minute}, 20_000)
	var out Effects
	for _, o := range []Order{{Within: Lifo}, benchOrder(Aging), benchOrder(Weighted), {Within: Lifo, Saturation: Saturation{Waiting: 9}}, {}} {
		cfg := q.Config()
		cfg.Order = o
		if n := visited(q, func() { q.Configure(epochStart, cfg, &out) }); n > 0 || q.Reordering() {
			t.Errorf("discipline %d, within %d: visited %d messages, more to do: %t", o.Discipline, o.Within, n, q.Reordering())
		}
		if err := q.Check(); err != nil {
			t.Error(err)
		}
		want := SeqNo(10) // the oldest of level 9
		if o.Within == Lifo && o.Discipline == Strict {
			want = 20_000
		}
		if d, ok := q.First(epochStart, Want{MinLevel: 9, MaxLevel: 9}); !ok || d.Seq != want {
			t.Errorf("discipline %d, within %d: first is %d, want %d", o.Discipline, o.Within, d.Seq, want)
		}
	}
}
