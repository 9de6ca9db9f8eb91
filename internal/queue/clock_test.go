// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"
)

// A message that was stored while the clock was 400 days ahead gives its time to those that come
// while it is in the queue, so that they stay behind it, and to none when it has gone. The
// window of duplicates moves on.
func TestAClockThatWasAheadIsForgotten(t *testing.T) {
	const ahead = 400 * 24 * time.Hour
	q := New(Config{}, 1)
	var out Effects
	var log [][]byte
	keep := func() {
		for _, rec := range out.Records() {
			log = append(log, append([]byte(nil), rec...))
		}
		out.Reset()
	}
	restart := func(now time.Time) {
		t.Helper()
		fresh := New(Config{}, 1)
		var effects Effects
		for _, rec := range log {
			if err := fresh.Replay(rec, &effects.Effects); err != nil {
				t.Fatal(err)
			}
		}
		if fresh.StateHash(now) != q.StateHash(now) {
			t.Fatal("a replay has another state")
		}
		q = fresh
	}
	n := 0
	put := func(now time.Time) {
		t.Helper()
		n++
		if err := q.Enqueue(now, []Arrival{{MessageID: fmt.Sprint(n), Body: Ref{At: uint64(n), Size: 1}}}, make([]SeqNo, 1), &out); err != nil {
			t.Fatal(err)
		}
		keep()
	}
	take := func(now time.Time) time.Time {
		t.Helper()
		d, ok := q.Take(now, TakeOptions{}, &out)
		if !ok {
			t.Fatal("there is no message")
		}
		if _, err := q.Complete(now, d.Token, &out); err != nil {
			t.Fatal(err)
		}
		keep()
		return d.EnqueuedAt
	}
	q.Configure(epochStart, Config{LockFor: time.Minute, DuplicateWindow: time.Hour}, &out)
	keep()
	put(epochStart.Add(ahead))
	restart(epochStart)
	put(epochStart)
	if first, second := take(epochStart), take(epochStart); first.After(second) {
		t.Errorf("a message of %v came before one of %v", first, second)
	}
	now := epochStart.Add(time.Minute)
	put(now)
	restart(now)
	if got := take(now); !got.Equal(now) {
		t.Errorf("a message at %v is of %v", now, got)
	}
	for range 20 {
		now = now.Add(10 * time.Minute)
		put(now)
		take(now)
		q.Tick(now, &out)
		keep()
	}
	if first, end := q.core.Window.Bounds(); end-first > 10 {
		t.Errorf("%d ids are in a window of an hour", end-first)
	}
}

// While a message waits that was stored under a clock that was 30 days ahead, others that come by
// the right one are duplicates for as long as the window says, and live as long as they may.
// A restart between does not change that.
func TestAClockThatWasAheadHoldsNothingUp(t *testing.T) {
	const ahead, window, ttl = 30 * 24 * time.Hour, 10 * time.Minute, time.Minute
	for _, restarts := range []bool{false, true} {
		cfg := Config{LockFor: time.Minute, DuplicateWindow: window}
		q, now := New(cfg, 1), epochStart.Add(ahead)
		var out Effects
		var log [][]byte
		q.Configure(now, cfg, &out)
		step := func() { // as time goes by
			t.Helper()
			for q.Tick(now, &out) {
			}
			for _, rec := range out.Records() {
				log = append(log, append([]byte(nil), rec...))
			}
			out.Reset()
			if err := q.Check(); err != nil {
				t.Fatal(err)
			}
		}
		restart := func() {
			t.Helper()
			step()
			fresh := New(Config{}, 2)
			var effects Effects
			for _, rec := range log {
				if err := fresh.Replay(rec, &effects.Effects); err != nil {
					t.Fatal(err)
				}
			}
			if fresh.StateHash(now) != q.StateHash(now) {
				t.Fatal("a replay has another state")
			}
			if due, ok := fresh.NextDeadline(); !ok || due.After(now) {
				t.Fatalf("the window is not told the time: due %v %t", due, ok)
			}
			q = fresh
		}
		put := func(a Arrival) SeqNo {
			t.Helper()
			var seq [1]SeqNo
			a.Body = Ref{At: uint64(len(log) + 1), Size: 1}
			if err := q.Enqueue(now, []Arrival{a}, seq[:], &out); err != nil {
				t.Fatal(err)
			}
			step()
			return seq[0]
		}
		put(Arrival{MessageID: "stays"})
		now = epochStart
		restart()
		if put(Arrival{MessageID: "daily"}) == 0 || put(Arrival{MessageID: "daily"}) != 0 {
			t.Errorf("restarts %t: an id is stored once and then dropped", restarts)
		}
		soon := put(Arrival{TTL: ttl})
		put(Arrival{TTL: ttl, NotBefore: now.Add(time.Second)})
		if d, _ := q.Lookup(soon); !d.ExpiresAt.Equal(now.Add(ttl)) || !d.EnqueuedAt.Equal(now) {
			t.Errorf("restarts %t: a message that may wait a minute is from %v and expires after %v", restarts, d.EnqueuedAt, d.ExpiresAt.Sub(now))
		}
		if restarts {
			restart()
		}
		for range 2 {
			now = now.Add(ttl + time.Second)
			step()
		}
		if got := q.Counts().Ready; got != 2 {
			t.Errorf("restarts %t: %d messages wait, want the two that do not expire", restarts, got)
		}
		for range 3 {
			now = now.Add(window)
			if restarts {
				restart()
				step()                // as the owner does, since something is due
				now = now.Add(window) // by its records an id may have come just before
				if put(Arrival{MessageID: "other"}) == 0 {
					t.Error("another id is a duplicate")
				}
			}
			if put(Arrival{MessageID: "daily"}) == 0 {
				t.Errorf("restarts %t: an id is a duplicate after %v", restarts, window)
			}
		}
		if first, end := q.core.Window.Bounds(); !restarts && end-first > 2 {
			t.Errorf("%d ids are in a window of %v", end-first, window)
		}
	}
}
