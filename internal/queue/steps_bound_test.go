// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
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
	before := q.core.Index.Entries.Visits
	do()
	return q.core.Index.Entries.Visits - before
}

// A pause visits nothing, however many messages wait (A9).
func TestPauseVisitsNothing(t *testing.T) {
	for name, order := range map[string]Order{
		"plain": {}, "lifo": {LevelOrder: Lifo}, "fair": {Fair: true}, "finish": {Fair: true, LevelOrder: FinishFirst}, "weighted": benchOrder(Weighted),
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
				if q.HasReady(epochStart, TakeOptions{}) && (paused || sessions) {
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
		q := New(Config{LockFor: time.Minute, Order: Order{Fair: true, DefaultShare: Share{Rate: 1}}}, 1)
		send(t, q, epochStart, Arrival{Key: "k"}, 2)
		serve(t, q, epochStart)
		pause(q)
		if q.HasReady(epochStart, TakeOptions{}) {
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
	orders := []Order{{}, {Fair: true}, {Fair: true, LevelOrder: FinishFirst}, {Discipline: Weighted}, {Fair: true, DefaultShare: Share{Cap: 3}}, {}}
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
				if n := visited(q, func() { more = q.Reorder(step) }); n > step+entries.SlabLen {
					t.Fatalf("order %d: a step visited %d messages", i, n)
				}
				if d, ok := q.Take(epochStart, TakeOptions{}, &out); ok {
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
	for _, o := range []Order{{LevelOrder: Lifo}, benchOrder(Aging), benchOrder(Weighted), {LevelOrder: Lifo, Saturation: Saturation{Waiting: 9}}, {}} {
		cfg := q.Config()
		cfg.Order = o
		if n := visited(q, func() { q.Configure(epochStart, cfg, &out) }); n > 0 || q.Reordering() {
			t.Errorf("discipline %d, within %d: visited %d messages, more to do: %t", o.Discipline, o.LevelOrder, n, q.Reordering())
		}
		if err := q.Check(); err != nil {
			t.Error(err)
		}
		want := SeqNo(10) // the oldest of level 9
		if o.LevelOrder == Lifo && o.Discipline == Strict {
			want = 20_000
		}
		if d, ok := q.PeekNext(epochStart, TakeOptions{MinLevel: 9, MaxLevel: 9}); !ok || d.Seq != want {
			t.Errorf("discipline %d, within %d: first is %d, want %d", o.Discipline, o.LevelOrder, d.Seq, want)
		}
	}
}

// What is about many messages visits a bounded number of them in a step, and what is
// about few finds them without a walk (A9).
func TestStepsVisitABoundedNumber(t *testing.T) {
	const messages, step = 30_000, 500
	later := epochStart.Add(time.Hour)
	all := func(q *Queue, do func() (done bool)) func(*testing.T) {
		return func(t *testing.T) {
			for steps, done := 1, false; !done; steps++ {
				if n := visited(q, func() { done = do() }); n > step+1 {
					t.Fatalf("step %d visited %d", steps, n)
				}
				if done && steps < messages/step/2 {
					t.Errorf("it took %d steps, too few to show anything", steps)
				}
			}
			if err := q.Check(); err != nil {
				t.Error(err)
			}
		}
	}
	var out Effects

	q := crowd(t, Config{LockFor: time.Minute}, messages)
	x := Explain{Seq: 77}
	t.Run("explain", all(q, func() bool {
		done, err := q.Explain(epochStart, &x, step)
		return done || err != nil
	}))
	if want := map[Level]int{6: 7, 7: 3000, 8: 3000, 9: 3000}; !maps.Equal(x.Position.Ahead, want) {
		t.Errorf("ahead of message 77: %v, want %v", x.Position.Ahead, want)
	}
	var p Purge
	t.Run("purge", all(q, func() bool {
		out.Reset()
		done := q.Purge(epochStart, &p, step, &out)
		send(t, q, epochStart, Arrival{Body: Ref{At: 1, Size: 1}}, step) // it must end all the same
		for _, rec := range out.Records() {
			if len(rec) > 16<<10 {
				t.Fatalf("a record of %d bytes", len(rec))
			}
		}
		return done
	}))
	if p.Gone != messages {
		t.Errorf("purged %d, want %d", p.Gone, messages)
	}

	q = crowd(t, Config{LockFor: time.Minute, Order: Order{Fair: true}}, 1000)
	for i := range messages {
		send(t, q, epochStart, Arrival{Key: fmt.Sprint("key", i)}, 1)
	}
	var s order.Survey
	t.Run("survey of fair keys", all(q, func() bool { return q.Survey(&s, step) }))
	if got := s.Levels[0]; got.Ready != messages+100 || !got.Oldest.Equal(epochStart) {
		t.Errorf("level 0: %+v", got)
	}

	q = New(Config{LockFor: time.Minute, TTL: time.Minute}, 1)
	send(t, q, epochStart, Arrival{}, messages)
	peek := Peek{Max: 10, Visits: step}
	t.Run("peek of expired messages", all(q, func() bool {
		var ds []Delivery
		ds, peek.From = q.Peek(later, peek)
		if len(ds) > 0 {
			t.Errorf("peeked at %d, which has expired", ds[0].Seq)
		}
		return peek.From == 0
	}))

	q = New(Config{LockFor: time.Minute}, 1)
	send(t, q, epochStart, Arrival{Level: 1, Class: 1}, 1)
	send(t, q, epochStart, Arrival{}, messages)
	send(t, q, later, Arrival{Class: 1}, 1)
	serve(t, q, later)
	t.Run("oldest of a class", all(q, func() bool {
		most := step
		return q.SeekOldest(&most)
	}))
	for c, st := range q.Classes() {
		if c == 1 && !st.Oldest.Equal(later) {
			t.Errorf("the oldest of class 1 is of %v, want %v", st.Oldest, later)
		}
	}

	q = New(Config{LockFor: time.Minute, Sessions: true}, 1)
	for i := range messages {
		send(t, q, epochStart, Arrival{Session: fmt.Sprint(i % (messages / 2)), InSession: true}, 1)
	}
	listed, from := 0, 0
	t.Run("sessions", func(t *testing.T) {
		for ids := []string(nil); ; {
			if n := visited(q, func() { ids, from = q.Sessions(time.Time{}, from, step) }); n > step {
				t.Fatalf("visited %d", n)
			}
			if listed += len(ids); from == 0 {
				break
			}
		}
	})
	if listed != messages/2 {
		t.Errorf("%d sessions, want %d", listed, messages/2)
	}
	id := "77"
	if n := visited(q, func() {
		if ds, next := q.Peek(epochStart, Peek{Max: 10, Session: &id}); len(ds) != 2 || next != 0 {
			t.Errorf("session %s has %d messages and more from %d, want 2", id, len(ds), next)
		}
	}); n > 3 {
		t.Errorf("to peek at a session of two visited %d messages", n)
	}
}

// A session in which thousands of messages are locked is given back, or ends, in
// steps (A9).
func TestSessionOfManyEndsInSteps(t *testing.T) {
	const held = 2000
	for _, released := range []bool{true, false} {
		q := New(Config{LockFor: time.Minute, Sessions: true}, 1)
		send(t, q, epochStart, Arrival{Session: "s", InSession: true}, held)
		var out Effects
		lock, until, err := q.LockSession(epochStart, "s")
		if err != nil {
			t.Fatal(err)
		}
		var last Delivery
		for range held {
			last, _ = q.Take(epochStart, TakeOptions{Session: lock}, &out)
		}
		now := epochStart
		out.Reset()
		if released {
			q.ReleaseSession(now, lock, &out)
		} else {
			now = until
		}
		if _, err := q.Complete(now, last.Token, &out); !errors.Is(err, ErrSessionLockLost) {
			t.Errorf("released %t: complete: %v, want %v", released, err, ErrSessionLockLost)
		}
		ticks := 0
		for before := q.Counts().Ready; ; ticks++ {
			more := q.Tick(now, &out)
			after := q.Counts().Ready
			if after-before > tickWork || len(out.Records()) > tickWork {
				t.Fatalf("released %t: a step returned %d messages and wrote %d records", released, after-before, len(out.Records()))
			}
			if before = after; !more {
				break
			}
			if _, _, ok := q.LockNextSession(now, TakeOptions{}); ok {
				t.Fatalf("released %t: the session is free before all of it is back", released)
			}
			out.Reset()
		}
		if c := q.Counts(); c.Ready != held || c.Locked != 0 || ticks < held/tickWork-1 {
			t.Errorf("released %t: %+v after %d ticks", released, c, ticks)
		}
		if d, _ := q.Lookup(1); (d.Failures == 0) != released {
			t.Errorf("released %t: %d failures", released, d.Failures)
		}
		if l, _, ok := q.LockNextSession(now, TakeOptions{}); !ok || l.ID != "s" {
			t.Errorf("released %t: the session is not free", released)
		}
		if err := q.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A snapshot visits no more than its budget in a step, also where it finds little to
// write (A9).
func TestSnapshotVisitsABoundedNumber(t *testing.T) {
	q := New(Config{LockFor: time.Minute, Sessions: true, Order: Order{Fair: true, LevelOrder: FinishFirst}}, 1)
	var out Effects
	for i := range 5000 {
		send(t, q, epochStart, Arrival{Session: fmt.Sprint(i), InSession: true, Key: fmt.Sprint(i)}, 1)
	}
	for snap, step, done := q.Snapshot(), 1, false; !done; step++ {
		if n := visited(q, func() { done = snap.Step(items(100), nil, &out.Effects) }); n > 101 {
			t.Fatalf("step %d visited %d", step, n)
		}
		out.Reset()
	}
}
