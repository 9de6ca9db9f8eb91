// SPDX-License-Identifier: Apache-2.0

package queue

import "slices"

// offer is the ready messages of a session in one level. A free session stands
// in every level in which it has messages, by the oldest of them, and is locked
// by whichever is picked first. So the discipline that ranks messages ranks
// sessions, and a high message lifts what is before it in its session.
type offer struct {
	sortedList
	level Level
	shown SeqNo // the first of them, if that is in the levels; zero is none
}

// offerAt returns the messages of a session in level l, which it makes if needed.
func (s *session) offerAt(l Level) *offer {
	if o := s.offerOf(l); o != nil {
		return o
	}
	s.offers = append(s.offers, offer{level: l})
	return &s.offers[len(s.offers)-1]
}

// offerOf returns the messages of a session in level l, nil if it has none.
func (s *session) offerOf(l Level) *offer {
	for i := range s.offers { // few: one for each level that the session uses
		if s.offers[i].level == l {
			return &s.offers[i]
		}
	}
	return nil
}

// shows reports whether the levels know a session by its message seq of level l.
func (s *session) shows(seq SeqNo, l Level) bool {
	o := s.offerOf(l)
	return o != nil && o.shown == seq
}

// queueUp puts a ready message into the lines of its session.
func (s *session) queueUp(x *Index, seq SeqNo, e *entry) {
	s.aside.discard(seq)
	s.line.put(&x.msgs, seq)
	o := s.offerAt(e.level)
	o.add(&x.msgs, orderKey{e.enqueued, seq}, e)
	if s.lock == 0 {
		o.show(x)
	}
}

// dropOut says that a message is no longer in the lines of its session.
func (s *session) dropOut(x *Index, seq SeqNo, e *entry) {
	s.line.remove(orderKey{0, seq})
	s.unoffer(x, seq, e)
}

// unoffer says that a message, which is not ready any more, ranks its session no
// longer.
func (s *session) unoffer(x *Index, seq SeqNo, e *entry) {
	o := s.offerOf(e.level)
	if o.shown == seq {
		o.hide(x)
	}
	o.remove(&x.msgs, orderKey{e.enqueued, seq}, e)
	switch {
	case o.list.n == 0:
		s.offers = slices.DeleteFunc(s.offers, func(o offer) bool { return o.list.n == 0 })
	case s.lock == 0:
		o.show(x)
	}
}

// show keeps the levels up to date about a free session in one of them.
func (o *offer) show(x *Index) {
	k, _ := o.first(&x.msgs)
	if k.seq == o.shown {
		return
	}
	if o.shown != 0 {
		o.hide(x)
	}
	o.shown = k.seq
	e := x.msgs.get(k.seq)
	x.add(k, e)
}

// hide takes a session out of one level.
func (o *offer) hide(x *Index) {
	seq := o.shown
	o.shown = 0
	e := x.msgs.get(seq)
	x.remove(orderKey{e.enqueued, seq}, e)
}

// showAll puts a session that became free into its levels.
func (s *session) showAll(x *Index) {
	for i := range s.offers {
		s.offers[i].show(x)
	}
}

// hideAll takes a session that is being locked out of all levels.
func (s *session) hideAll(x *Index) {
	for i := range s.offers {
		if s.offers[i].shown != 0 {
			s.offers[i].hide(x)
		}
	}
}
