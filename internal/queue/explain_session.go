// SPDX-License-Identifier: Apache-2.0

package queue

// aheadSessions is how far the count of sessions before one has come.
type aheadSessions struct {
	from SeqNo // messages of its own session after it are yet to be visited
	next int   // sessions from here on, too
}

// inSession counts the messages of s with lower sequence numbers.
func (a *aheadSessions) inSession(x *Index, s *session, before SeqNo, most *int, byLevel map[Level]int) (done bool) {
	for ; *most > 0; *most-- {
		seq, ok := s.ready.after(a.from)
		if !ok || seq >= before {
			return true
		}
		x.msgs.visits++
		a.from = seq
		byLevel[x.msgs.get(seq).level]++
	}
	return false
}

// among counts the free sessions that are locked before mine, by the level that each
// is ranked by.
func (a *aheadSessions) among(x *Index, ss *sessionTable, mine *session, at int64, most *int, byLevel map[Level]int) (done bool) {
	k, best := mine.bestMessage(x, at)
	for ; *most > 0 && a.next < len(ss.all); *most-- {
		s := &ss.all[a.next]
		a.next++
		x.msgs.visits++
		if s == mine || s.lock != 0 || s.ready.n == 0 {
			continue
		}
		if other, o := s.bestMessage(x, at); x.outranks(other.seq, o, k.seq, best, at) {
			byLevel[o.level]++
		}
	}
	return a.next >= len(ss.all)
}

// lead returns the message by which a session that has ready messages goes: the
// best of the oldest in each level. Where levels have shares, it is that of the
// largest.
func (s *session) bestMessage(x *Index, at int64) (k orderKey, e *entry) {
	for i := range s.levels {
		first, _ := s.levels[i].first(&x.msgs)
		o := x.msgs.get(first.seq)
		if e == nil || x.leads(first, o, k, e, at) {
			k, e = first, o
		}
	}
	return k, e
}
