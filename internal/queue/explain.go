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
	Ahead map[Level]int // ready messages that go first, by level
	Held  Hold
	Until time.Time // when Held ends, if that is known
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
		Delivery: q.delivery(seq, e),
		Rank:     q.levels.picker.rank(e.level, e.enqueued, at),
		Ahead:    make(map[Level]int),
	}
	p.Held, p.Until = q.holdOf(e)
	if !e.is(Ready) {
		return p, nil
	}
	for other, o := q.msgs.next(0); o != nil; other, o = q.msgs.next(other + 1) {
		if o.is(Ready) && o.expiry() > at && q.goesFirst(other, o, seq, e, at) {
			p.Ahead[o.level]++
		}
	}
	return p, nil
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
