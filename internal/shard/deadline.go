// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"container/heap"
	"time"
)

// deadlines orders the slots by when their machine next needs Tick: the one timer
// of the shard.
type deadlines struct{ slots []*slot }

func (d *deadlines) Len() int           { return len(d.slots) }
func (d *deadlines) Less(i, j int) bool { return d.slots[i].due.Before(d.slots[j].due) }
func (d *deadlines) Swap(i, j int) {
	d.slots[i], d.slots[j] = d.slots[j], d.slots[i]
	d.slots[i].index, d.slots[j].index = i, j
}

// Push is for container/heap.
func (d *deadlines) Push(x any) {
	sl := x.(*slot)
	sl.index = len(d.slots)
	d.slots = append(d.slots, sl)
}

// Pop is for container/heap.
func (d *deadlines) Pop() any {
	n := len(d.slots) - 1
	sl := d.slots[n]
	d.slots[n] = nil
	d.slots = d.slots[:n]
	sl.index = -1
	return sl
}

// set files the slot under the deadline its machine has now.
func (d *deadlines) set(sl *slot) {
	at, ok := sl.q.NextDeadline()
	switch {
	case !ok:
		d.remove(sl)
	case sl.index < 0:
		sl.due = at
		heap.Push(d, sl)
	case !at.Equal(sl.due):
		sl.due = at
		heap.Fix(d, sl.index)
	}
}

func (d *deadlines) remove(sl *slot) {
	if sl.index >= 0 {
		heap.Remove(d, sl.index)
	}
}

// due returns the slot whose time has come longest ago, nil if none has.
func (d *deadlines) due(now time.Time) *slot {
	if len(d.slots) == 0 || d.slots[0].due.After(now) {
		return nil
	}
	return d.slots[0]
}

func (d *deadlines) next() (time.Time, bool) {
	if len(d.slots) == 0 {
		return time.Time{}, false
	}
	return d.slots[0].due, true
}
