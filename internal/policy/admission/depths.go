// SPDX-License-Identifier: Apache-2.0

package admission

import "github.com/triagemq/triagemq/internal/policy"

// Depths are the counts of ready messages that an Admitter needs.
type Depths interface {
	// Total counts all ready messages.
	Total() policy.Depth
	// OfClass counts those of a class; zero is the messages in none.
	OfClass(class uint8) policy.Depth
	// AtLeast counts those at a level or above it.
	AtLeast(level uint8) policy.Depth
	// Leaving is how many messages leave the queue per second; zero is not known.
	Leaving() float64
}

// tally counts ready messages, as Depths. The zero value is an empty queue.
type tally struct {
	Rate float64 // what Leaving returns

	total   policy.Depth
	classes [256]policy.Depth
	levels  [256]policy.Depth
}

// Add counts a message that becomes ready.
func (t *tally) Add(class, level uint8, bytes int64) {
	t.change(class, level, policy.Depth{Count: 1, Bytes: bytes})
}

// Remove counts a message that is not ready any more.
func (t *tally) Remove(class, level uint8, bytes int64) {
	t.change(class, level, policy.Depth{Count: -1, Bytes: -bytes})
}

func (t *tally) change(class, level uint8, by policy.Depth) {
	t.total = t.total.Plus(by)
	t.classes[class] = t.classes[class].Plus(by)
	t.levels[level] = t.levels[level].Plus(by)
}

// Total returns the count of all.
func (t *tally) Total() policy.Depth { return t.total }

// OfClass returns the count of a class.
func (t *tally) OfClass(class uint8) policy.Depth { return t.classes[class] }

// AtLeast returns the count at a level or above it.
func (t *tally) AtLeast(level uint8) (d policy.Depth) {
	for _, l := range t.levels[level:] {
		d = d.Plus(l)
	}
	return d
}

// Leaving returns Rate.
func (t *tally) Leaving() float64 { return t.Rate }
