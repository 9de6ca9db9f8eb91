// SPDX-License-Identifier: Apache-2.0

package autoscale

import "time"

// Limits bound the number of slots.
type Limits struct {
	Floor, Ceiling int
	CoolDown       time.Duration // for how long fewer slots must do before there are fewer
}

// Sample is what is known at one time.
type Sample struct {
	// Measured says that the broker has measured Demand and Waiting.
	Measured bool
	Demand   int // slots of this pool that are needed
	Waiting  int // messages that could be delivered
	Busy     int // slots that are in use
}

// Scaler is the number of slots of a pool, and what it follows from.
type Scaler struct {
	limits Limits
	slots  int
	full   bool // all slots were busy at the last sample

	// While fewer slots would do: since when, and the most that were needed since. A
	// change of slots ends this, so it began after the last change.
	low  bool
	from time.Time
	peak int
}

// New returns a scaler that begins with a number of slots, as far as the limits allow it.
func New(l Limits, slots int) *Scaler {
	return &Scaler{limits: l, slots: l.clamp(slots)}
}

// Slots returns the number of slots that was last decided.
func (s *Scaler) Slots() int { return s.slots }

func (l Limits) clamp(n int) int { return max(min(n, l.Ceiling), l.Floor) }

// Decide returns how many slots to have from now on.
func (s *Scaler) Decide(now time.Time, in Sample) int {
	want := s.limits.clamp(s.want(in))
	if want >= s.slots {
		s.slots, s.low = want, false
		return s.slots
	}
	if !s.low {
		s.low, s.from, s.peak = true, now, want
	}
	s.peak = max(s.peak, want)
	if now.Sub(s.from) >= s.limits.CoolDown {
		s.slots, s.low = s.peak, false
	}
	return s.slots
}

// want returns how many slots would do at the moment, the limits aside.
func (s *Scaler) want(in Sample) int {
	wasFull := s.full
	s.full = in.Busy >= s.slots
	switch {
	case in.Measured && in.Waiting == 0 && in.Busy == 0:
		return 0 // a demand is then an estimate of what may come
	case in.Measured:
		return in.Demand
	case s.full && wasFull:
		s.full = false // the new slots are judged by the samples after the next
		return max(s.slots, 1) + (s.slots+1)/2
	case s.full:
		return max(s.slots, 1)
	}
	return in.Busy + 1 // one that stays free shows that there is no more work
}
