// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math/bits"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// saturatingStrict is strict, and gives the levels shares while the queue is saturated.
// Whether it is follows from what waits, the time, and whether it was when the last
// message was chosen; a queue that was restarted, or configured anew, was not.
type saturatingStrict struct {
	strict
	limit  ordering.Saturation
	weight []uint32
	shares *winnerTree // while on, else nil: it begins anew each time, with nobody ahead
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

// updateMode goes over to the other mode if it is time.
func (s *saturatingStrict) updateMode(x *Index, now int64) {
	switch on := s.saturated(x, now); {
	case on && s.shares == nil:
		s.shares = newWinnerTree(newWeighted(s.weight))
		s.shares.dirty = x.levels.open
	case !on:
		s.shares = nil
	}
}

// saturated is the rule. It changes nothing.
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

// reached reports whether something is at a limit or, once it was, above half of
// it. Zero is no limit.
func (s *saturatingStrict) reached(n, limit int64) bool {
	if s.shares != nil {
		return limit > 0 && n > limit/2
	}
	return limit > 0 && n >= limit
}

// oldest returns the enqueue time of the oldest message that may be handed out.
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

// UpdateMode makes up its mind about the next message, for who looks at the order
// without taking anything. It reports whether the queue is saturated.
func (x *Index) UpdateMode(at int64) bool {
	s, ok := x.levels.picker.(*saturatingStrict)
	if ok {
		s.updateMode(x, at)
	}
	return ok && s.shares != nil
}

// sharing returns the shares of the levels if it is by them that the next message
// is chosen, else nil.
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
