// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"time"

	"github.com/triagemq/triagemq/internal/policy"
)

// bucket is a token bucket. A full bucket admits a batch that is larger than the burst
// and then has a negative number of tokens: otherwise such a batch could never be sent.
type bucket struct {
	tokens float64 // may be negative
	at     time.Time
	rate   policy.Rate
	wanted float64 // by the batch that is being checked
}

func newBucket(now time.Time, r policy.Rate) *bucket {
	return &bucket{tokens: r.Burst(), at: now, rate: r}
}

// refill adds the tokens since the last time. An earlier time than that adds none.
func (b *bucket) refill(now time.Time) {
	if past := now.Sub(b.at); past > 0 {
		b.tokens = min(b.tokens+past.Seconds()*b.rate.PerSecond(), b.rate.Burst())
		b.at = now
	}
}

// waitTime returns how long it takes until the wanted tokens are there; zero if they are.
func (b *bucket) waitTime() time.Duration {
	missing := min(b.wanted, b.rate.Burst()) - b.tokens
	if missing <= 1e-9 {
		return 0
	}
	// Rounded up, so that a retry after this time is admitted.
	return time.Duration(missing/b.rate.PerSecond()*float64(time.Second)) + time.Microsecond
}

// full reports whether the bucket is in the state of a new one.
func (b *bucket) full(now time.Time) bool {
	b.refill(now)
	return b.tokens >= b.rate.Burst()
}
