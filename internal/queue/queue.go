// SPDX-License-Identifier: Apache-2.0

package queue

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

// Queue is one queue. It belongs to one goroutine.
type Queue struct {
	cfg    Config
	epoch  uint32
	nonces uint32 // tokens given in this epoch
	lastIn int64  // latest enqueue time given; it never goes back either

	index    order.Index // entries, and the ready ones in order
	counts   Counts      // but for Ready, which Index counts
	locks    lease.LockTable
	schedule lease.Schedule
	window   lease.DedupWindow
	sessions session.Table
	reasons  map[SeqNo]Ref // of dead letters that have a reason beside their body
	restore  restore

	due  []SeqNo        // scratch of Tick
	seqs []SeqNo        // scratch of Admit
	ids  []lease.IDHash // scratch of Enqueue
}

// New returns an empty queue. A token is valid only in the queue that gave it
// and in that queue's epoch: give each life of a queue an epoch of its own.
func New(cfg Config, epoch uint32) *Queue {
	q := &Queue{epoch: epoch, index: order.New(cfg.Order, cfg.Sessions), sessions: session.NewTable()}
	q.apply(cfg)
	return q
}

// Configure changes the settings and logs them. Messages keep their level, age
// and place; Sessions and IsDead stay as New had them. All of it holds at once, but
// for the order, which may take some calls of Reorder.
func (q *Queue) Configure(now time.Time, cfg Config, out *Effects) {
	q.at(now)
	cfg.Sessions, cfg.IsDead = q.cfg.Sessions, q.cfg.IsDead
	q.apply(cfg)
	out.Begin(cfg.KindOf(record.KindConfig, record.KindSettings))
	record.WriteSettings(&out.Effects, cfg)
	out.End()
}

// Config returns the settings. Its slices must not be changed.
func (q *Queue) Config() Config { return q.cfg }

// Counts returns how many messages there are in each state.
func (q *Queue) Counts() Counts {
	c := q.counts
	c.Ready = q.index.Ready
	return c
}

// at returns the time of a command. A clock that goes back stands still for us:
// all deadlines of one duration stay in order, and nobody gets younger.
func (q *Queue) at(now time.Time) int64 {
	q.index.Clock = max(q.index.Clock, entries.Nanos(now))
	return q.index.Clock
}

// apply makes the settings hold, the order when Reorder is done.
func (q *Queue) apply(cfg Config) {
	same := q.cfg.Order.Equal(&cfg.Order)
	q.cfg = cfg
	q.locks.Configure(cfg.LockFor)
	q.window.Configure(cfg.Duplicates)
	switch {
	case same:
	case q.restore.inSnapshot:
		q.index.Restart(cfg.Order)
	default:
		q.index.ChangeOrder(cfg.Order)
	}
}

// orderRestored puts the messages of a snapshot, which has ended, in order.
func (q *Queue) orderRestored() {
	q.index.Ready = 0
	for seq, e := q.index.Entries.Next(0); e != nil; seq, e = q.index.Entries.Next(seq + 1) {
		if !e.Is(Ready) {
			q.setAside(seq, e)
			continue
		}
		if r := q.index.RunFor(e.Key(), e.Level); r != nil {
			e = q.index.Entries.Move(seq, r)
		}
		q.markReady(seq, e)
	}
	invariant.Check(q.Check)
}

// InForce reports whether the order that was configured last is in force.
func (q *Queue) InForce() bool { return q.index.InForce() }

// Reordering reports whether there is work for Reorder.
func (q *Queue) Reordering() bool { return q.index.Reordering() }

// Reorder goes on with putting the messages into the order that was configured last.
// It visits up to about most messages and reports whether there is more to do.
func (q *Queue) Reorder(most int) (more bool) {
	before := q.InForce()
	more = q.index.Reorder(most, q.listed)
	if !before && q.InForce() {
		invariant.Check(q.Check)
	}
	return more
}

// listed reports whether a session is listed in a level by this message.
func (q *Queue) listed(seq SeqNo, e *entries.Entry) bool {
	return q.sessionOf(e).ListedBy(seq, e.Level)
}

// Saturated reports whether the next message is chosen by shares because the queue
// is saturated.
func (q *Queue) Saturated(now time.Time) bool { return q.index.Saturated(q.at(now)) }

// join returns the group of b for one more message.
func (q *Queue) join(b entries.GroupKey) uint32 {
	if b == (entries.GroupKey{}) {
		return 0
	}
	n, first := q.index.Groups.Join(b)
	if !first {
		return n
	}
	g := &q.index.Groups.All[n]
	if q.cfg.Sessions {
		g.SessionNo = q.sessions.Join(g.Session)
	}
	q.index.JoinGroup(n)
	return n
}

// leave gives back what join returned.
func (q *Queue) leave(n uint32) {
	if n == 0 {
		return
	}
	session := q.index.Groups.All[n].SessionNo
	if !q.index.Groups.Leave(n) {
		return
	}
	if session != 0 {
		q.sessions.Leave(session)
	}
	q.index.LeaveGroup(n)
}

// markReady makes a message ready, at its place.
func (q *Queue) markReady(seq SeqNo, e *entries.Entry) {
	e.SetState(Ready)
	e.StateIndex = 0
	q.index.Ready++
	if q.restore.inSnapshot {
		return // the end of the snapshot puts everything in order at once
	}
	q.index.Count(seq, e)
	if q.cfg.Sessions {
		q.sessionOf(e).AddReady(&q.index, seq, e)
		return
	}
	q.index.Add(e.Key(), e)
}

