// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
)

// level has the ready messages of a session in one level. A free session is listed once
// in each level in which it has ready messages, ordered by its oldest message there. The
// first listing that is picked locks the session and removes the others. For a session
// with messages 4 and 6 in level 2 and message 5 in level 7:
//
//	           listed in level 2   in level 7   delivered
//	free       by 4                by 5
//	locked     -                   -            4, 5: picked in level 7, served in order
//	free again by 6                -
//
// All listings are removed because a session has one receiver: a second listing would
// offer it to another one.
type level struct {
	entries.SortedList
	level     ordering.Level
	listedSeq entries.SeqNo // the first of them, if that is in the levels; zero is none
}

// levelAt returns the messages of a session in level l. It adds the level if needed.
func (s *Session) levelAt(x *order.Index, l ordering.Level) *level {
	if o := s.levelOf(l); o != nil {
		return o
	}
	before := s.spareLevels()
	s.levels = append(s.levels, level{level: l})
	x.SessionLevels += s.spareLevels() - before
	return &s.levels[len(s.levels)-1]
}

// dropLevels removes the levels without messages. A session that has used many does not keep
// their memory.
func (s *Session) dropLevels(x *order.Index) {
	before := s.spareLevels()
	s.levels = slices.DeleteFunc(s.levels, func(o level) bool { return o.Len() == 0 })
	switch n := len(s.levels); {
	case n == 0 && cap(s.levels) > 1:
		s.levels = nil
	case cap(s.levels) > 4 && n < cap(s.levels)/4:
		s.levels = append(make([]level, 0, 2*n), s.levels...)
	}
	x.SessionLevels += s.spareLevels() - before
}

// spareLevels is for how many levels beyond the first the session has memory.
func (s *Session) spareLevels() int64 { return int64(max(0, cap(s.levels)-1)) }

// levelOf returns the messages of a session in level l, nil if it has none.
func (s *Session) levelOf(l ordering.Level) *level {
	for i := range s.levels { // few: one for each level that the session uses
		if s.levels[i].level == l {
			return &s.levels[i]
		}
	}
	return nil
}

// Uses reports whether a session has ready messages in a level, or in none.
func (s *Session) Uses(l ordering.Level) bool { return len(s.levels) == 0 || s.levelOf(l) != nil }

// ListedBy reports whether a session is listed in level l by its message seq.
func (s *Session) ListedBy(seq entries.SeqNo, l ordering.Level) bool {
	o := s.levelOf(l)
	return o != nil && o.listedSeq == seq
}

// AddReady adds a ready message to the lists of its session.
func (s *Session) AddReady(x *order.Index, seq entries.SeqNo, e *entries.Entry) {
	s.aside.Discard(seq)
	s.ready.Put(&x.Entries, seq)
	o := s.levelAt(x, e.Level)
	o.Add(&x.Entries, e.Key(), e)
	if s.free() {
		o.listSession(x)
	}
}

// RemoveReady removes a message from the lists of its session.
func (s *Session) RemoveReady(x *order.Index, seq entries.SeqNo, e *entries.Entry) {
	s.ready.Remove(entries.OrderKey{Seq: seq})
	s.removeFromLevel(x, seq, e)
}

// removeFromLevel removes a message, which is not ready any more, from those that rank
// its session.
func (s *Session) removeFromLevel(x *order.Index, seq entries.SeqNo, e *entries.Entry) {
	o := s.levelOf(e.Level)
	if o.listedSeq == seq {
		o.unlistSession(x)
	}
	o.Remove(&x.Entries, e.Key(), e)
	switch {
	case o.Len() == 0:
		s.dropLevels(x)
	case s.free():
		o.listSession(x)
	}
}

// listSession lists a free session in one level by its oldest message there.
func (o *level) listSession(x *order.Index) {
	k, _ := o.First(&x.Entries)
	if k.Seq == o.listedSeq {
		return
	}
	if o.listedSeq != 0 {
		o.unlistSession(x)
	}
	o.listedSeq = k.Seq
	e := x.Entries.Get(k.Seq)
	x.Add(k, e)
}

// unlistSession removes a session from one level.
func (o *level) unlistSession(x *order.Index) {
	seq := o.listedSeq
	o.listedSeq = 0
	e := x.Entries.Get(seq)
	x.Remove(e.Key(), e)
}

// free reports whether a receiver may get the session: nobody has it, and none of its
// messages waits for a retry.
func (s *Session) free() bool { return s.Lock == 0 && s.retries == 0 }

// Retries reports whether the session waits for the retry of one of its messages.
func (s *Session) Retries() bool { return s.retries > 0 }

// BeginRetry makes the session wait for the retry of one of its messages, which is aside:
// those behind it must not be delivered before it.
func (s *Session) BeginRetry(x *order.Index) {
	if s.free() {
		s.Unlist(x)
	}
	s.retries++
}

// EndRetry ends what BeginRetry began.
func (s *Session) EndRetry(x *order.Index) {
	s.retries--
	s.List(x)
}

// List lists a session in its levels if it is free.
func (s *Session) List(x *order.Index) {
	if !s.free() {
		return
	}
	for i := range s.levels {
		s.levels[i].listSession(x)
	}
}

// Unlist removes a session that is being locked from all levels.
func (s *Session) Unlist(x *order.Index) {
	for i := range s.levels {
		if s.levels[i].listedSeq != 0 {
			s.levels[i].unlistSession(x)
		}
	}
}

// SetAside adds a message that is not ready.
func (s *Session) SetAside(x *order.Index, seq entries.SeqNo) { s.aside.Put(&x.Entries, seq) }

// Discard removes a message that is not ready, if it is there.
func (s *Session) Discard(seq entries.SeqNo) { s.aside.Discard(seq) }

// Take removes the first message, which is delivered.
func (s *Session) Take(x *order.Index, seq entries.SeqNo, e *entries.Entry) {
	s.ready.PopFirst()
	s.removeFromLevel(x, seq, e)
}

// HasReady reports whether there is a message to deliver.
func (s *Session) HasReady() bool { return s.ready.Len() > 0 && s.retries == 0 }

// Next returns the message to deliver next.
func (s *Session) Next() (seq entries.SeqNo, ok bool) {
	if !s.HasReady() {
		return 0, false
	}
	return s.ready.First(), true
}

// MessageFrom returns the first message, in any state, whose sequence number is not below
// seq.
func (s *Session) MessageFrom(seq entries.SeqNo) (entries.SeqNo, bool) {
	ready, isReady := s.ready.After(seq - 1)
	aside, isAside := s.aside.After(seq - 1)
	if isReady && (!isAside || ready < aside) {
		return ready, true
	}
	return aside, isAside
}
