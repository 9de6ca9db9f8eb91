// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestWindowSwitchedOffInsideASnapshot switches the duplicate window off and on
// again after each of the steps that a snapshot takes.
func TestWindowSwitchedOffInsideASnapshot(t *testing.T) {
	for at := range 8 {
		q := New(Config{DuplicateWindow: time.Minute}, 1)
		var out Effects
		now := epochStart
		enqueue := func(id string) {
			var seq [1]SeqNo
			now = now.Add(time.Millisecond)
			if err := q.Enqueue(now, []Arrival{{Body: Ref{At: 1, Size: 5}, MessageID: id}}, seq[:], &out); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			enqueue(fmt.Sprint(i))
		}
		out.Reset()
		snap := q.Snapshot()
		for step, done := 0, false; !done; step++ {
			if step == at {
				q.Configure(now, Config{}, &out)
				q.Configure(now, Config{DuplicateWindow: time.Minute}, &out)
				enqueue("new")
			}
			done = snap.Step(items(1), nil, &out.Effects)
		}
		again := New(Config{}, 2)
		var sink Effects
		for _, rec := range out.Records()[first(at):] {
			if err := again.Replay(rec, &sink.Effects); err != nil {
				t.Fatalf("off before step %d: %v", at, err)
			}
		}
		if got, want := again.StateHash(now), q.StateHash(now); got != want {
			t.Errorf("off before step %d: the window has an id that was dropped", at)
		}
	}
}

// first skips the records before the snapshot, if something was done before it.
func first(at int) int {
	if at == 0 {
		return 3
	}
	return 0
}

// TestSessionThatEndsWithItsLastMessageOffersNothing lets a session's lock run
// out, and its messages die, while its list still has an entry for one that was taken by
// its number.
func TestSessionThatEndsWithItsLastMessageOffersNothing(t *testing.T) {
	q := New(Config{LockFor: time.Minute, MaxFailures: 1, Sessions: true}, 1)
	now := epochStart
	send(t, q, now, Arrival{Body: Ref{At: 1, Size: 5}, Session: "s", InSession: true}, 2)
	var out Effects
	lock, _, ok := q.LockNextSession(now, TakeOptions{})
	if !ok {
		t.Fatal("no session")
	}
	if _, err := q.TakeSeq(now, 2, TakeOptions{Session: lock}, &out); err != nil {
		t.Fatal(err)
	}
	if _, ok := q.Take(now, TakeOptions{Session: lock}, &out); !ok {
		t.Fatal("no message")
	}
	q.Tick(now.Add(time.Hour), &out)
	if len(out.DeadLettered) != 2 || q.Counts() != (Counts{}) {
		t.Errorf("dead %v, left %+v; want both messages dead", out.DeadLettered, q.Counts())
	}
	if err := q.Check(); err != nil {
		t.Error(err)
	}
}
