// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/triagemq/triagemq/internal/machine"
)

// byWork orders the lines of a lane that finishes first: the keys that were started,
// in the order in which they were, then the others by their first messages.
type byStarted struct{}

func (byStarted) slot(l *keyList) *int { return &l.startedIndex }

func (byStarted) before(a, b *keyList) bool {
	switch {
	case a.started != 0 && b.started != 0:
		return a.started < b.started
	case a.started != 0 || b.started != 0:
		return a.started != 0
	}
	return a.first.before(b.first)
}

// start notes that a message is handed out, the first of its key perhaps. It is
// logged, so that a restart goes on with what was begun.
func (q *Queue) noteStarted(e *entry, out *Effects) {
	n := q.index.fairKey(e.group)
	if n == 0 || !q.index.order.FinishesFirst() || q.index.keys.all[n].started != 0 {
		return
	}
	q.startKey(n, q.index.keys.lastStarted+1)
	if q.index.void {
		return
	}
	if name, number := q.index.keys.all[n].name, q.index.keys.lastStarted; q.index.next.arrangement != nil {
		q.index.swap()
		if n, ok := q.index.keys.byName[name]; ok && q.index.order.FinishesFirst() {
			q.startKey(n, number)
		}
		q.index.swap()
	}
	out.Begin(kindStarted)
	writeStarted(&out.Effects, &q.index.keys.all[n])
	out.End()
}

func writeStarted(out *machine.Effects, k *fairKey) {
	out.Uint(k.started)
	out.String(k.name)
}

// begin makes a key one that was started, as the number-th.
func (q *Queue) startKey(n uint32, number uint64) {
	k := &q.index.keys.all[n]
	k.started, q.index.keys.lastStarted = number, max(q.index.keys.lastStarted, number)
	for _, line := range k.lists {
		line.started = number
		if line.eligible {
			q.index.levels.all[line.level].(*fairLane).started.fix(line)
		}
		q.index.levels.changed(line.level)
	}
}

// startedKeys returns the keys that were started, in that order. It visits every key.
func (q *Queue) startedKeys() []fairKey {
	var all []fairKey
	for _, k := range q.index.keys.all {
		if k.started != 0 && !q.index.void {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b fairKey) int { return cmp.Compare(a.started, b.started) })
	return all
}

// snapStarted writes which keys were started. One that is while this goes on has
// its own record. If the keys were numbered anew, it begins again: to read of a key
// twice does no harm.
func (q *Queue) snapStarted(c cursor, b *machine.Budget, out *machine.Effects) cursor {
	if c.keys != q.index.keys.renumbered {
		c = cursor{phase: phaseStarted, keys: q.index.keys.renumbered}
	}
	part, first, began := newChunk(b, out), c.next, false
	for ; c.next < uint64(len(q.index.keys.all)) && part.more(c.next == first); c.next++ {
		q.index.msgs.visits++
		k := &q.index.keys.all[c.next]
		if k.started == 0 || q.index.void {
			continue
		}
		if !began {
			out.Begin(kindStarted)
			began = true
		}
		writeStarted(out, k)
	}
	if began {
		out.End()
	}
	if c.next >= uint64(len(q.index.keys.all)) {
		return cursor{phase: phaseEnd}
	}
	return c
}

// replayStarted reads which keys were started. Inside a snapshot the messages of a
// key may not have come yet: the part about keys, at its end, will tell again.
func (q *Queue) replayStarted(r *machine.Reader) error {
	for r.Len() > 0 {
		number, name := r.Uint(), r.String()
		if r.Bad() || number == 0 {
			r.Fail()
			return nil
		}
		n, ok := q.index.keys.byName[name]
		switch {
		case ok && n != 0 && q.index.order.FinishesFirst():
			if q.index.keys.all[n].started == 0 {
				q.startKey(n, number)
			}
		case !q.restore.inSnapshot:
			return fmt.Errorf("%w: no key %q to start", ErrCorrupt, name)
		}
	}
	return nil
}

// worksBefore reports whether a message of another key of the level goes before one
// of mine, should nothing else come. When the first of a key is served, the others
// are next.
func (x *Index) startedBefore(l Level, other uint32, o orderKey, mine uint32, k orderKey) bool {
	a, b := x.listOrNew(l, other, o), x.listOrNew(l, mine, k)
	return !x.keys.all[other].atCap() && x.keys.all[other].eligibleAt() <= x.clock && byStarted{}.before(a, b)
}

// standIn returns the line of a key, or one of a message that has none.
func (x *Index) listOrNew(l Level, n uint32, k orderKey) *keyList {
	if line := x.levels.all[l].(*fairLane).find(x, n); n != 0 && line != nil {
		return line
	}
	return &keyList{first: k}
}
