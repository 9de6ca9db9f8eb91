// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
)

// aheadSessions is how far the count of sessions before one has come.
type aheadSessions struct {
	from SeqNo // messages of its own session after it are yet to be visited
	next int   // sessions from here on, too
}

// inSession counts the messages of s with lower sequence numbers.
func (a *aheadSessions) inSession(x *order.Index, s *session, before SeqNo, most *int, byLevel map[Level]int) (done bool) {
	for ; *most > 0; *most-- {
		seq, ok := s.ready.After(a.from)
		if !ok || seq >= before {
			return true
		}
		x.Entries.Visits++
		a.from = seq
		byLevel[x.Entries.Get(seq).Level]++
	}
	return false
}

// among counts the free sessions that are locked before mine, by the level that each
// is ranked by.
func (a *aheadSessions) among(x *order.Index, ss *sessionTable, mine *session, at int64, most *int, byLevel map[Level]int) (done bool) {
	k, best := mine.bestMessage(x, at)
	for ; *most > 0 && a.next < len(ss.all); *most-- {
		s := &ss.all[a.next]
		a.next++
		x.Entries.Visits++
		if s == mine || s.lock != 0 || s.ready.Len() == 0 {
			continue
		}
		if other, o := s.bestMessage(x, at); x.Outranks(other.Seq, o, k.Seq, best, at) {
			byLevel[o.Level]++
		}
	}
	return a.next >= len(ss.all)
}

// bestMessage returns the message by which a session that has ready messages goes: the
// best of the oldest in each level. Where levels have shares, it is that of the
// largest.
func (s *session) bestMessage(x *order.Index, at int64) (k entries.OrderKey, e *entries.Entry) {
	for i := range s.levels {
		first, _ := s.levels[i].First(&x.Entries)
		o := x.Entries.Get(first.Seq)
		if e == nil || x.Leads(first, o, k, e, at) {
			k, e = first, o
		}
	}
	return k, e
}
