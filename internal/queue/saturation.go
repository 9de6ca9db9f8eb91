// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math/bits"
	"time"
)

// saturable is strict, and gives the levels shares while the queue is saturated.
// Whether it is follows from what waits, the time, and whether it was when the last
// message was chosen; a queue that was restarted, or configured anew, was not.
type saturable struct {
	strict
	limit  Saturation
	weight []uint32
	shares *ranked // while on, else nil: it begins anew each time, with nobody ahead
}

func (s *saturable) aged() bool { return s.limit.Oldest > 0 }

func (s *saturable) touch(l Level) {
	if s.shares != nil {
		s.shares.touch(l)
	}
}

func (s *saturable) joined(l Level, k orderKey) {
	if s.shares != nil {
		s.shares.joined(l, k)
	}
}

func (s *saturable) served(q *Queue, l Level) {
	if s.shares != nil {
		s.shares.served(q, l)
	}
}

func (s *saturable) score(l Level, k orderKey, now int64) (score, int64) {
	if s.shares != nil {
		return s.shares.score(l, k, now)
	}
	return s.strict.score(l, k, now)
}

func (s *saturable) pick(q *Queue, now int64, lo, hi Level) (Level, bool) {
	s.judge(q, now)
	if s.shares != nil {
		return s.shares.pick(q, now, lo, hi)
	}
	return s.strict.pick(q, now, lo, hi)
}

// judge goes over to the other mode if it is time.
func (s *saturable) judge(q *Queue, now int64) {
	switch on := s.saturated(q, now); {
	case on && s.shares == nil:
		s.shares = newRanked(newWeighted(s.weight))
		s.shares.dirty = q.levels.open
	case !on:
		s.shares = nil
	}
}

// saturated is the rule. It changes nothing.
func (s *saturable) saturated(q *Queue, now int64) bool {
	if s.reached(q.counts.Ready, s.limit.Waiting) {
		return true
	}
	if s.limit.Oldest <= 0 {
		return false
	}
	at, ok := s.oldest(q)
	return ok && s.reached(now-at, int64(s.limit.Oldest))
}

// reached reports whether something is at a limit or, once it was, above half of
// it. Zero is no limit.
func (s *saturable) reached(n, limit int64) bool {
	if s.shares != nil {
		return limit > 0 && n > limit/2
	}
	return limit > 0 && n >= limit
}

// oldest returns the enqueue time of the oldest message that may be handed out.
func (s *saturable) oldest(q *Queue) (at int64, ok bool) {
	for w, word := range q.levels.open {
		for ; word != 0; word &= word - 1 {
			k, found := q.levels.all[w<<6+bits.TrailingZeros64(word)].oldest(q)
			if found && (!ok || k.at < at) {
				at, ok = k.at, true
			}
		}
	}
	return at, ok
}

// Saturated reports whether the next message is chosen by shares because the queue
// is saturated.
func (q *Queue) Saturated(now time.Time) bool {
	s, ok := q.levels.picker.(*saturable)
	return ok && s.saturated(q, q.at(now))
}

// judge makes up its mind about the next message, for who looks at the order
// without taking anything. It reports whether the queue is saturated.
func (q *Queue) judge(at int64) bool {
	s, ok := q.levels.picker.(*saturable)
	if ok {
		s.judge(q, at)
	}
	return ok && s.shares != nil
}

// sharing returns the shares of the levels if it is by them that the next message
// is chosen, else nil.
func (q *Queue) sharing() *weighted {
	by := q.levels.picker
	if s, ok := by.(*saturable); ok && s.shares != nil {
		by = s.shares
	}
	if r, ok := by.(*ranked); ok {
		w, _ := r.ranking.(*weighted)
		return w
	}
	return nil
}
