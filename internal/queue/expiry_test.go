// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"testing"
	"time"
)

// A message that is never received expires first. What passes it and expires later must
// leave nothing in the heap beneath it (A16).
func TestExpiryHeapBeneathAStarvedMessage(t *testing.T) {
	q := New(Config{LockFor: time.Minute}, 1)
	var out Effects
	now := epochStart
	send(t, q, now, Arrival{Level: 0, TTL: time.Hour}, 1)
	for range 100_000 {
		now = now.Add(time.Millisecond)
		send(t, q, now, Arrival{Level: 1, TTL: 2 * time.Hour}, 1)
		serve(t, q, now)
		q.NextDeadline()
	}
	if u := q.core.Index.Entries.Usage(); u.Expiries > u.Pages {
		t.Errorf("%d expiries for %d pages", u.Expiries, u.Pages)
	}
	// The same for one page whose first expiry comes nearer again and again.
	for i := range 10_000 {
		send(t, q, now, Arrival{Level: 1, TTL: 2*time.Hour - time.Duration(i)*time.Second/2}, 1)
	}
	if u := q.core.Index.Entries.Usage(); u.Expiries > u.Pages {
		t.Errorf("%d expiries for %d pages", u.Expiries, u.Pages)
	}
	for later := now.Add(2 * time.Hour); q.Tick(later, &out); {
	}
	if q.Counts() != (Counts{}) || q.core.Index.Entries.Usage().Expiries != 0 {
		t.Errorf("left %+v and %d expiries, want nothing", q.Counts(), q.core.Index.Entries.Usage().Expiries)
	}
}
