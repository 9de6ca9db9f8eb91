// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"testing"
	"time"
)

// The fast path of Nanos must give what the clamping path gives, at the edges too.
func TestNanosAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want int64
	}{
		{time.Time{}, 0},
		{time.Unix(-1, 0), firstNanos},
		{time.Unix(0, 0), firstNanos},
		{time.Unix(0, 1), 1},
		{time.Unix(0, 999_999_999), 999_999_999},
		{time.Unix(1, 0), 1_000_000_000},
		{time.Unix(1_700_000_000, 123).UTC(), 1_700_000_000_000_000_123},
		{time.Unix(lastSecond, 999_999_999), lastSecond*1_000_000_000 + 999_999_999},
		{time.Unix(lastSecond+1, 0), (lastSecond + 1) * 1_000_000_000},
		{time.Unix(0, lastNanos), lastNanos},
		{time.Unix(0, Never), lastNanos},
		{time.Unix(1<<40, 0), lastNanos},
	} {
		if got := Nanos(c.at); got != c.want {
			t.Errorf("Nanos(%v) = %d, want %d", c.at, got, c.want)
		}
		if fast, slow := Nanos(c.at), clampedNanos(c.at); fast != slow {
			t.Errorf("Nanos(%v) = %d, clamped %d", c.at, fast, slow)
		}
	}
}
