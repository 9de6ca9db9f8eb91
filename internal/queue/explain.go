// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// Hold is a reason why a message cannot be taken now.
type Hold uint8

// What holds a message.
const (
	HeldByNothing Hold = iota
	HeldByLock
	HeldBySchedule
	HeldByDeferral
	HeldByPause
	HeldBySession // its session is locked
	HeldByCap     // its fair key has as much in flight as it may
	HeldByRate    // its fair key was served as often as it may
)

// Position explains where a message stands.
type Position struct {
	Delivery
	Rank  int           // effective level
	Lift  Lift          // by which its session goes before its turn
	Ahead map[Level]int // ready messages that go first, by level
	Held  Hold
	Until time.Time // when Held ends, if that is known

	Saturated bool // levels have shares for the time being
}

// Explain is an explanation of a message, and how far it has come.
type Explain struct {
	Seq      SeqNo
	Position Position // when it is done

	begun   bool
	counts  uint64 // keys.counts when it began
	from    SeqNo  // messages that are yet to be looked at
	session int    // sessions that are

	ahead   map[Level]int  // that go first, found so far
	byKey   map[uint32]int // waiting in the same level, where keys take turns
	byLevel map[Level]int  // waiting in other levels, where they have shares
}

// Explain goes on finding out what stands between a message and its delivery. It
// visits up to most messages or sessions, and reports whether it has come to the end.
// As others are served in between, what it finds is true of a time between the first
// step and the last.
func (q *Queue) Explain(now time.Time, x *Explain, most int) (done bool, err error) {
	at := q.at(now)
	e := q.msgs.get(x.Seq)
	if e == nil {
		return true, ErrNotFound
	}
	if !x.begun || x.counts != q.keys.counts { // numbers of keys are no longer what they were
		*x = Explain{Seq: x.Seq, begun: true, counts: q.keys.counts,
			ahead: make(map[Level]int), byKey: make(map[uint32]int), byLevel: make(map[Level]int)}
	}
	saturated := q.judge(at)
	if e.is(Ready) {
		if q.cfg.Sessions {
			done = q.aheadInSession(x, e, &most) && q.sessionsAhead(x, e, at, &most)
		} else {
			done = q.ahead(x, e, at, &most)
		}
		if !done {
			return false, nil
		}
		e = q.msgs.get(x.Seq) // where it was found first
	}
	p := &x.Position
	p.Delivery, p.Saturated, p.Ahead = q.delivery(x.Seq, e), saturated, x.ahead
	p.Rank = q.levels.picker.rank(e.level, e.enqueued, at)
	p.Held, p.Until = q.holdOf(e)
	switch {
	case !e.is(Ready):
		p.Ahead = make(map[Level]int)
	case q.cfg.Sessions:
		q.lifted(p, e, at)
	default:
		q.turnsAhead(x, e, at)
	}
	return true, nil
}

// ahead counts the ready messages that go before e, and those with which it takes
// turns or has shares.
func (q *Queue) ahead(x *Explain, e *entry, at int64, most *int) (done bool) {
	k, mine := orderKey{e.enqueued, x.Seq}, q.fairKey(e.group)
	for ; *most > 0; *most-- {
		seq, o := q.msgs.next(x.from)
		if o == nil {
			return true
		}
		x.from = seq + 1
		other, fairKey := orderKey{o.enqueued, seq}, q.fairKey(o.group)
		switch {
		case !o.is(Ready) || o.expiry() <= at || seq == x.Seq:
		case o.level == e.level && fairKey != mine: // only in a fair order
			if !q.order.FinishesFirst() {
				x.byKey[fairKey]++
			} else if q.worksBefore(e.level, fairKey, other, mine, k) {
				x.ahead[o.level]++
			}
		case o.level == e.level && q.precedes(other, k), o.level != e.level && q.outranks(seq, o, x.Seq, e, at):
			x.ahead[o.level]++
		case o.level != e.level:
			x.byLevel[o.level]++
		}
	}
	return false
}

// turnsAhead counts, where turns and shares decide, the turns that others have until
// e has its own.
func (q *Queue) turnsAhead(x *Explain, e *entry, at int64) {
	ahead, mine := x.Position.Ahead, &q.keys.all[q.fairKey(e.group)]
	turns, own := 0, ahead[e.level]+1
	for n, waiting := range x.byKey {
		if k := &q.keys.all[n]; !k.full() && k.opens() <= at {
			turns += min(waiting, own*int(max(k.weight, 1))/int(max(mine.weight, 1)))
		}
	}
	if turns > 0 {
		ahead[e.level] += turns
	}
	if shares := q.sharing(); shares != nil {
		for l, waiting := range x.byLevel {
			// A cost is a share turned around.
			ahead[l] = min(waiting, int(int64(ahead[e.level]+1)*shares.cost[e.level]/shares.cost[l]))
		}
	}
}

// outranks reports whether a message of another level goes before e. Shares have
// no such thing.
func (q *Queue) outranks(other SeqNo, o *entry, seq SeqNo, e *entry, at int64) bool {
	if q.sharing() != nil {
		return false
	}
	s, _ := q.levels.picker.score(o.level, orderKey{o.enqueued, other}, at)
	t, _ := q.levels.picker.score(e.level, orderKey{e.enqueued, seq}, at)
	return s.before(t)
}

// holdOf returns what keeps a message from being taken.
func (q *Queue) holdOf(e *entry) (Hold, time.Time) {
	switch e.state() {
	case Locked:
		return HeldByLock, moment(q.lockedUntil(e.slot))
	case Scheduled:
		return HeldBySchedule, moment(q.schedule.all[e.slot].at)
	case Deferred:
		return HeldByDeferral, time.Time{}
	}
	if q.cfg.ReceivePaused {
		return HeldByPause, time.Time{}
	}
	if s := q.sessionOf(e); q.cfg.Sessions && s.lock != 0 {
		return HeldBySession, moment(q.locks.all[s.lock].until)
	}
	return q.holdOfKey(e)
}
