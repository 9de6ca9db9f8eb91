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

// Explain tells what stands between a message and its delivery. It looks at
// every ready message, so it is for people, not for programs.
func (q *Queue) Explain(now time.Time, seq SeqNo) (Position, error) {
	at := q.at(now)
	e := q.msgs.get(seq)
	if e == nil {
		return Position{}, ErrNotFound
	}
	p := Position{
		Delivery:  q.delivery(seq, e),
		Saturated: q.judge(at),
		Rank:      q.levels.picker.rank(e.level, e.enqueued, at),
		Ahead:     make(map[Level]int),
	}
	p.Held, p.Until = q.holdOf(e)
	if !e.is(Ready) {
		return p, nil
	}
	if q.cfg.Sessions {
		q.aheadOfSession(&p, seq, e, at)
	} else {
		q.ahead(&p, key{e.enqueued, seq}, e, at)
	}
	return p, nil
}

// ahead counts the ready messages that go before e. Where turns and shares
// decide, it counts the turns that others have until e has its own.
func (q *Queue) ahead(p *Position, k key, e *entry, at int64) {
	mine := q.fairKey(e.group)
	byKey, byLevel := make(map[uint32]int), make(map[Level]int)
	for seq, o := q.msgs.next(0); o != nil; seq, o = q.msgs.next(seq + 1) {
		other := key{o.enqueued, seq}
		fairKey := q.fairKey(o.group)
		switch {
		case !o.is(Ready) || o.expiry() <= at || seq == k.seq:
		case o.level == e.level && fairKey != mine: // only in a fair order
			if !q.order.finishes() {
				byKey[fairKey]++
			} else if q.worksBefore(e.level, fairKey, other, mine, k) {
				p.Ahead[o.level]++
			}
		case o.level == e.level && q.precedes(other, k), o.level != e.level && q.outranks(seq, o, k.seq, e, at):
			p.Ahead[o.level]++
		case o.level != e.level:
			byLevel[o.level]++
		}
	}
	turns, own := 0, p.Ahead[e.level]+1
	for n, waiting := range byKey {
		if k := &q.keys.all[n]; !k.full() && k.opens() <= at {
			turns += min(waiting, own*int(k.weight)/int(q.keys.all[mine].weight))
		}
	}
	if turns > 0 {
		p.Ahead[e.level] += turns
	}
	if shares := q.sharing(); shares != nil {
		for l, waiting := range byLevel {
			// A cost is a share turned around.
			p.Ahead[l] = min(waiting, int(int64(p.Ahead[e.level]+1)*shares.cost[e.level]/shares.cost[l]))
		}
	}
}

// outranks reports whether a message of another level goes before e. Shares have
// no such thing.
func (q *Queue) outranks(other SeqNo, o *entry, seq SeqNo, e *entry, at int64) bool {
	if q.sharing() != nil {
		return false
	}
	s, _ := q.levels.picker.score(o.level, key{o.enqueued, other}, at)
	t, _ := q.levels.picker.score(e.level, key{e.enqueued, seq}, at)
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
