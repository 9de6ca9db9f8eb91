// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Depth is a number of waiting messages and their bytes.
type Depth struct{ Count, Bytes int64 }

// Depths tells what waits in the queue.
type Depths interface {
	// Total is everything that waits.
	Total() Depth
	// OfClass is what waits of a class; zero is the messages in none.
	OfClass(class uint8) Depth
	// AtLeast is what waits at a level or above it.
	AtLeast(level uint8) Depth
}

// Ask is one message that wants in.
type Ask struct {
	Verdict
	Bytes int64
}

// Decision is the answer for a batch. Without a refusal the batch is let in,
// after the evictions, if there are any.
type Decision struct {
	Refusal *Refusal
	Evict   []Eviction
}

// OK reports whether the batch is let in.
func (d Decision) OK() bool { return d.Refusal == nil }

// Refusal says who was turned away, why and for how long.
type Refusal struct {
	Class      string // empty for messages in no class
	Key        string // if the rate of a fair key was the reason
	Reason     string
	RetryAfter time.Duration
}

// Eviction is what must go to make room: the oldest waiting messages of a class,
// until at least Count of them and at least Bytes are gone.
type Eviction struct {
	Class uint8
	Depth
}
