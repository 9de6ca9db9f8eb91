// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

const (
	// slew is the part of the time that passes by which a Steady is corrected: a
	// tenth. Locks and rates are off by as much, which is acceptable.
	slew = 10
	// confirm is how long the wall clock has to be ahead before it is taken over.
	confirm = 10 * time.Second
	// farthest is how far ahead of the wall clock a Steady begins at most.
	farthest = 24 * time.Hour
)

// Reading is what the clocks of a machine show at one moment.
type Reading struct {
	Wall    time.Time     // the time of day; it may be set, forward and back
	Elapsed time.Duration // since some moment; it never goes back
}

// Steady is the time made of a sequence of readings. It never goes back.
type Steady struct {
	now     int64         // nanoseconds since 1970
	elapsed time.Duration // of the last reading
	off     time.Duration // what the wall clock was ahead at the last reading
	ahead   bool          // it was ahead, by more than slewing could correct
	since   time.Duration // elapsed when that began
	stepped time.Duration // sum of all steps to the wall clock
	refused time.Duration // how far ahead what AtLeast did not follow was, at most
}

// newSteady begins with the time of the wall clock.
func newSteady(r Reading) *Steady {
	return &Steady{now: r.Wall.UnixNano(), elapsed: r.Elapsed}
}

// At returns the time at a reading. Readings must be in order; one that is
// older than the last counts as the same moment.
func (s *Steady) At(r Reading) time.Time {
	passed := max(r.Elapsed-s.elapsed, 0)
	s.elapsed += passed
	s.now += int64(passed)

	// Both clocks were read in the same moment, so this is how far off we are.
	off := time.Duration(r.Wall.UnixNano() - s.now)
	most := passed / slew
	by := min(max(off, -most), most)
	s.now += int64(by)
	s.off = off - by
	if s.ahead || s.off > 0 {
		s.follow()
	}
	return time.Unix(0, s.now)
}

// follow steps to the wall clock once that has been ahead for long enough.
func (s *Steady) follow() {
	switch {
	case s.off <= 0:
		s.ahead = false
	case !s.ahead:
		s.ahead, s.since = true, s.elapsed
	case s.elapsed-s.since >= confirm:
		s.now += int64(s.off)
		s.stepped += s.off
		s.off, s.ahead = 0, false
	}
}

// AtLeast makes the time be t or later from now on, unless t is more than a day
// ahead of the wall clock. It reports whether it is.
func (s *Steady) AtLeast(t time.Time) bool {
	late := t.Sub(time.Unix(0, s.now)) // saturates, should t be out of all bounds
	switch {
	case late <= 0:
		return true
	case late > farthest+s.off:
		s.refused = max(s.refused, late-s.off)
		return false
	}
	s.now += int64(late)
	s.off -= late
	return true
}
