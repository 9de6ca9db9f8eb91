// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/invariant"
	"github.com/triagemq/triagemq/internal/machine"
)

// Queue is one queue. It belongs to one goroutine.
type Queue struct {
	cfg    Config
	epoch  uint32
	nonces uint32 // tokens given in this epoch
	lastIn int64  // latest enqueue time given; it never goes back either

	index    Index  // entries, and the ready ones in order
	counts   Counts // but for Ready, which Index counts
	locks    locks
	schedule schedule
	window   dedupWindow
	sessions sessionTable
	reasons  map[SeqNo]Ref // of dead letters that have a reason beside their body
	restore  restore

	due  []SeqNo  // scratch of Tick
	seqs []SeqNo  // scratch of Admit
	ids  []idHash // scratch of Enqueue
}

// New returns an empty queue. A token is valid only in the queue that gave it
// and in that queue's epoch: give each life of a queue an epoch of its own.
func New(cfg Config, epoch uint32) *Queue {
	q := &Queue{epoch: epoch}
	q.index.arrangement, q.index.sessionQueue = newArrangement(cfg.Order), cfg.Sessions
	q.index.groups.all = make([]group, 1) // number zero belongs to nothing
	q.sessions.all = make([]session, 1)
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
	out.Begin(cfg.kindOf(kindConfig, kindSettings))
	writeSettings(&out.Effects, cfg)
	out.End()
}

// Config returns the settings. Its slices must not be changed.
func (q *Queue) Config() Config { return q.cfg }

// Counts returns how many messages there are in each state.
func (q *Queue) Counts() Counts {
	c := q.counts
	c.Ready = q.index.ready
	return c
}

// at returns the time of a command. A clock that goes back stands still for us:
// all deadlines of one duration stay in order, and nobody gets younger.
func (q *Queue) at(now time.Time) int64 {
	q.index.clock = max(q.index.clock, nanos(now))
	return q.index.clock
}

// apply makes the settings hold, the order when Reorder is done.
func (q *Queue) apply(cfg Config) {
	same := q.cfg.Order.Equal(&cfg.Order)
	q.cfg = cfg
	q.locks.configure(cfg.LockFor)
	q.window.configure(cfg.Duplicates)
	switch {
	case same:
	case q.restore.inSnapshot:
		q.index.restart(cfg.Order)
	default:
		q.index.changeOrder(cfg.Order)
	}
}

// fill puts the messages of a snapshot, which has ended, in order.
func (q *Queue) orderRestored() {
	q.index.ready = 0
	for seq, e := q.index.msgs.next(0); e != nil; seq, e = q.index.msgs.next(seq + 1) {
		if !e.is(Ready) {
			q.setAside(seq, e)
			continue
		}
		if r := q.index.runFor(orderKey{e.orderTime, seq}, e.level); r != nil {
			e = q.index.msgs.move(seq, r)
		}
		q.markReady(seq, e)
	}
	invariant.Check(q.Check)
}

// InForce reports whether the order that was configured last is in force.
func (q *Queue) InForce() bool { return q.index.inForce() }

// Reordering reports whether there is work for Reorder.
func (q *Queue) Reordering() bool { return q.index.reordering() }

// Reorder goes on with putting the messages into the order that was configured last.
// It visits up to about most messages and reports whether there is more to do.
func (q *Queue) Reorder(most int) (more bool) {
	before := q.InForce()
	more = q.index.reorder(most, q.listed)
	if !before && q.InForce() {
		invariant.Check(q.Check)
	}
	return more
}

// listed reports whether a session is listed in a level by this message.
func (q *Queue) listed(seq SeqNo, e *entry) bool { return q.sessionOf(e).listedBy(seq, e.level) }

// Saturated reports whether the next message is chosen by shares because the queue
// is saturated.
func (q *Queue) Saturated(now time.Time) bool { return q.index.saturated(q.at(now)) }

