// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// arrangement has the ready messages in the order in which they are delivered or, in a
// session queue, the messages by which free sessions are listed.
//
// Most changes of the settings do not affect it, or only affect how the next level is
// chosen. But it depends on whether a level has one list, or one for each fair key, and
// on the shares of the keys. If that changes, a second arrangement is filled, some
// messages at a time (Reorder). Meanwhile the first stays in force, and both follow every
// change of the messages:
//
//	seq        1 ........ cursor ........ high ........ last
//	           in both  |  in the first  |  in both: arrived since
//
// When the cursor reaches high, the second replaces the first.
type arrangement struct {
	order    ordering.Order // that it is in force for
	levels   levels
	keys     keyTable
	fairKeys []uint32 // of the groups, by their numbers; zero is none
	void     bool     // it is not logged any more which keys were started
}

// filling is the second arrangement while it is being filled.
type filling struct {
	*arrangement
	cursor entries.SeqNo     // messages below it were visited
	high   entries.SeqNo     // highest sequence number at the beginning
	runs   []entries.SlabRun // of discarded arrangements, to be cleared first
}

func newArrangement(o ordering.Order) arrangement {
	a := arrangement{order: o, levels: levels{picker: newPicker(o)}}
	a.keys.configure(o)
	return a
}

// fits reports whether an arrangement for o is one for p, too: the messages are in the
// same lists, and the keys have the same shares.
func fits(o, p *ordering.Order) bool {
	if !o.Fair || !p.Fair {
		return o.Fair == p.Fair
	}
	return o.FinishesFirst() == p.FinishesFirst() && newPicker(*o).aged() == newPicker(*p).aged() &&
		o.DefaultShare == p.DefaultShare && slices.Equal(o.Shares, p.Shares)
}

// ChangeOrder puts an order into force: at once if the arrangement fits, else when
// Reorder has filled another.
func (x *Index) ChangeOrder(want ordering.Order) {
	x.void = x.void || x.order.FinishesFirst() && !want.FinishesFirst()
	x.discardNext()
	if x.void || !fits(&x.order, &want) {
		a := x.successor(want)
		x.next.arrangement, x.next.cursor, x.next.high = &a, 0, x.Entries.Last
		return
	}
	x.order = want
	x.levels.picker = newPicker(want)
	for _, l := range x.levels.all {
		if p, ok := l.(*plainLane); ok {
			x.arrange(p)
		}
	}
	if r, ok := x.levels.picker.(*winnerTree); ok {
		r.dirty = x.levels.open
	}
}

// successor returns an empty arrangement for an order.
func (x *Index) successor(o ordering.Order) arrangement {
	a := newArrangement(o)
	a.keys.lastStarted, a.keys.renumbered = x.keys.lastStarted, x.keys.renumbered+1
	return a
}

// Restart replaces an arrangement that has no messages yet, inside a snapshot.
func (x *Index) Restart(o ordering.Order) {
	old := x.arrangement
	x.arrangement = x.successor(o)
	for n := range x.Groups.All {
		if x.Groups.All[n].Refs > 0 {
			x.joinKey(uint32(n), &old)
		}
	}
}

// discardNext discards the second arrangement, if there is one. Reorder clears its runs.
func (x *Index) discardNext() {
	if x.next.arrangement == nil {
		return
	}
	for _, l := range x.next.levels.all {
		if p, ok := l.(*plainLane); ok && p.list.SlabRun() != nil {
			x.next.runs = append(x.next.runs, *p.list.SlabRun())
		}
	}
	x.next.arrangement = nil
}

// InForce reports whether the order that was configured last is in force.
func (x *Index) InForce() bool { return x.next.arrangement == nil }

// Reordering reports whether there is work for Reorder.
func (x *Index) Reordering() bool { return !x.InForce() || len(x.next.runs) > 0 }

