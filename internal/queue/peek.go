// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// Peek says what to look at.
type Peek struct {
	From    SeqNo   // no lower numbers
	Max     int     // messages to return
	Visits  int     // messages to visit, at least one; zero is no limit
	Session *string // only of this session; nil is any
}

// Peek returns messages in all states, by number. Expired ones are left out. It ends
// at p.Max messages, or when it has visited p.Visits; then next is where to go on. It
// is zero if there are no more.
func (q *Queue) Peek(now time.Time, p Peek) (ds []Delivery, next SeqNo) {
	at := q.at(now)
	seq, e := q.peekNext(p.From, p.Session)
	for visits := p.Visits; e != nil; seq, e = q.peekNext(seq+1, p.Session) {
		if len(ds) >= p.Max || visits == 0 && p.Visits > 0 {
			return ds, seq
		}
		visits--
		if q.inSession(e, p.Session) && !(e.is(Ready) && e.expiry() <= at) {
			ds = append(ds, q.delivery(seq, e))
		}
	}
	return ds, 0
}

// peekNext returns the first message whose number is not below seq. In a queue of
// sessions it is the first of the session; in another, messages may have a session,
// too, but nobody keeps them together.
func (q *Queue) peekNext(seq SeqNo, session *string) (SeqNo, *entry) {
	if session == nil || !q.cfg.Sessions {
		return q.index.msgs.next(seq)
	}
	n, ok := q.sessions.byID[*session]
	if !ok {
		return 0, nil
	}
	q.index.msgs.visits++
	seq = max(seq, 1)
	s := &q.sessions.all[n]
	ready, isReady := s.ready.after(seq - 1)
	aside, isAside := s.aside.after(seq - 1)
	switch {
	case isReady && (!isAside || ready < aside):
		return ready, q.index.msgs.get(ready)
	case isAside:
		return aside, q.index.msgs.get(aside)
	}
	return 0, nil
}

// inSession reports whether a message belongs to a session; nil is any.
func (q *Queue) inSession(e *entry, id *string) bool {
	if id == nil {
		return true
	}
	g := &q.index.groups.all[e.group]
	return g.inSession && g.session == *id
}
