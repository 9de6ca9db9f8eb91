// SPDX-License-Identifier: Apache-2.0

package queue

// Lift is a message that lifts its whole session.
type Lift struct {
	Seq   SeqNo // zero is that nothing does
	Level Level
	Rank  int // effective level, which is the session's
}

// aheadInSession counts what is before a message in its session.
func (q *Queue) aheadInSession(x *Explain, e *entry, most *int) (done bool) {
	line := &q.sessionOf(e).line
	for ; *most > 0; *most-- {
		seq, ok := line.after(x.from)
		if !ok || seq >= x.Seq {
			return true
		}
		q.msgs.visits++
		x.from = seq
		x.ahead[q.msgs.get(seq).level]++
	}
	return false
}

// sessionsAhead counts the sessions that go before that of a message, by the levels as
// which they go.
func (q *Queue) sessionsAhead(x *Explain, e *entry, at int64, most *int) (done bool) {
	mine := q.sessionOf(e)
	k, best := q.lead(mine, at)
	for ; *most > 0 && x.session < len(q.sessions.all); *most-- {
		s := &q.sessions.all[x.session]
		x.session++
		q.msgs.visits++
		if s == mine || s.lock != 0 || s.line.n == 0 {
			continue
		}
		if other, o := q.lead(s, at); q.outranks(other.seq, o, k.seq, best, at) {
			x.ahead[o.level]++
		}
	}
	return x.session >= len(q.sessions.all)
}

// lifted says what lifts the session of a message.
func (q *Queue) lifted(p *Position, e *entry, at int64) {
	k, best := q.lead(q.sessionOf(e), at)
	if best.level != e.level || k.seq > e.seq { // an older one of its level is no news
		p.Lift = Lift{k.seq, best.level, q.levels.picker.rank(best.level, best.enqueued, at)}
	}
}

// lead returns the message by which a session that has ready messages goes: the
// best of the oldest in each level. Where levels have shares, it is that of the
// largest.
func (q *Queue) lead(s *session, at int64) (k orderKey, e *entry) {
	for i := range s.offers {
		first, _ := s.offers[i].first(&q.msgs)
		o := q.msgs.get(first.seq)
		if e == nil || q.leads(first, o, k, e, at) {
			k, e = first, o
		}
	}
	return k, e
}

func (q *Queue) leads(k orderKey, e *entry, than orderKey, o *entry, at int64) bool {
	if shares := q.sharing(); shares != nil {
		a, b := shares.cost[e.level], shares.cost[o.level]
		return a < b || a == b && e.level > o.level
	}
	return q.outranks(k.seq, e, than.seq, o, at)
}
