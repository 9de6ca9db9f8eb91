// SPDX-License-Identifier: Apache-2.0

package window

import (
	"slices"
	"time"
)

// Lengths in seconds of a wall clock.
const (
	minute = 60
	day    = 24 * 60 * minute
	week   = 7 * day
)

// horizon is how far ahead [Set.Next] looks. Windows repeat every week, and rules of
// daylight saving every year.
const horizon = 400 * 24 * time.Hour

// Set is a union of windows. It is a value that never changes. The zero value has
// none and is always open.
type Set struct {
	windows []window
}

// window is one window of a set.
type window struct {
	zone *time.Location
	// spans are in seconds since Sunday 00:00 of the zone's wall clock, sorted and apart.
	spans []span
}

// span is from its begin up to, and without, its end.
type span struct{ begin, end int64 }

// Open reports whether t is inside a window.
func (s Set) Open(t time.Time) bool {
	if len(s.windows) == 0 {
		return true
	}
	return slices.ContainsFunc(s.windows, func(w window) bool { return w.open(t) })
}

// Next returns the first moment after t at which Open differs from what it is at t. It
// is zero if there is none.
func (s Set) Next(t time.Time) time.Time {
	if len(s.windows) == 0 {
		return time.Time{}
	}
	open, end := s.Open(t), t.Add(horizon)
	for at := t; at.Before(end); {
		next := s.windows[0].next(at)
		for _, w := range s.windows[1:] {
			if n := w.next(at); n.Before(next) {
				next = n
			}
		}
		if s.Open(next) != open {
			return next.In(t.Location())
		}
		at = next
	}
	return time.Time{}
}

func (w window) open(t time.Time) bool {
	s := weekSecond(t.In(w.zone))
	return slices.ContainsFunc(w.spans, func(p span) bool { return p.begin <= s && s < p.end })
}

// next returns a moment after t, before which the window does not change.
func (w window) next(t time.Time) time.Time {
	t = t.In(w.zone)
	s := weekSecond(t)
	wait := week - s
	for _, p := range w.spans {
		for _, edge := range []int64{p.begin, p.end} {
			if edge > s {
				wait = min(wait, edge-s)
			}
		}
	}
	at := time.Unix(t.Unix()+wait, 0)
	// Up to the next change of the zone's offset, its wall clock runs evenly.
	if _, change := t.ZoneBounds(); !change.IsZero() && change.Before(at) {
		return change
	}
	return at
}

// weekSecond returns the seconds since Sunday 00:00 that the wall clock shows at t.
func weekSecond(t time.Time) int64 {
	_, offset := t.Zone()
	const epoch = int64(time.Thursday) * day // the weekday of 1970-01-01
	s := (t.Unix() + int64(offset) + epoch) % week
	if s < 0 {
		s += week
	}
	return s
}

// spans returns the spans of a week for windows that begin on the given days.
func spans(days [7]bool, begin, end int64) []span {
	if end <= begin {
		end += day
	}
	var out []span
	for d, on := range days {
		if !on {
			continue
		}
		from, to := int64(d)*day+begin, int64(d)*day+end
		if to > week { // Saturday's end is on Sunday
			out = append(out, span{0, to - week})
			to = week
		}
		out = append(out, span{from, to})
	}
	return merge(out)
}

// merge joins spans that touch or overlap.
func merge(in []span) []span {
	slices.SortFunc(in, func(a, b span) int { return int(a.begin - b.begin) })
	var out []span
	for _, p := range in {
		if n := len(out); n > 0 && p.begin <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, p.end)
			continue
		}
		out = append(out, p)
	}
	return out
}