// Reorder continues to fill the arrangement of the order that was configured last. It
// visits up to about most messages and reports whether there is more to do.
func (x *Index) Reorder(most int, listed func(entries.SeqNo, *entries.Entry) bool) (more bool) {
	for len(x.next.runs) > 0 && most > 0 {
		r := &x.next.runs[len(x.next.runs)-1]
		most -= x.Entries.ClearFirstSlab(r)
		if r.Empty() {
			x.next.runs = x.next.runs[:len(x.next.runs)-1]
		}
	}
	for x.next.arrangement != nil && most > 0 {
		seq, e := x.Entries.Next(x.next.cursor)
		if e == nil || seq > x.next.high {
			x.takeOver()
			break
		}
		x.next.cursor = seq + 1
		x.changeSecond(e, func() { x.addToArrangement(seq, e, listed) })
		most--
	}
	return x.Reordering()
}

// takeOver replaces the first arrangement by the second.
func (x *Index) takeOver() {
	x.swap()
	x.discardNext() // discards what was the first
	x.WakeKeys(x.Clock, math.MaxInt)
}

// swap exchanges the two arrangements, so that the functions that change the first can
// change the second.
func (x *Index) swap() { x.arrangement, *x.next.arrangement = *x.next.arrangement, x.arrangement }

// changeSecond applies a change of a message to the second arrangement.
func (x *Index) changeSecond(e *entries.Entry, change func()) {
	x.swap()
	x.joinKey(e.Group, x.next.arrangement)
	change()
	x.swap()
}

// has reports whether the second arrangement follows a message.
func (f *filling) has(seq entries.SeqNo) bool {
	return f.arrangement != nil && (seq < f.cursor || seq > f.high)
}

// addToArrangement adds a message in any state.
func (x *Index) addToArrangement(seq entries.SeqNo, e *entries.Entry, listed func(entries.SeqNo, *entries.Entry) bool) {
	k := e.Key()
	switch {
	case e.Is(entries.Locked):
		x.addInFlightHere(e, 1)
	case !e.Is(entries.Ready):
	case x.sessionQueue:
		if listed(seq, e) {
			x.levels.add(x, k, e)
		}
	default:
		if r := x.RunFor(k, e.Level); r != nil {
			e = x.Entries.Move(seq, r)
		}
		x.levels.add(x, k, e)
	}
}

// A change of the arrangement in force is applied to the second, too, if it follows the
// message. Callers test first whether there is a second: usually there is none.

func (x *Index) addToSecond(k entries.OrderKey, e *entries.Entry) {
	if x.next.has(k.Seq) {
		x.changeSecond(e, func() { x.levels.add(x, k, e) })
	}
}

func (x *Index) removeFromSecond(k entries.OrderKey, e *entries.Entry) {
	if x.next.has(k.Seq) {
		x.changeSecond(e, func() { x.levels.remove(x, k, e) })
	}
}

func (x *Index) addInFlightSecond(e *entries.Entry, by int64) {
	if x.next.has(e.Seq) {
		x.changeSecond(e, func() { x.addInFlightHere(e, by) })
	}
}

// fairKey returns the fair key of a group.
func (a *arrangement) fairKey(group uint32) uint32 {
	if int(group) >= len(a.fairKeys) {
		return 0
	}
	return a.fairKeys[group]
}

// joinKey adds the fair key of a group. It is started if it is in another arrangement, if
// there is one.
func (x *Index) joinKey(group uint32, other *arrangement) {
	name := x.Groups.All[group].Key
	if !x.order.Fair || name == "" || x.fairKey(group) != 0 {
		return
	}
	for int(group) >= len(x.fairKeys) {
		x.fairKeys = append(x.fairKeys, 0)
	}
	n := x.keys.join(name)
	x.fairKeys[group] = n
	if other == nil || other.void || !other.order.FinishesFirst() || !x.order.FinishesFirst() {
		return
	}
	if o, ok := other.keys.byName.Get(name); ok {
		x.keys.all[n].started = other.keys.all[o].started
	}
}

// leaveKey says that a group has no messages any more.
func (a *arrangement) leaveKey(group uint32, now int64) {
	if n := a.fairKey(group); n != 0 {
		a.fairKeys[group] = 0
		a.keys.leave(n, now)
	}
}
