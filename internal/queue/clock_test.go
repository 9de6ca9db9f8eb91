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
