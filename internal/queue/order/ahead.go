// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// Ahead counts, in steps, the messages that are delivered before one message.
type Ahead struct {
	seq       entries.SeqNo
	ByLevel   map[ordering.Level]int // found so far
	from      entries.SeqNo          // next message to visit
	begun     bool
	numbering uint64                 // keys.renumbered when it began: byKey refers to key numbers
	byKey     map[uint32]int         // ready in the same level, by fair key, where keys are served in round robin
	shared    map[ordering.Level]int // ready in other levels, where levels have shares
}

// Begin prepares for a message. It starts again if the fair keys were numbered anew,
// and reports whether it did.
func (a *Ahead) Begin(x *Index, seq entries.SeqNo) bool {
	if a.begun && a.numbering == x.keys.renumbered {
		return false
	}
	*a = Ahead{seq: seq, begun: true, numbering: x.keys.renumbered,
		ByLevel: make(map[ordering.Level]int), byKey: make(map[uint32]int), shared: make(map[ordering.Level]int)}
	return true
}

// Step visits up to *most messages, which it subtracts, and reports whether it has
// visited all. It counts those that are delivered before e, and those with which e
// shares round robin or weights.
func (a *Ahead) Step(x *Index, e *entries.Entry, at int64, most *int) (done bool) {
	k, mine := e.Key(), x.fairKey(e.Group)
	for ; *most > 0; *most-- {
		seq, o := x.Entries.Next(a.from)
		if o == nil {
			return true
		}
		a.from = seq + 1
		other, fairKey := o.Key(), x.fairKey(o.Group)
		switch {
		case !o.Is(entries.Ready) || o.Expiry() <= at || seq == a.seq:
		case o.Level == e.Level && fairKey != mine: // only in a fair order
			if !x.order.FinishesFirst() {
				a.byKey[fairKey]++
			} else if x.startedBefore(e.Level, fairKey, other, mine, k) {
				a.ByLevel[o.Level]++
			}
		case o.Level == e.Level && x.precedes(other, k), o.Level != e.Level && x.Outranks(seq, o, a.seq, e, at):
			a.ByLevel[o.Level]++
		case o.Level != e.Level:
			a.shared[o.Level]++
		}
	}
	return false
}

// Finish adds, where round robin and weights decide, the deliveries of others before
// that of e.
func (a *Ahead) Finish(x *Index, e *entries.Entry, at int64) {
	mine := x.keys.all[x.fairKey(e.Group)]
	turns, own := 0, a.ByLevel[e.Level]+1
	for n, waiting := range a.byKey {
		if k := x.keys.at(n); k != nil && !k.atCap() && k.eligibleAt() <= at {
			turns += min(waiting, own*int(max(k.weight, 1))/int(max(mine.weight, 1)))
		}
	}
	if turns > 0 {
		a.ByLevel[e.Level] += turns
	}
	if shares := x.sharing(); shares != nil {
		for l, waiting := range a.shared {
			// A cost is the inverse of a share.
			a.ByLevel[l] = min(waiting, int(int64(a.ByLevel[e.Level]+1)*shares.cost[e.Level]/shares.cost[l]))
		}
	}
}

// Outranks reports whether a message of another level is delivered before e. With
// shares there is no such order.
func (x *Index) Outranks(other entries.SeqNo, o *entries.Entry, seq entries.SeqNo, e *entries.Entry, at int64) bool {
	return x.sharing() == nil && x.ScoresBefore(other, o, seq, e, at)
}

// ScoresBefore compares two messages by the discipline.
func (x *Index) ScoresBefore(other entries.SeqNo, o *entries.Entry, seq entries.SeqNo, e *entries.Entry, at int64) bool {
	if d := x.deadlines(at); d != nil {
		return d.precedes(o, e, at)
	}
	s, _ := x.levels.picker.score(o.Level, o.Key(), at)
	t, _ := x.levels.picker.score(e.Level, e.Key(), at)
	return s.before(t)
}

// Leads reports whether the first message k of a session ranks it, rather than its
// first message of another level. With shares it is that of the largest.
func (x *Index) Leads(k entries.OrderKey, e *entries.Entry, than entries.OrderKey, o *entries.Entry, at int64) bool {
	if shares := x.sharing(); shares != nil {
		a, b := shares.cost[e.Level], shares.cost[o.Level]
		return a < b || a == b && e.Level > o.Level
	}
	return x.Outranks(k.Seq, e, than.Seq, o, at)
}

// EffectiveLevel returns the level of a message after aging.
func (x *Index) EffectiveLevel(e *entries.Entry, at int64) int {
	return x.levels.picker.rank(e.Level, e.OrderTime, at)
}

// Lateness returns the deadline of a message, and the lowest level from its own up that
// has a late message at its head; -1 is none. Without deadlines it is Never and -1.
func (x *Index) Lateness(e *entries.Entry, at int64) (due int64, late int) {
	d := x.deadlines(at)
	if d == nil {
		return entries.Never, -1
	}
	for l := range d.late.between(e.Level, 255) {
		return d.due(e.Level, e.OrderTime), int(l)
	}
	return d.due(e.Level, e.OrderTime), -1
}

// deadlines returns the discipline deadline, with the late levels as they are at a time,
// nil if there is another discipline.
func (x *Index) deadlines(at int64) *deadline {
	r, ok := x.levels.picker.(*winnerTree)
	if !ok || r.due == nil {
		return nil
	}
	r.pickAmong(x, at, 0, 255)
	return r.due
}
