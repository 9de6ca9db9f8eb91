// SPDX-License-Identifier: Apache-2.0

package queue

// Lift is a message that lifts its whole session.
type Lift struct {
	Seq   SeqNo // zero is that nothing does
	Level Level
	Rank  int // effective level, which is the session's
}

// aheadOfSession counts what is before a message in its session, and the
// sessions that go first, by the levels as which they go. It says what lifts the
// session of the message.
func (q *Queue) aheadOfSession(p *Position, seq SeqNo, e *entry, at int64) {
	mine := q.sessionOf(e)
	for other, o := q.msgs.next(0); o != nil && other < seq; other, o = q.msgs.next(other + 1) {
		if o.is(Ready) && q.sessionOf(o) == mine {
			p.Ahead[o.level]++
		}
	}
	k, best := q.lead(mine, at)
	if best.level != e.level || k.seq > seq { // an older one of its level is no news
		p.Lift = Lift{k.seq, best.level, q.levels.picker.rank(best.level, best.enqueued, at)}
	}
	for i := range q.sessions.all {
		s := &q.sessions.all[i]
		if s == mine || s.lock != 0 || s.line.n == 0 {
			continue
		}
		if other, o := q.lead(s, at); q.outranks(other.seq, o, k.seq, best, at) {
			p.Ahead[o.level]++
		}
	}
}

// lead returns the message by which a session that has ready messages goes: the
// best of the oldest in each level. Where levels have shares, it is that of the
// largest.
func (q *Queue) lead(s *session, at int64) (k key, e *entry) {
	for i := range s.offers {
		first, _ := s.offers[i].first(q)
		o := q.msgs.get(first.seq)
		if e == nil || q.leads(first, o, k, e, at) {
			k, e = first, o
		}
	}
	return k, e
}

func (q *Queue) leads(k key, e *entry, than key, o *entry, at int64) bool {
	if shares := q.sharing(); shares != nil {
		a, b := shares.cost[e.level], shares.cost[o.level]
		return a < b || a == b && e.level > o.level
	}
	return q.outranks(k.seq, e, than.seq, o, at)
}
