// SPDX-License-Identifier: Apache-2.0

package queue

// aheadCount counts, in steps, the messages that are delivered before one message.
type aheadCount struct {
	seq       SeqNo
	byLevel   map[Level]int // found so far
	from      SeqNo         // messages from here on are yet to be visited
	begun     bool
	numbering uint64         // keys.counts when it began: byKey refers to key numbers
	byKey     map[uint32]int // ready in the same level, by fair key, where keys are served in turns
	shared    map[Level]int  // ready in other levels, where levels have shares
}

// begin prepares for a message. It starts again if the fair keys were numbered anew,
// and reports whether it did.
func (a *aheadCount) begin(x *Index, seq SeqNo) bool {
	if a.begun && a.numbering == x.keys.renumbered {
		return false
	}
	*a = aheadCount{seq: seq, begun: true, numbering: x.keys.renumbered,
		byLevel: make(map[Level]int), byKey: make(map[uint32]int), shared: make(map[Level]int)}
	return true
}

// step visits up to *most messages, which it subtracts, and reports whether it has
// visited all. It counts those that are delivered before e, and those with which e
// takes turns or has shares.
func (a *aheadCount) step(x *Index, e *entry, at int64, most *int) (done bool) {
	k, mine := orderKey{e.orderTime, a.seq}, x.fairKey(e.group)
	for ; *most > 0; *most-- {
		seq, o := x.msgs.next(a.from)
		if o == nil {
			return true
		}
		a.from = seq + 1
		other, fairKey := orderKey{o.orderTime, seq}, x.fairKey(o.group)
		switch {
		case !o.is(Ready) || o.expiry() <= at || seq == a.seq:
		case o.level == e.level && fairKey != mine: // only in a fair order
			if !x.order.FinishesFirst() {
				a.byKey[fairKey]++
			} else if x.startedBefore(e.level, fairKey, other, mine, k) {
				a.byLevel[o.level]++
			}
		case o.level == e.level && x.precedes(other, k), o.level != e.level && x.outranks(seq, o, a.seq, e, at):
			a.byLevel[o.level]++
		case o.level != e.level:
			a.shared[o.level]++
		}
	}
	return false
}

// finish adds, where turns and shares decide, the deliveries of others until e has
// its own.
func (a *aheadCount) finish(x *Index, e *entry, at int64) {
	mine := &x.keys.all[x.fairKey(e.group)]
	turns, own := 0, a.byLevel[e.level]+1
	for n, waiting := range a.byKey {
		if k := &x.keys.all[n]; !k.atCap() && k.eligibleAt() <= at {
			turns += min(waiting, own*int(max(k.weight, 1))/int(max(mine.weight, 1)))
		}
	}
	if turns > 0 {
		a.byLevel[e.level] += turns
	}
	if shares := x.sharing(); shares != nil {
		for l, waiting := range a.shared {
			// A cost is the inverse of a share.
			a.byLevel[l] = min(waiting, int(int64(a.byLevel[e.level]+1)*shares.cost[e.level]/shares.cost[l]))
		}
	}
}

// outranks reports whether a message of another level is delivered before e. With
// shares there is no such order.
func (x *Index) outranks(other SeqNo, o *entry, seq SeqNo, e *entry, at int64) bool {
	return x.sharing() == nil && x.scoresBefore(other, o, seq, e, at)
}

// scoresBefore compares two messages by the discipline.
func (x *Index) scoresBefore(other SeqNo, o *entry, seq SeqNo, e *entry, at int64) bool {
	s, _ := x.levels.picker.score(o.level, orderKey{o.orderTime, other}, at)
	t, _ := x.levels.picker.score(e.level, orderKey{e.orderTime, seq}, at)
	return s.before(t)
}

// leads reports whether the first message k of a session ranks it, rather than its
// first message of another level. With shares it is that of the largest.
func (x *Index) leads(k orderKey, e *entry, than orderKey, o *entry, at int64) bool {
	if shares := x.sharing(); shares != nil {
		a, b := shares.cost[e.level], shares.cost[o.level]
		return a < b || a == b && e.level > o.level
	}
	return x.outranks(k.seq, e, than.seq, o, at)
}

// effectiveLevel returns the level of a message after aging.
func (x *Index) effectiveLevel(e *entry, at int64) int {
	return x.levels.picker.rank(e.level, e.orderTime, at)
}