// join returns the group of b for one more message.
func (q *Queue) join(b groupKey) uint32 {
	if b == (groupKey{}) {
		return 0
	}
	n, first := q.index.groups.join(b)
	if !first {
		return n
	}
	g := &q.index.groups.all[n]
	if q.cfg.Sessions {
		g.sessionNo = q.sessions.join(g.session)
	}
	q.index.joinGroup(n)
	return n
}

// leave gives back what join returned.
func (q *Queue) leave(n uint32) {
	if n == 0 {
		return
	}
	session := q.index.groups.all[n].sessionNo
	if !q.index.groups.leave(n) {
		return
	}
	if session != 0 {
		q.sessions.leave(session)
	}
	q.index.leaveGroup(n)
}

// stand makes a message ready, at its place.
func (q *Queue) markReady(seq SeqNo, e *entry) {
	e.setState(Ready)
	e.stateIndex = 0
	q.index.ready++
	if q.restore.inSnapshot {
		return // the end of the snapshot puts everything in order at once
	}
	q.index.count(seq, e)
	if q.cfg.Sessions {
		q.sessionOf(e).addToSession(&q.index, seq, e)
		return
	}
	q.index.add(orderKey{e.orderTime, seq}, e)
}

// unstand takes a message that is not first out of its place.
func (q *Queue) unmarkReady(seq SeqNo, e *entry, to State) {
	e.setState(to)
	q.index.ready--
	if q.restore.inSnapshot {
		return
	}
	q.index.uncount(e)
	if q.cfg.Sessions {
		q.sessionOf(e).removeFromSession(&q.index, seq, e)
		return
	}
	q.index.remove(orderKey{e.orderTime, seq}, e)
}

// remove forgets a message that is not locked.
func (q *Queue) remove(seq SeqNo, e *entry, out *machine.Effects) {
	switch e.state() {
	case Ready:
		q.unmarkReady(seq, e, Locked)
	case Deferred:
		q.counts.Deferred--
	case Scheduled:
		q.schedule.remove(e.stateIndex)
		q.counts.Scheduled--
	}
	q.free(seq, e, out)
}

// erase frees the entry of a message that no structure refers to any more.
func (q *Queue) free(seq SeqNo, e *entry, out *machine.Effects) {
	q.counts.Bytes -= int64(e.bodySize)
	out.Freed = append(out.Freed, e.body())
	if q.cfg.Sessions {
		q.sessionOf(e).aside.discard(seq)
	}
	q.leave(e.group)
	q.index.msgs.dropArrivalTime(seq, e)
	if len(q.reasons) > 0 {
		q.dropReason(seq, out)
	}
	q.index.msgs.delete(seq)
}

// gone logs that a message is no more.
func logRemoved(out *machine.Effects, seq SeqNo) {
	out.Begin(kindRemoved)
	out.Uint(uint64(seq))
	out.End()
}

// delivery shows a message.
func (q *Queue) delivery(seq SeqNo, e *entry) Delivery {
	g := &q.index.groups.all[e.group]
	d := Delivery{
		Seq:        seq,
		Origin:     e.origin,
		Body:       e.body(),
		Level:      e.level,
		Class:      e.class,
		State:      e.state(),
		Failures:   e.failures,
		Hops:       e.hops,
		First:      e.flags&flagDelivered == 0,
		Session:    g.session,
		InSession:  g.inSession,
		Key:        g.key,
		EnqueuedAt: moment(q.enqueuedAt(seq, e)),
	}
	if e.flags&flagInherited != 0 {
		d.Since = moment(e.orderTime)
	}
	if e.life != 0 {
		d.ExpiresAt = moment(e.expiry())
	}
	if len(q.reasons) > 0 {
		d.Reason = q.reasons[seq]
	}
	switch e.state() {
	case Scheduled:
		d.NotBefore = moment(q.schedule.all[e.stateIndex].at)
	case Locked:
		d.LockedUntil = moment(q.lockedUntil(e.stateIndex))
		d.Deferred = e.flags&flagDeferred != 0
	}
	return d
}
