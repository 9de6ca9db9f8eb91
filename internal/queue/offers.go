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
func (q *Queue) queueUp(seq SeqNo, e *entry) {
	s := q.sessionOf(e)
	s.aside.discard(seq)
	s.line.put(&q.msgs, seq)
	o := s.offerAt(e.level)
	o.add(&q.msgs, orderKey{e.enqueued, seq}, e)
	if s.lock == 0 {
		q.show(o)
	}
}

// dropOut says that a message is no longer in the lines of its session.
func (q *Queue) dropOut(seq SeqNo, e *entry) {
	s := q.sessionOf(e)
	s.line.remove(orderKey{0, seq})
	q.unoffer(s, seq, e)
}

// unoffer says that a message, which is not ready any more, ranks its session no
// longer.
func (q *Queue) unoffer(s *session, seq SeqNo, e *entry) {
	o := s.offerOf(e.level)
	if o.shown == seq {
		q.hide(o)
	}
	o.remove(&q.msgs, orderKey{e.enqueued, seq}, e)
	switch {
	case o.list.n == 0:
		s.offers = slices.DeleteFunc(s.offers, func(o offer) bool { return o.list.n == 0 })
	case s.lock == 0:
		q.show(o)
	}
}

// show keeps the levels up to date about a free session in one of them.
func (q *Queue) show(o *offer) {
	k, _ := o.first(&q.msgs)
	if k.seq == o.shown {
		return
	}
	if o.shown != 0 {
		q.hide(o)
	}
	o.shown = k.seq
	e := q.msgs.get(k.seq)
	q.levels.add(q, k, e)
	if q.next.index != nil {
		q.addToSecond(k, e)
	}
}

// hide takes a session out of one level.
func (q *Queue) hide(o *offer) {
	seq := o.shown
	o.shown = 0
	e := q.msgs.get(seq)
	q.withdraw(orderKey{e.enqueued, seq}, e)
}

// showAll puts a session that became free into its levels.
func (q *Queue) showAll(s *session) {
	for i := range s.offers {
		q.show(&s.offers[i])
	}
}

// hideAll takes a session that is being locked out of all levels.
func (q *Queue) hideAll(s *session) {
	for i := range s.offers {
		if s.offers[i].shown != 0 {
			q.hide(&s.offers[i])
		}
	}
}
