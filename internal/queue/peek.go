// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// Peek says which messages to show.
type Peek struct {
	From    SeqNo   // lowest sequence number
	Max     int     // messages to return
	Visits  int     // messages to visit, at least one; zero is no limit
	Session *string // only of this session; nil is any
}

// Peek returns messages in all states, in sequence order. Expired ones are left out. It
// ends after p.Max messages, or when it has visited p.Visits; next is where to continue,
// zero if there are no more.
func (q *Queue) Peek(now time.Time, p Peek) (ds []Delivery, next SeqNo) {
	at := q.core.At(now)
	seq, e := q.peekNext(p.From, p.Session)
	for visits := p.Visits; e != nil; seq, e = q.peekNext(seq+1, p.Session) {
		if len(ds) >= p.Max || visits == 0 && p.Visits > 0 {
			return ds, seq
		}
		visits--
		if q.inSession(e, p.Session) && !(e.Is(Ready) && e.Expiry() <= at) {
			ds = append(ds, q.delivery(seq, e))
		}
	}
	return ds, 0
}

// peekNext returns the first message whose sequence number is not below seq. In a
// session queue it is the first of the session. In another queue messages may have a
// session, too, but no list of it exists.
func (q *Queue) peekNext(seq SeqNo, session *string) (SeqNo, *entries.Entry) {
	if session == nil || !q.core.Config.Sessions {
		return q.core.Index.Entries.Next(seq)
	}
	s := q.core.Sessions.Find(*session)
	if s == nil {
		return 0, nil
	}
	q.core.Index.Entries.Visits++
	found, ok := s.MessageFrom(max(seq, 1))
	if !ok {
		return 0, nil
	}
	return found, q.core.Index.Entries.Get(found)
}

// inSession reports whether a message belongs to a session; nil is any.
func (q *Queue) inSession(e *entries.Entry, id *string) bool {
	if id == nil {
		return true
	}
	g := &q.core.Index.Groups.All[e.Group]
	return g.InSession && g.Session == *id
}
