// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// bucket lets messages in at a rate. A batch larger than the burst is let in by a
// full bucket, which then owes the rest: otherwise it never would be.
type bucket struct {
	tokens float64 // below zero is owed
	at     time.Time
	rate   Rate
	wanted float64 // by the batch that is being judged
}

func newBucket(now time.Time, r Rate) *bucket { return &bucket{tokens: r.Burst(), at: now, rate: r} }

// refill adds what has come in since the last time. Time that goes back brings
// nothing.
func (b *bucket) refill(now time.Time) {
	if past := now.Sub(b.at); past > 0 {
		b.tokens = min(b.tokens+past.Seconds()*b.rate.PerSecond(), b.rate.Burst())
		b.at = now
	}
}

// waitTime returns how long it takes until what is wanted can be given; zero if it
// can be now.
func (b *bucket) waitTime() time.Duration {
	missing := min(b.wanted, b.rate.Burst()) - b.tokens
	if missing <= 1e-9 {
		return 0
	}
	// Rounded up, so that who comes back then is let in.
	return time.Duration(missing/b.rate.PerSecond()*float64(time.Second)) + time.Microsecond
}

// full reports whether the bucket is as good as a new one.
func (b *bucket) full(now time.Time) bool {
	b.refill(now)
	return b.tokens >= b.rate.Burst()
}
