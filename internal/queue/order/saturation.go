// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math/bits"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// saturatingStrict is strict, and weighted while the queue is saturated:
//
//	          ready >= Waiting  or  age of the oldest >= Oldest
//	strict  ---------------------------------------------------->  weighted
//	        <----------------------------------------------------
//	          ready <= Waiting/2  and  age <= Oldest/2
//
// The lower limit of the way back (hysteresis) prevents a change with each message. The
// mode is evaluated before each choice. It is not logged: a queue that was restarted or
// reconfigured starts as strict.
type saturatingStrict struct {
	strict
	limit  ordering.Saturation
	weight []uint32
	shares *winnerTree // while saturated, else nil; all virtual times start at zero each time
}

func (s *saturatingStrict) aged() bool { return s.limit.Oldest > 0 }

func (s *saturatingStrict) headChanged(l ordering.Level) {
	if s.shares != nil {
		s.shares.headChanged(l)
	}
}

func (s *saturatingStrict) joined(l ordering.Level, k entries.OrderKey) {
	if s.shares != nil {
		s.shares.joined(l, k)
	}
}

func (s *saturatingStrict) served(x *Index, l ordering.Level) {
	if s.shares != nil {
		s.shares.served(x, l)
	}
}

func (s *saturatingStrict) score(l ordering.Level, k entries.OrderKey, now int64) (score, int64) {
	if s.shares != nil {
		return s.shares.score(l, k, now)
	}
	return s.strict.score(l, k, now)
}

func (s *saturatingStrict) pick(x *Index, now int64, lo, hi ordering.Level) (ordering.Level, bool) {
	s.updateMode(x, now)
	if s.shares != nil {
		return s.shares.pick(x, now, lo, hi)
	}
	return s.strict.pick(x, now, lo, hi)
}

// updateMode enters or leaves the weighted mode.
func (s *saturatingStrict) updateMode(x *Index, now int64) {
	switch on := s.saturated(x, now); {
	case on && s.shares == nil:
		s.shares = newWinnerTree(newWeighted(s.weight))
		s.shares.dirty = x.levels.open
	case !on:
		s.shares = nil
	}
}

// saturated evaluates the limits without changing the mode.
func (s *saturatingStrict) saturated(x *Index, now int64) bool {
	if s.reached(x.Ready, s.limit.Waiting) {
		return true
	}
	if s.limit.Oldest <= 0 {
		return false
	}
	at, ok := s.oldest(x)
	return ok && s.reached(now-at, int64(s.limit.Oldest))
}

// reached reports whether n is at a limit or, while saturated, above half of it. Zero is
// no limit.
func (s *saturatingStrict) reached(n, limit int64) bool {
	if s.shares != nil {
		return limit > 0 && n > limit/2
	}
	return limit > 0 && n >= limit
}

// oldest returns the order time of the oldest message that may be delivered.
func (s *saturatingStrict) oldest(x *Index) (at int64, ok bool) {
	for w, word := range x.levels.open {
		for ; word != 0; word &= word - 1 {
			k, found := x.levels.all[w<<6+bits.TrailingZeros64(word)].rankKey(x)
			if found && (!ok || k.At < at) {
				at, ok = k.At, true
			}
		}
	}
	return at, ok
}

// Saturated reports whether the next message is chosen by shares because the queue
// is saturated.
func (x *Index) Saturated(at int64) bool {
	s, ok := x.levels.picker.(*saturatingStrict)
	return ok && s.saturated(x, at)
}

// UpdateMode decides whether the queue is saturated, and returns it. Callers that only
// inspect the order use it before they read.
func (x *Index) UpdateMode(at int64) bool {
	s, ok := x.levels.picker.(*saturatingStrict)
	if ok {
		s.updateMode(x, at)
	}
	return ok && s.shares != nil
}

// sharing returns the shares of the levels if they choose the next message, else nil.
func (x *Index) sharing() *weighted {
	by := x.levels.picker
	if s, ok := by.(*saturatingStrict); ok && s.shares != nil {
		by = s.shares
	}
	if r, ok := by.(*winnerTree); ok {
		w, _ := r.ranking.(*weighted)
		return w
	}
	return nil
}
