// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"github.com/triagemq/triagemq/internal/invariant"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/order"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/session"
)

// Core is the state of one queue, with its locks. It belongs to one goroutine.
type Core struct {
	Config record.Config
	LastIn int64 // enqueue time that was assigned last: see Stamp

	Index    order.Index // entries, and the ready ones in order
	ByState  Counts      // Index counts the ready ones
	Locks    lease.LockTable
	Schedule lease.Schedule
	Retries  lease.Schedule // until when messages that have failed wait
	Window   lease.DedupWindow
	Sessions session.Table
	Reasons  Refs // of dead letters that have a reason beside their body
	Saved    Refs // states of messages that their consumers have saved
	dues     dues
	restore  restore
}

// NewCore returns the state of an empty queue.
func NewCore(cfg record.Config) Core {
	q := Core{
		Index: order.New(cfg.Order, cfg.Sessions), Sessions: session.NewTable(),
		Reasons: Refs{kind: record.KindReasons}, Saved: Refs{kind: record.KindSaved},
	}
	q.Apply(cfg)
	return q
}

// Counts are the messages of a queue by state, and their bytes.
type Counts struct {
	Ready     int64
	Locked    int64
	Scheduled int64
	Deferred  int64
	Retrying  int64 // have failed, and wait for a time
	Bytes     int64
}

// Total is the number of messages in every state.
func (c Counts) Total() int64 { return c.Ready + c.Locked + c.Scheduled + c.Deferred + c.Retrying }

// Counts returns how many messages there are in each state.
func (q *Core) Counts() Counts {
	c := q.ByState
	c.Ready = q.Index.Ready
	return c
}

// At returns the time of a command. The clock is clamped: if now is earlier than the
// latest time seen, the latest time is used. So deadlines of one duration stay in
// order, and no message gets younger.
func (q *Core) At(now time.Time) int64 {
	q.Index.Clock = max(q.Index.Clock, entries.Nanos(now))
	return q.Index.Clock
}

// maxAhead is how far enqueue times may be ahead of the clock, in nanoseconds, if nothing in the
// queue depends on it.
const maxAhead = int64(time.Minute)

// Stamp returns the enqueue time of messages that arrive at a time. It does not go back, so that
// messages stay in the order in which they came; unless the clock was wrong, and no message is
// left that would come before the new ones. Otherwise every later message would have the
// time of the one that was stored while the clock was ahead, and live so much longer.
func (q *Core) Stamp(at int64) int64 {
	c := q.Counts()
	if q.LastIn-at > maxAhead && c.Total() == c.Scheduled {
		return at
	}
	return max(at, q.LastIn)
}

// expiringAhead is maxAhead for messages with a time to live, whatever depends on it. The owner's
// clock follows one that was ahead by less.
const expiringAhead = int64(24 * time.Hour)

// StampExpiring is Stamp for a message with a time to live. If the clock was wrong by days, that
// counts from the one that is right: the message may come before others that have waited longer.
func (q *Core) StampExpiring(at int64) int64 {
	if in := q.Stamp(at); in-at <= expiringAhead {
		return in
	}
	return at
}

// Apply puts the settings into force; the order follows when Reorder is done.
func (q *Core) Apply(cfg record.Config) {
	same := q.Config.Order.Equal(&cfg.Order)
	q.Config = cfg
	q.Locks.Configure(cfg.LockFor)
	q.Window.Configure(cfg.DuplicateWindow)
	switch {
	case same:
	case q.restore.inSnapshot:
		q.Index.Restart(cfg.Order)
	default:
		q.Index.ChangeOrder(cfg.Order)
	}
}

// InForce reports whether the order that was configured last is in force.
func (q *Core) InForce() bool { return q.Index.InForce() }

// Reordering reports whether there is work for Reorder.
func (q *Core) Reordering() bool { return q.Index.Reordering() }

// Reorder continues to apply the order that was configured last. It visits up to about
// most messages and reports whether there is more to do.
func (q *Core) Reorder(most int) (more bool) {
	before := q.InForce()
	more = q.Index.Reorder(most, q.listed)
	if !before && q.InForce() {
		invariant.Check(q.Check)
	}
	return more
}

// listed reports whether a session is listed in a level by this message.
func (q *Core) listed(seq entries.SeqNo, e *entries.Entry) bool {
	return q.SessionOf(e).ListedBy(seq, e.Level)
}

// Latest implements [machine.Machine]: the enqueue time that was assigned last.
func (q *Core) Latest() time.Time { return entries.Moment(q.LastIn) }

// NextDeadline implements [machine.Machine]: when Tick has work next.
func (q *Core) NextDeadline() (time.Time, bool) {
	d := q.Deadline()
	return entries.Moment(d), d != entries.Never
}

// Deadline returns when a lock, a schedule, a wait for a retry, a time to live, an id of duplicate detection
// or a rate limit ends next; entries.Never if none does.
func (q *Core) Deadline() int64 {
	_, lock := q.Locks.First()
	_, begin := q.Schedule.First()
	_, retry := q.Retries.First()
	_, end := q.Index.Entries.NextExpiry()
	return min(lock, begin, retry, end, q.Window.Deadline(), q.Index.Deadline())
}

// beside calls fn for the bodies that a message has beside its own.
func (q *Core) beside(seq entries.SeqNo, fn func(machine.Ref)) {
	if reason, ok := q.Reasons.Get(seq); ok {
		fn(reason)
	}
	if saved, ok := q.Saved.Get(seq); ok {
		fn(saved)
	}
}

// inSessions marks a cursor of Refs that has come to the states of sessions.
const inSessions machine.Cursor = 1 << 63

// Refs implements [machine.Machine]: the bodies of messages with the reasons of dead
// letters and the states that were saved, then the states of sessions.
func (q *Core) Refs(from machine.Cursor, b *machine.Budget, fn func(machine.Ref)) (next machine.Cursor, done bool) {
	for ; from < inSessions; b.Items-- {
		if b.Items <= 0 {
			return from, false
		}
		seq, e := q.Index.Entries.Next(entries.SeqNo(from))
		if e == nil {
			from = inSessions
			break
		}
		fn(e.Body())
		q.beside(seq, fn)
		from = machine.Cursor(seq) + 1
	}
	for ; int(from-inSessions) < len(q.Sessions.All); from, b.Items = from+1, b.Items-1 {
		if b.Items <= 0 {
			return from, false
		}
		if s := q.Sessions.All[from-inSessions]; s != nil && s.State != (machine.Ref{}) {
			fn(s.State)
		}
	}
	return from, b.Items > 0
}