// unmarkReady takes a message that is not first out of its place.
func (q *Queue) unmarkReady(seq SeqNo, e *entries.Entry, to State) {
	e.SetState(to)
	q.index.Ready--
	if q.restore.inSnapshot {
		return
	}
	q.index.Uncount(e)
	if q.cfg.Sessions {
		q.sessionOf(e).RemoveReady(&q.index, seq, e)
		return
	}
	q.index.Remove(e.Key(), e)
}

// remove forgets a message that is not locked.
func (q *Queue) remove(seq SeqNo, e *entries.Entry, out *machine.Effects) {
	switch e.State() {
	case Ready:
		q.unmarkReady(seq, e, Locked)
	case Deferred:
		q.counts.Deferred--
	case Scheduled:
		q.schedule.Remove(e.StateIndex)
		q.counts.Scheduled--
	}
	q.free(seq, e, out)
}

// free frees the entry of a message that no structure refers to any more.
func (q *Queue) free(seq SeqNo, e *entries.Entry, out *machine.Effects) {
	q.counts.Bytes -= int64(e.BodySize)
	out.Freed = append(out.Freed, e.Body())
	if q.cfg.Sessions {
		q.sessionOf(e).Discard(seq)
	}
	q.leave(e.Group)
	q.index.Entries.DropArrivalTime(seq, e)
	if len(q.reasons) > 0 {
		q.dropReason(seq, out)
	}
	q.index.Entries.Delete(seq)
}

// logRemoved logs that a message is no more.
func logRemoved(out *machine.Effects, seq SeqNo) {
	out.Begin(record.KindRemoved)
	out.Uint(uint64(seq))
	out.End()
}

// delivery shows a message.
func (q *Queue) delivery(seq SeqNo, e *entries.Entry) Delivery {
	g := &q.index.Groups.All[e.Group]
	d := Delivery{
		Seq:        seq,
		Origin:     e.Origin,
		Body:       e.Body(),
		Level:      e.Level,
		Class:      e.Class,
		State:      e.State(),
		Failures:   e.Failures,
		Hops:       e.Hops,
		First:      e.Flags&entries.FlagDelivered == 0,
		Session:    g.Session,
		InSession:  g.InSession,
		Key:        g.Key,
		EnqueuedAt: entries.Moment(q.enqueuedAt(seq, e)),
	}
	if e.Flags&entries.FlagInherited != 0 {
		d.Since = entries.Moment(e.OrderTime)
	}
	if e.Life != 0 {
		d.ExpiresAt = entries.Moment(e.Expiry())
	}
	if len(q.reasons) > 0 {
		d.Reason = q.reasons[seq]
	}
	switch e.State() {
	case Scheduled:
		d.NotBefore = entries.Moment(q.schedule.All[e.StateIndex].At)
	case Locked:
		d.LockedUntil = entries.Moment(q.lockedUntil(e.StateIndex))
		d.Deferred = e.Flags&entries.FlagDeferred != 0
	}
	return d
}

// itemOf is the item of a message that the queue has.
func (q *Queue) itemOf(e *entries.Entry) record.Item {
	it := record.Item{
		GroupKey:      q.index.Groups.All[e.Group].GroupKey,
		Body:          e.Body(),
		Origin:        e.Origin,
		OrderTime:     e.OrderTime,
		Life:          e.Life,
		LifeInSeconds: e.Flags & entries.FlagSeconds,
		Failures:      e.Failures,
		Level:         e.Level,
		Class:         e.Class,
		Hops:          e.Hops,
		State:         e.UnlockedState(),
	}
	if it.State == Scheduled {
		it.NotBefore = q.schedule.All[e.StateIndex].At
	}
	return it
}

// insert gives an item the number seq. Live commands and replay both come here.
func (q *Queue) insert(seq SeqNo, it *record.Item, out *machine.Effects) {
	var r *entries.SlabRun
	if it.State == Ready && !q.restore.inSnapshot {
		r = q.index.RunFor(entries.OrderKey{At: it.OrderTime, Seq: seq}, it.Level)
	}
	e := q.index.Entries.Put(seq, r)
	*e = entries.Entry{
		Seq:       seq,
		BodyAt:    it.Body.At,
		BodySize:  it.Body.Size,
		OrderTime: it.OrderTime,
		Origin:    it.Origin,
		Group:     q.join(it.GroupKey),
		Life:      it.Life,
		Failures:  it.Failures,
		Level:     it.Level,
		Class:     it.Class,
		Flags:     it.LifeInSeconds,
		Hops:      it.Hops,
	}
	if it.ArrivalTime != 0 {
		q.index.Entries.SetArrivalTime(seq, e, it.ArrivalTime)
	}
	q.counts.Bytes += int64(it.Body.Size)
	out.Added = append(out.Added, it.Body)
	switch it.State {
	case Scheduled:
		e.SetState(Scheduled)
		e.StateIndex = q.schedule.Add(seq, it.NotBefore)
		q.counts.Scheduled++
		q.setAside(seq, e)
	case Deferred:
		e.SetState(Deferred)
		q.counts.Deferred++
		q.setAside(seq, e)
	default:
		q.markReady(seq, e)
	}
}
