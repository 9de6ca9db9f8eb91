// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
)

// Ahead is how far the count of sessions before one has come.
type Ahead struct {
	from entries.SeqNo // messages of its own session after it are yet to be visited
	next int           // sessions from here on, too
}

// InSession counts the messages of s with lower sequence numbers.
func (a *Ahead) InSession(x *order.Index, s *Session, before entries.SeqNo, most *int, byLevel map[ordering.Level]int) (done bool) {
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

// Among counts the free sessions that are locked before mine, by the level that each
// is ranked by.
func (a *Ahead) Among(x *order.Index, ss *Table, mine *Session, at int64, most *int, byLevel map[ordering.Level]int) (done bool) {
	k, best := mine.BestMessage(x, at)
	for ; *most > 0 && a.next < len(ss.All); *most-- {
		s := ss.All[a.next]
		a.next++
		x.Entries.Visits++
		if s == nil || s == mine || !s.free() || s.ready.Len() == 0 {
			continue
		}
		if other, o := s.BestMessage(x, at); x.Outranks(other.Seq, o, k.Seq, best, at) {
			byLevel[o.Level]++
		}
	}
	return a.next >= len(ss.All)
}

// BestMessage returns the message that ranks a session with ready messages: the best of
// the oldest in each level. Where levels have shares, it is that of the level with the
// largest.
func (s *Session) BestMessage(x *order.Index, at int64) (k entries.OrderKey, e *entries.Entry) {
	for i := range s.levels {
		first, _ := s.levels[i].First(&x.Entries)
		o := x.Entries.Get(first.Seq)
		if e == nil || x.Leads(first, o, k, e, at) {
			k, e = first, o
		}
	}
	return k, e
}
