// SPDX-License-Identifier: Apache-2.0

package client

import (
	"testing"
	"time"
)

// A prefetched message is given back before its lock ends, whatever the clocks say.
func TestPrefetchedMessagesAreGivenBackInTime(t *testing.T) {
	const lock = 30 * time.Second
	now := time.Now()
	for _, c := range []struct {
		ahead, held time.Duration // of the broker's clock
		want        int
	}{
		{0, 19 * time.Second, 0},
		{0, 21 * time.Second, 1},
		{time.Hour, 19 * time.Second, 0},
		{time.Hour, 21 * time.Second, 1},
	} {
		fetched := now.Add(-c.held)
		m := &Received{LockedUntil: fetched.Add(lock + c.ahead)}
		a := &prefetcher{prefetched: []prefetchedMessage{{m, 4, fetched}}}
		if got := len(a.stale(now)); got != c.want {
			t.Errorf("with a clock that is %v ahead %d are stale after %v, want %d", c.ahead, got, c.held, c.want)
		}
	}
}
