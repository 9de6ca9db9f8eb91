// SPDX-License-Identifier: Apache-2.0

package objective

import "time"

// The two windows in which an objective is watched. They are in snapshots.
const (
	shortSlots = 5
	longSlots  = 60

	leastSlot = time.Minute    // so that the windows are five minutes and an hour
	mostSlot  = 24 * time.Hour // five days and two months: longer is no news
)

// slotFor returns the length of a slot for an objective. The short window spans
// at least five times the wait that is promised, because in less a single stop
// of that length would look like a broken promise.
func slotFor(wait time.Duration) time.Duration {
	return min(max(leastSlot, wait), mostSlot)
}

// window counts messages that kept the promise and that broke it, by slots of
// time: the last five are the short window, the last sixty the long one.
type window struct {
	slots [longSlots]slot
	at    int   // slot that counts now
	ends  int64 // when it ends, in nanoseconds; zero is not begun
	long  slot  // sum of all slots
}

type slot struct{ good, bad uint32 }

// advance drops the slots that have become too old.
func (w *window) advance(now int64, length time.Duration) {
	if now < w.ends {
		return
	}
	if w.ends == 0 || now-w.ends >= int64(length)*longSlots {
		w.slots, w.long = [longSlots]slot{}, slot{}
		w.ends = now + int64(length)
		return
	}
	for now >= w.ends {
		w.at = (w.at + 1) % longSlots
		old := &w.slots[w.at]
		w.long.good -= old.good
		w.long.bad -= old.bad
		*old = slot{}
		w.ends += int64(length)
	}
}

func (w *window) good() { w.slots[w.at].good++; w.long.good++ }
func (w *window) bad()  { w.slots[w.at].bad++; w.long.bad++ }

// short returns the sum of the last slots.
func (w *window) short() (s slot) {
	for i := range shortSlots {
		c := w.slots[(w.at+longSlots-i)%longSlots]
		s.good += c.good
		s.bad += c.bad
	}
	return s
}

// broken returns the share of messages that broke the promise, if overdue more
// have broken it already without having started.
func (s slot) broken(overdue float64) float64 {
	all := float64(s.good) + float64(s.bad) + overdue
	if all == 0 {
		return 0
	}
	return (float64(s.bad) + overdue) / all
}
