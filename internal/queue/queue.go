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
	clock  int64  // latest time seen; the queue's time never goes back
	lastIn int64  // latest enqueue time given; it never goes back either

	msgs     store
	groups   groups
	counts   Counts
	index            // in force
	next     filling // to take its place
	byLevel  []readyStat
	classes  []classStat
	locks    locks
	schedule schedule
	window   window
	sessions sessions
	arrived  map[SeqNo]int64 // of messages with flagLent
	reasons  map[SeqNo]Ref   // of dead letters that have a reason beside their body
	restore  restore

	due  []SeqNo  // scratch of Tick
	seqs []SeqNo  // scratch of Admit
	ids  []digest // scratch of Enqueue
}

// New returns an empty queue. A token is valid only in the queue that gave it
// and in that queue's epoch: give each life of a queue an epoch of its own.
func New(cfg Config, epoch uint32) *Queue {
	q := &Queue{epoch: epoch, index: newIndex(cfg.Order)}
	q.groups.all = make([]group, 1) // number zero belongs to nothing
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
func (q *Queue) Counts() Counts { return q.counts }

// at returns the time of a command. A clock that goes back stands still for us:
// all deadlines of one duration stay in order, and nobody gets younger.
func (q *Queue) at(now time.Time) int64 {
	q.clock = max(q.clock, nanos(now))
	return q.clock
}

// apply makes the settings hold, the order when Reorder is done.
func (q *Queue) apply(cfg Config) {
	same := q.cfg.Order.Equal(&cfg.Order)
	q.cfg = cfg
	q.locks.configure(cfg.LockFor)
	q.window.configure(cfg.Duplicates)
	switch {
	case same:
	case q.restore.building:
		q.restart()
	default:
		q.changeOrder()
	}
}

// fill puts the messages of a snapshot, which has ended, in order.
func (q *Queue) fill() {
	q.counts.Ready = 0
	for seq, e := q.msgs.next(0); e != nil; seq, e = q.msgs.next(seq + 1) {
		if !e.is(Ready) {
			q.setAside(seq, e)
			continue
		}
		if r := q.runFor(orderKey{e.enqueued, seq}, e.level); r != nil {
			e = q.msgs.move(seq, r)
		}
		q.stand(seq, e)
	}
	invariant.Check(q.Check)
}

// join returns the group of b for one more message.
func (q *Queue) join(b belonging) uint32 {
	if b == (belonging{}) {
		return 0
	}
	n, first := q.groups.join(b)
	if !first {
		return n
	}
	g := &q.groups.all[n]
	if q.cfg.Sessions {
		g.sessionNo = q.sessions.join(g.session)
	}
	q.joinKey(n, nil)
	if q.next.index != nil {
		q.exchange()
		q.joinKey(n, q.next.index)
		q.exchange()
	}
	return n
}

// leave gives back what join returned.
func (q *Queue) leave(n uint32) {
	if n == 0 {
		return
	}
	session := q.groups.all[n].sessionNo
	if !q.groups.leave(n) {
		return
	}
	if session != 0 {
		q.sessions.leave(session)
	}
	q.leaveKey(n, q.clock)
	if q.next.index != nil {
		q.next.leaveKey(n, q.clock)
	}
}

// runFor returns the run in which to allocate a message that is about to be ready.
func (q *Queue) runFor(k orderKey, l Level) *slabRun {
	if q.restore.building {
		return nil
	}
	if p, ok := q.levels.at(q, l).(*plainLane); ok && p.runs {
		return p.line.runFor(&q.msgs, k)
	}
	return nil
}

// stand makes a message ready, at its place.
func (q *Queue) stand(seq SeqNo, e *entry) {
	e.setState(Ready)
	e.slot = 0
	q.counts.Ready++
	if q.restore.building {
		return // the end of the snapshot puts everything in order at once
	}
	for int(e.level) >= len(q.byLevel) {
		q.byLevel = append(q.byLevel, readyStat{})
	}
	lv := &q.byLevel[e.level]
	lv.ready++
	lv.bytes += int64(e.bodySize)
	q.classes = countClass(q.classes, seq, e)
	q.msgs.noteExpiry(seq, e.expiry())
	if q.cfg.Sessions {
		q.queueUp(seq, e)
		return
	}
	k := orderKey{e.enqueued, seq}
	q.levels.add(q, k, e)
	if q.next.index != nil {
		q.addToSecond(k, e)
	}
}

// unstand takes a message that is not first out of its place.
func (q *Queue) unstand(seq SeqNo, e *entry, to State) {
	e.setState(to)
	q.counts.Ready--
	if q.restore.building {
		return
	}
	q.uncount(e)
	if q.cfg.Sessions {
		q.dropOut(seq, e)
		return
	}
	q.withdraw(orderKey{e.enqueued, seq}, e)
}

// withdraw lets a message be handed out no more.
func (q *Queue) withdraw(k orderKey, e *entry) {
	q.levels.leave(q, k, e)
	if q.next.index != nil {
		q.leaveSecond(k, e)
	}
}

func (q *Queue) uncount(e *entry) {
	lv, st := &q.byLevel[e.level], &q.classes[e.class]
	lv.ready--
	st.ready--
	lv.bytes -= int64(e.bodySize)
	st.bytes -= int64(e.bodySize)
}

// remove forgets a message that is not locked.
func (q *Queue) remove(seq SeqNo, e *entry, out *machine.Effects) {
	switch e.state() {
	case Ready:
		q.unstand(seq, e, Locked)
	case Deferred:
		q.counts.Deferred--
	case Scheduled:
		q.schedule.remove(e.slot)
		q.counts.Scheduled--
	}
	q.erase(seq, e, out)
}

// erase frees the entry of a message that no structure refers to any more.
func (q *Queue) erase(seq SeqNo, e *entry, out *machine.Effects) {
	q.counts.Bytes -= int64(e.bodySize)
	out.Freed = append(out.Freed, e.body())
	if q.cfg.Sessions {
		q.sessionOf(e).aside.discard(seq)
	}
	q.leave(e.group)
	if e.flags&flagLent != 0 {
		delete(q.arrived, seq)
	}
	if len(q.reasons) > 0 {
		q.dropReason(seq, out)
	}
	q.msgs.delete(seq)
}

// gone logs that a message is no more.
func writeGone(out *machine.Effects, seq SeqNo) {
	out.Begin(kindGone)
	out.Uint(uint64(seq))
	out.End()
}

// delivery shows a message.
func (q *Queue) delivery(seq SeqNo, e *entry) Delivery {
	g := &q.groups.all[e.group]
	d := Delivery{
		Seq:        seq,
		Origin:     e.origin,
		Body:       e.body(),
		Level:      e.level,
		Class:      e.class,
		State:      e.state(),
		Failures:   e.failures,
		Hops:       e.hops,
		First:      e.flags&flagSeen == 0,
		Session:    g.session,
		InSession:  g.inSession,
		Key:        g.key,
		EnqueuedAt: moment(q.enqueuedAt(seq, e)),
	}
	if e.flags&flagLent != 0 {
		d.Since = moment(e.enqueued)
	}
	if e.life != 0 {
		d.ExpiresAt = moment(e.expiry())
	}
	if len(q.reasons) > 0 {
		d.Reason = q.reasons[seq]
	}
	switch e.state() {
	case Scheduled:
		d.NotBefore = moment(q.schedule.all[e.slot].at)
	case Locked:
		d.LockedUntil = moment(q.lockedUntil(e.slot))
		d.Deferred = e.flags&flagDeferred != 0
	}
	return d
}
