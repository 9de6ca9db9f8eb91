// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"
	"time"
)

// While a connection is gone nobody releases what was prefetched. Others then have the
// messages whose locks have expired.
func TestPrefetchedMessagesWithExpiredLocksAreNotReturned(t *testing.T) {
	now := time.Now()
	a := newPrefetcher(&Receiver{}, 0)
	for i, m := range []prefetchedMessage{
		{fetchedAt: now.Add(-time.Minute), Received: &Received{LockedUntil: now.Add(-time.Second)}},
		{fetchedAt: now.Add(-time.Minute), Received: &Received{LockedUntil: now.Add(time.Minute)}},
		{fetchedAt: now, Received: &Received{LockedUntil: now.Add(-time.Hour)}}, // the clocks differ
		{fetchedAt: now.Add(-time.Hour), Received: &Received{}},                 // the broker does not say
	} {
		m.SeqNo = SeqNo(i)
		a.prefetched = append(a.prefetched, m)
	}
	var got []SeqNo
	for _, m := range a.take(2) {
		got = append(got, m.SeqNo)
	}
	for _, m := range a.take(2) {
		got = append(got, m.SeqNo)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != 2 || got[2] != 3 {
		t.Errorf("got %v, want 1 2 3", got)
	}
}
