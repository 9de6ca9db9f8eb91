// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/invariant"
)

// index is the ready messages in the order in which they are handed out, or those of
// a queue of sessions by which free sessions are.
//
// Most changes of the settings change nothing in it, or only by what the next level
// is chosen. But whether the messages of a level are one line, or one for each fair
// key, and what each key may have, is what it is made of. Then a second index is
// filled, some messages at a time (Reorder), while the first remains in force and
// both follow what happens to the messages:
//
//	numbers    1 ........ cursor ........ high ........ last
//	           in both  |  in the first  |  in both: came since
//
// When the cursor is at the end the second takes the place of the first.
type index struct {
	order    Order // that it is in force for
	levels   levels
	keys     keys
	fairKeys []uint32 // of the groups, by their numbers; zero is none
	void     bool     // which keys were started is not logged any more
}

// filling is the second index and how far it has come.
type filling struct {
	*index
	cursor SeqNo     // messages below it were looked at
	high   SeqNo     // the highest number when it was begun
	runs   []slabRun // of an index that is given up: to be cleared away before
}

func newIndex(o Order) index {
	x := index{order: o, levels: levels{picker: newPicker(o)}}
	x.keys.configure(o)
	return x
}

// fits reports whether an index that was made for o serves p as well: the messages
// are in the same lines, and the keys have the same shares.
func fits(o, p *Order) bool {
	if !o.Fair || !p.Fair {
		return o.Fair == p.Fair
	}
	return o.FinishesFirst() == p.FinishesFirst() && newPicker(*o).aged() == newPicker(*p).aged() &&
		o.Others == p.Others && slices.Equal(o.Shares, p.Shares)
}

// changeOrder makes the order of the settings hold: at once if the index serves it
// too, else when Reorder has filled another.
func (q *Queue) changeOrder() {
	want := q.cfg.Order
	q.void = q.void || q.order.FinishesFirst() && !want.FinishesFirst()
	q.giveUp()
	if q.void || !fits(&q.order, &want) {
		x := q.succeed(want)
		q.next.index, q.next.cursor, q.next.high = &x, 0, q.msgs.last
		return
	}
	q.order = want
	q.levels.picker = newPicker(want)
	for _, l := range q.levels.all {
		if p, ok := l.(*plainLane); ok {
			q.arrange(p)
		}
	}
	if r, ok := q.levels.picker.(*ranked); ok {
		r.dirty = q.levels.open
	}
}

// succeed returns an empty index that can take the place of the one in force.
func (q *Queue) succeed(o Order) index {
	x := newIndex(o)
	x.keys.starts, x.keys.counts = q.keys.starts, q.keys.counts+1
	return x
}

// restart replaces an index that has no messages yet, inside a snapshot.
func (q *Queue) restart() {
	old := q.index
	q.index = q.succeed(q.cfg.Order)
	for n := range q.groups.all {
		if q.groups.all[n].refs > 0 {
			q.joinKey(uint32(n), &old)
		}
	}
}

// giveUp gives up the second index, if there is one. Its runs are cleared away by
// Reorder.
func (q *Queue) giveUp() {
	if q.next.index == nil {
		return
	}
	for _, l := range q.next.levels.all {
		if p, ok := l.(*plainLane); ok && p.line.inRun() > 0 {
			q.next.runs = append(q.next.runs, *p.line.run)
		}
	}
	q.next.index = nil
}

// InForce reports whether the order that was configured last is in force.
func (q *Queue) InForce() bool { return q.next.index == nil }

// Reordering reports whether there is work for Reorder.
func (q *Queue) Reordering() bool { return !q.InForce() || len(q.next.runs) > 0 }

// Reorder goes on with putting the messages into the order that was configured last.
// It visits up to about most messages and reports whether there is more to do.
func (q *Queue) Reorder(most int) (more bool) {
	for len(q.next.runs) > 0 && most > 0 {
		r := &q.next.runs[len(q.next.runs)-1]
		most -= q.msgs.clearFirstSlab(r)
		if r.first == 0 {
			q.next.runs = q.next.runs[:len(q.next.runs)-1]
		}
	}
	for q.next.index != nil && most > 0 {
		seq, e := q.msgs.next(q.next.cursor)
		if e == nil || seq > q.next.high {
			q.takeOver()
			break
		}
		q.next.cursor = seq + 1
		q.inSecond(e, func() { q.follow(seq, e) })
		most--
	}
	return q.Reordering()
}

// takeOver puts the second index in the place of the first.
func (q *Queue) takeOver() {
	q.exchange()
	q.giveUp() // what was the first
	q.wakeKeys(q.clock, math.MaxInt)
	invariant.Check(q.Check)
}

// exchange lets the second index be the first. What changes an index need not know
// that there are two.
func (q *Queue) exchange() { q.index, *q.next.index = *q.next.index, q.index }

// inSecond has change do to the second index what happened to a message.
func (q *Queue) inSecond(e *entry, change func()) {
	q.exchange()
	q.joinKey(e.group, q.next.index)
	change()
	q.exchange()
}

// has reports whether the second index follows a message.
func (f *filling) has(seq SeqNo) bool {
	return f.index != nil && (seq < f.cursor || seq > f.high)
}

// follow puts a message into the index, whatever its state.
func (q *Queue) follow(seq SeqNo, e *entry) {
	k := orderKey{e.enqueued, seq}
	switch {
	case e.is(Locked):
		q.fly(e, 1)
	case !e.is(Ready):
	case q.cfg.Sessions:
		if q.sessionOf(e).shows(seq, e.level) {
			q.levels.add(q, k, e)
		}
	default:
		if r := q.runFor(k, e.level); r != nil {
			e = q.msgs.move(seq, r)
		}
		q.levels.add(q, k, e)
	}
}

// What is done to the index in force is done to the second, too, if it follows the
// message. Callers look first whether there is one: mostly there is not.

func (q *Queue) addToSecond(k orderKey, e *entry) {
	if q.next.has(k.seq) {
		q.inSecond(e, func() { q.levels.add(q, k, e) })
	}
}

func (q *Queue) leaveSecond(k orderKey, e *entry) {
	if q.next.has(k.seq) {
		q.inSecond(e, func() { q.levels.leave(q, k, e) })
	}
}

func (q *Queue) flyInSecond(e *entry, by int64) {
	if q.next.has(e.seq) {
		q.inSecond(e, func() { q.fly(e, by) })
	}
}

// fairKey returns the fair key of a group in the index.
func (x *index) fairKey(group uint32) uint32 {
	if int(group) >= len(x.fairKeys) {
		return 0
	}
	return x.fairKeys[group]
}

// joinKey makes the fair key of a group known to the index. A key that was started in
// another index, if there is one, is so in this one.
func (q *Queue) joinKey(group uint32, other *index) {
	name := q.groups.all[group].key
	if !q.order.Fair || name == "" || q.fairKey(group) != 0 {
		return
	}
	for int(group) >= len(q.fairKeys) {
		q.fairKeys = append(q.fairKeys, 0)
	}
	n := q.keys.join(name)
	q.fairKeys[group] = n
	if other == nil || other.void || !other.order.FinishesFirst() || !q.order.FinishesFirst() {
		return
	}
	if o, ok := other.keys.byName[name]; ok {
		q.keys.all[n].started = other.keys.all[o].started
	}
}

// leaveKey says that a group has no messages any more.
func (x *index) leaveKey(group uint32, now int64) {
	if n := x.fairKey(group); n != 0 {
		x.fairKeys[group] = 0
		x.keys.leave(n, now)
	}
}
