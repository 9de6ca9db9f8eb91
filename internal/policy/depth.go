// SPDX-License-Identifier: Apache-2.0

package policy

// Depth is a number of ready messages and their bytes.
type Depth struct{ Count, Bytes int64 }

func (d Depth) plus(e Depth) Depth  { return Depth{d.Count + e.Count, d.Bytes + e.Bytes} }
func (d Depth) minus(e Depth) Depth { return Depth{d.Count - e.Count, d.Bytes - e.Bytes} }

// over returns by how much d exceeds the limits that are set.
func (d Depth) over(limit Depth) (excess Depth) {
	if limit.Count > 0 {
		excess.Count = max(d.Count-limit.Count, 0)
	}
	if limit.Bytes > 0 {
		excess.Bytes = max(d.Bytes-limit.Bytes, 0)
	}
	return excess
}

// atMost returns the smaller of each.
func (d Depth) atMost(e Depth) Depth { return Depth{min(d.Count, e.Count), min(d.Bytes, e.Bytes)} }

// covers reports whether d is at least e in both.
func (d Depth) covers(e Depth) bool { return d.Count >= e.Count && d.Bytes >= e.Bytes }

// Depths are the counts of ready messages that an Admitter needs.
type Depths interface {
	// Total counts all ready messages.
	Total() Depth
	// OfClass counts those of a class; zero is the messages in none.
	OfClass(class uint8) Depth
	// AtLeast counts those at a level or above it.
	AtLeast(level uint8) Depth
	// Leaving is how many messages leave the queue per second; zero is not known.
	Leaving() float64
}

// tally counts ready messages, as Depths. The zero value is an empty queue.
type tally struct {
	Rate float64 // what Leaving returns

	total   Depth
	classes [256]Depth
	levels  [256]Depth
}

// Add counts a message that becomes ready.
func (t *tally) Add(class, level uint8, bytes int64) { t.change(class, level, Depth{1, bytes}) }

// Remove counts a message that is not ready any more.
func (t *tally) Remove(class, level uint8, bytes int64) { t.change(class, level, Depth{-1, -bytes}) }

func (t *tally) change(class, level uint8, by Depth) {
	t.total = t.total.plus(by)
	t.classes[class] = t.classes[class].plus(by)
	t.levels[level] = t.levels[level].plus(by)
}

// Total returns the count of all.
func (t *tally) Total() Depth { return t.total }

// OfClass returns the count of a class.
func (t *tally) OfClass(class uint8) Depth { return t.classes[class] }

// AtLeast returns the count at a level or above it.
func (t *tally) AtLeast(level uint8) (d Depth) {
	for _, l := range t.levels[level:] {
		d = d.plus(l)
	}
	return d
}

// Leaving returns Rate.
func (t *tally) Leaving() float64 { return t.Rate }
