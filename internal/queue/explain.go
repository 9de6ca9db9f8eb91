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

// Lift is a message that lifts its whole session.
type Lift struct {
	Seq   SeqNo // zero is that nothing does
	Level Level
	Rank  int // effective level, which is the session's
}

// Explain is an explanation of a message, and how far it has come.
type Explain struct {
	Seq      SeqNo
	Position Position // when it is done

	ahead    aheadCount
	sessions aheadSessions
}

// Explain goes on finding out what is delivered before a message. It visits up to
// most messages or sessions and reports whether it is done. Commands may run in
// between, so the result is true of a time between the first step and the last.
func (q *Queue) Explain(now time.Time, x *Explain, most int) (done bool, err error) {
	at := q.at(now)
	e := q.index.msgs.get(x.Seq)
	if e == nil {
		return true, ErrNotFound
	}
	if x.ahead.begin(&q.index, x.Seq) {
		x.sessions = aheadSessions{}
	}
	saturated := q.index.updateMode(at)
	if e.is(Ready) {
		if q.cfg.Sessions {
			mine, ahead := q.sessionOf(e), x.ahead.byLevel
			done = x.sessions.inSession(&q.index, mine, x.Seq, &most, ahead) &&
				x.sessions.among(&q.index, &q.sessions, mine, at, &most, ahead)
		} else {
			done = x.ahead.step(&q.index, e, at, &most)
		}
		if !done {
			return false, nil
		}
		e = q.index.msgs.get(x.Seq) // where it was found first
	}
	p := &x.Position
	p.Delivery, p.Saturated, p.Ahead = q.delivery(x.Seq, e), saturated, x.ahead.byLevel
	p.Rank = q.index.effectiveLevel(e, at)
	p.Held, p.Until = q.holdOf(e)
	switch {
	case !e.is(Ready):
		p.Ahead = make(map[Level]int)
	case q.cfg.Sessions:
		q.lifted(p, e, at)
	default:
		x.ahead.finish(&q.index, e, at)
	}
	return true, nil
}

// lifted says what lifts the session of a message.
func (q *Queue) lifted(p *Position, e *entry, at int64) {
	k, best := q.sessionOf(e).bestMessage(&q.index, at)
	if best.level != e.level || k.seq > e.seq { // an older one of its level is no news
		p.Lift = Lift{k.seq, best.level, q.index.effectiveLevel(best, at)}
	}
}

// holdOf returns what keeps a message from being taken.
func (q *Queue) holdOf(e *entry) (Hold, time.Time) {
	switch e.state() {
	case Locked:
		return HeldByLock, moment(q.lockedUntil(e.stateIndex))
	case Scheduled:
		return HeldBySchedule, moment(q.schedule.all[e.stateIndex].at)
	case Deferred:
		return HeldByDeferral, time.Time{}
	}
	if q.cfg.ReceivePaused {
		return HeldByPause, time.Time{}
	}
	if s := q.sessionOf(e); q.cfg.Sessions && s.lock != 0 {
		return HeldBySession, moment(q.locks.all[s.lock].until)
	}
	switch atCap, until := q.index.keyLimit(e); {
	case atCap:
		return HeldByCap, time.Time{}
	case until != 0:
		return HeldByRate, moment(until)
	}
	return HeldByNothing, time.Time{}
}
