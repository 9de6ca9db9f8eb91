// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// offer is the ready messages of a session in one level. A free session stands
// in every level in which it has messages, by the oldest of them, and is locked
// by whichever is picked first. So the discipline that ranks messages ranks
// sessions, and a high message lifts what is before it in its session.
type sessionLevel struct {
	sortedList
	level     Level
	listedSeq SeqNo // the first of them, if that is in the levels; zero is none
}

// offerAt returns the messages of a session in level l, which it makes if needed.
func (s *session) levelAt(l Level) *sessionLevel {
	if o := s.levelOf(l); o != nil {
		return o
	}
	s.levels = append(s.levels, sessionLevel{level: l})
	return &s.levels[len(s.levels)-1]
}

// offerOf returns the messages of a session in level l, nil if it has none.
func (s *session) levelOf(l Level) *sessionLevel {
	for i := range s.levels { // few: one for each level that the session uses
		if s.levels[i].level == l {
			return &s.levels[i]
		}
	}
	return nil
}

// shows reports whether the levels know a session by its message seq of level l.
func (s *session) listedBy(seq SeqNo, l Level) bool {
	o := s.levelOf(l)
	return o != nil && o.listedSeq == seq
}

// queueUp puts a ready message into the lines of its session.
func (s *session) addToSession(x *Index, seq SeqNo, e *entry) {
	s.aside.discard(seq)
	s.ready.put(&x.msgs, seq)
	o := s.levelAt(e.level)
	o.add(&x.msgs, orderKey{e.orderTime, seq}, e)
	if s.lock == 0 {
		o.listSession(x)
	}
}

// dropOut says that a message is no longer in the lines of its session.
func (s *session) removeFromSession(x *Index, seq SeqNo, e *entry) {
	s.ready.remove(orderKey{0, seq})
	s.removeFromLevel(x, seq, e)
}

// unoffer says that a message, which is not ready any more, ranks its session no
// longer.
func (s *session) removeFromLevel(x *Index, seq SeqNo, e *entry) {
	o := s.levelOf(e.level)
	if o.listedSeq == seq {
		o.unlistSession(x)
	}
	o.remove(&x.msgs, orderKey{e.orderTime, seq}, e)
	switch {
	case o.list.n == 0:
		s.levels = slices.DeleteFunc(s.levels, func(o sessionLevel) bool { return o.list.n == 0 })
	case s.lock == 0:
		o.listSession(x)
	}
}

// show keeps the levels up to date about a free session in one of them.
func (o *sessionLevel) listSession(x *Index) {
	k, _ := o.first(&x.msgs)
	if k.seq == o.listedSeq {
		return
	}
	if o.listedSeq != 0 {
		o.unlistSession(x)
	}
	o.listedSeq = k.seq
	e := x.msgs.get(k.seq)
	x.add(k, e)
}

// hide takes a session out of one level.
func (o *sessionLevel) unlistSession(x *Index) {
	seq := o.listedSeq
	o.listedSeq = 0
	e := x.msgs.get(seq)
	x.remove(orderKey{e.orderTime, seq}, e)
}

// showAll puts a session that became free into its levels.
func (s *session) list(x *Index) {
	for i := range s.levels {
		s.levels[i].listSession(x)
	}
}

// hideAll takes a session that is being locked out of all levels.
func (s *session) unlist(x *Index) {
	for i := range s.levels {
		if s.levels[i].listedSeq != 0 {
			s.levels[i].unlistSession(x)
		}
	}
}
