// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/order"
	"github.com/triagemq/triagemq/internal/queue/session"
)

// BlockReason is why a message cannot be delivered now.
type BlockReason uint8

// The reasons.
const (
	NotBlocked BlockReason = iota
	BlockedByLock
	BlockedBySchedule
	BlockedByDeferral
	BlockedByPause
	BlockedBySession // its session is locked
	BlockedByCap     // its fair key has reached its concurrency limit
	BlockedByRate    // its fair key has reached its rate limit
	BlockedByRetry   // it waits for a retry, or its session waits for that of another message
)

// Position explains when a message is delivered.
type Position struct {
	Delivery
	Rank         int           // effective level
	Boost        Boost         // message that advances its session, if any
	Ahead        map[Level]int // ready messages that are delivered before it, by level
	BlockedBy    BlockReason
	BlockedUntil time.Time // when BlockedBy ends, if that is known

	Saturated bool // levels are served by weight until it is not

	// Due is when it must start to meet the objective of its level, under Deadline; zero
	// is never.
	Due time.Time
	// LateLevel is the lowest level, from its own up, whose oldest message is late, so that
	// the level is served by its level and not by its deadline; -1 is none.
	LateLevel int
}

// Boost is a message by which its whole session is ranked higher.
type Boost struct {
	Seq   SeqNo // zero is none
	Level Level
	Rank  int // effective level, which is the session's
}

// Explain is the explanation of a message while it is being computed, in steps.
type Explain struct {
	Seq      SeqNo
	Position Position // when it is done

	ahead    order.Ahead
	sessions session.Ahead
}

// Explain continues to find out what is delivered before a message. It visits up to
// most messages or sessions and reports whether it is done. Commands may run in
// between, so the result is true of a time between the first step and the last.
func (q *Queue) Explain(now time.Time, x *Explain, most int) (done bool, err error) {
	at := q.core.At(now)
	e := q.core.Index.Entries.Get(x.Seq)
	if e == nil {
		return true, ErrNotFound
	}
	if x.ahead.Begin(&q.core.Index, x.Seq) {
		x.sessions = session.Ahead{}
	}
	saturated := q.core.Index.UpdateMode(at)
	if e.Is(Ready) {
		if q.core.Config.Sessions {
			mine, ahead := q.core.SessionOf(e), x.ahead.ByLevel
			done = x.sessions.InSession(&q.core.Index, mine, x.Seq, &most, ahead) &&
				x.sessions.Among(&q.core.Index, &q.core.Sessions, mine, at, &most, ahead)
		} else {
			done = x.ahead.Step(&q.core.Index, e, at, &most)
		}
		if !done {
			return false, nil
		}
		e = q.core.Index.Entries.Get(x.Seq) // as it was found first
	}
	p := &x.Position
	p.Delivery, p.Saturated, p.Ahead = q.delivery(x.Seq, e), saturated, x.ahead.ByLevel
	p.Rank = q.core.Index.EffectiveLevel(e, at)
	p.LateLevel = -1
	if e.Is(Ready) {
		due, level := q.core.Index.Lateness(e, at)
		p.Due, p.LateLevel = entries.Moment(due), level
	}
	p.BlockedBy, p.BlockedUntil = q.blockReason(e)
	switch {
	case !e.Is(Ready):
		p.Ahead = make(map[Level]int)
	case q.core.Config.Sessions:
		q.setBoost(p, e, at)
	default:
		x.ahead.Finish(&q.core.Index, e, at)
	}
	return true, nil
}

// setBoost sets the message that advances the session of a message, if there is one.
func (q *Queue) setBoost(p *Position, e *entries.Entry, at int64) {
	k, best := q.core.SessionOf(e).BestMessage(&q.core.Index, at)
	if best.Level != e.Level || k.Seq > e.Seq { // an older one of its level is ahead of it anyway
		p.Boost = Boost{k.Seq, best.Level, q.core.Index.EffectiveLevel(best, at)}
	}
}

// blockReason returns why a message cannot be taken.
func (q *Queue) blockReason(e *entries.Entry) (BlockReason, time.Time) {
	switch e.State() {
	case Locked:
		return BlockedByLock, entries.Moment(q.lockedUntil(e.StateIndex))
	case Scheduled:
		return BlockedBySchedule, entries.Moment(q.core.Schedule.All[e.StateIndex].At)
	case Deferred:
		return BlockedByDeferral, time.Time{}
	case Retrying:
		return BlockedByRetry, entries.Moment(q.core.Retries.All[e.StateIndex].At)
	}
	if q.core.Config.ReceivePaused {
		return BlockedByPause, time.Time{}
	}
	if s := q.core.SessionOf(e); q.core.Config.Sessions && s.Lock != 0 {
		return BlockedBySession, entries.Moment(q.core.Locks.All[s.Lock].Until)
	} else if q.core.Config.Sessions && s.Retries() {
		return BlockedByRetry, time.Time{}
	}
	switch atCap, until := q.core.Index.KeyLimit(e); {
	case atCap:
		return BlockedByCap, time.Time{}
	case until != 0:
		return BlockedByRate, entries.Moment(until)
	}
	return NotBlocked, time.Time{}
}
