// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"
)

// A session keeps its age also where its line is a long one.
func TestLongSessionGoesByItsAge(t *testing.T) {
	q := New(Config{LockFor: time.Hour, Sessions: true}, 1)
	send(t, q, epochStart, Arrival{Session: "long", InSession: true}, 3*16)
	var out Effects
	long, _, err := q.LockSession(epochStart, "long")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 * 16 {
		if _, ok := q.Take(epochStart, TakeOptions{Session: long, ReceiveAndDelete: true}, &out); !ok {
			t.Fatal("nothing to take")
		}
	}
	send(t, q, epochStart, Arrival{Session: "older", InSession: true, At: epochStart.Add(-time.Hour)}, 1)
	q.ReleaseSession(epochStart, long, &out)
	if l, _, _ := q.LockNextSession(epochStart, TakeOptions{}); l.ID != "older" {
		t.Errorf("next is session %q, want the older one", l.ID)
	}
}
