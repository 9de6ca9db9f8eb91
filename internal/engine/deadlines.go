// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/heap"
	"time"
)

// deadlines orders the units by when their machine next needs Tick: the one timer
// of the engine.
type deadlines struct{ units []*Unit }

// deadline is what a unit keeps for it.
type deadline struct {
	at    time.Time
	index int // in deadlines; -1 if not there
}

func (d *deadlines) Len() int           { return len(d.units) }
func (d *deadlines) Less(i, j int) bool { return d.units[i].at.Before(d.units[j].at) }
func (d *deadlines) Swap(i, j int) {
	d.units[i], d.units[j] = d.units[j], d.units[i]
	d.units[i].index, d.units[j].index = i, j
}

// Push is for container/heap.
func (d *deadlines) Push(x any) {
	u := x.(*Unit)
	u.index = len(d.units)
	d.units = append(d.units, u)
}

// Pop is for container/heap.
func (d *deadlines) Pop() any {
	n := len(d.units) - 1
	u := d.units[n]
	d.units[n] = nil
	d.units = d.units[:n]
	u.index = -1
	return u
}

// set files the unit under the deadline its machine has now.
func (d *deadlines) set(u *Unit) {
	at, ok := u.Machine.NextDeadline()
	switch {
	case !ok:
		d.remove(u)
	case u.index < 0:
		u.at = at
		heap.Push(d, u)
	case !at.Equal(u.at):
		u.at = at
		heap.Fix(d, u.index)
	}
}

// putOff has a unit wait until a time, or until it is filed anew.
func (d *deadlines) putOff(u *Unit, until time.Time) {
	if u.index >= 0 && u.at.Before(until) {
		u.at = until
		heap.Fix(d, u.index)
	}
}

func (d *deadlines) remove(u *Unit) {
	if u.index >= 0 {
		heap.Remove(d, u.index)
	}
}

// due returns the unit whose time has come longest ago, nil if none has.
func (d *deadlines) due(now time.Time) *Unit {
	if len(d.units) == 0 || d.units[0].at.After(now) {
		return nil
	}
	return d.units[0]
}

func (d *deadlines) next() (time.Time, bool) {
	if len(d.units) == 0 {
		return time.Time{}, false
	}
	return d.units[0].at, true
}
