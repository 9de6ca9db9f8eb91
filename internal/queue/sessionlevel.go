// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
)

// sessionLevel is the ready messages of a session in one level. A free session stands
// in every level in which it has messages, by the oldest of them, and is locked
// by whichever is picked first. So the discipline that ranks messages ranks
// sessions, and a high message lifts what is before it in its session.
type sessionLevel struct {
	entries.SortedList
	level     Level
	listedSeq SeqNo // the first of them, if that is in the levels; zero is none
}

// levelAt returns the messages of a session in level l, which it makes if needed.
func (s *session) levelAt(l Level) *sessionLevel {
	if o := s.levelOf(l); o != nil {
		return o
	}
	s.levels = append(s.levels, sessionLevel{level: l})
	return &s.levels[len(s.levels)-1]
}

// levelOf returns the messages of a session in level l, nil if it has none.
func (s *session) levelOf(l Level) *sessionLevel {
	for i := range s.levels { // few: one for each level that the session uses
		if s.levels[i].level == l {
			return &s.levels[i]
		}
	}
	return nil
}

// listedBy reports whether the levels know a session by its message seq of level l.
func (s *session) listedBy(seq SeqNo, l Level) bool {
	o := s.levelOf(l)
	return o != nil && o.listedSeq == seq
}

// addToSession puts a ready message into the lines of its session.
func (s *session) addToSession(x *order.Index, seq SeqNo, e *entries.Entry) {
	s.aside.Discard(seq)
	s.ready.Put(&x.Entries, seq)
	o := s.levelAt(e.Level)
	o.Add(&x.Entries, e.Key(), e)
	if s.lock == 0 {
		o.listSession(x)
	}
}

// removeFromSession says that a message is no longer in the lines of its session.
func (s *session) removeFromSession(x *order.Index, seq SeqNo, e *entries.Entry) {
	s.ready.Remove(entries.OrderKey{Seq: seq})
	s.removeFromLevel(x, seq, e)
}

// removeFromLevel says that a message, which is not ready any more, ranks its session no
// longer.
func (s *session) removeFromLevel(x *order.Index, seq SeqNo, e *entries.Entry) {
	o := s.levelOf(e.Level)
	if o.listedSeq == seq {
		o.unlistSession(x)
	}
	o.Remove(&x.Entries, e.Key(), e)
	switch {
	case o.Len() == 0:
		s.levels = slices.DeleteFunc(s.levels, func(o sessionLevel) bool { return o.Len() == 0 })
	case s.lock == 0:
		o.listSession(x)
	}
}

// listSession keeps the levels up to date about a free session in one of them.
func (o *sessionLevel) listSession(x *order.Index) {
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

// unlistSession takes a session out of one level.
func (o *sessionLevel) unlistSession(x *order.Index) {
	seq := o.listedSeq
	o.listedSeq = 0
	e := x.Entries.Get(seq)
	x.Remove(e.Key(), e)
}

// list puts a session that became free into its levels.
func (s *session) list(x *order.Index) {
	for i := range s.levels {
		s.levels[i].listSession(x)
	}
}

// unlist takes a session that is being locked out of all levels.
func (s *session) unlist(x *order.Index) {
	for i := range s.levels {
		if s.levels[i].listedSeq != 0 {
			s.levels[i].unlistSession(x)
		}
	}
}
