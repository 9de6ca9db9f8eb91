// SPDX-License-Identifier: Apache-2.0

package order

import (
	"cmp"
	"slices"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// byStarted orders the lists of a lane that finishes first: the keys that were started,
// in that order, then the others by their first messages.
type byStarted struct{}

func (byStarted) slot(l *keyList) *int { return &l.startedIndex }

func (byStarted) before(a, b *keyList) bool {
	switch {
	case a.started != 0 && b.started != 0:
		return a.started < b.started
	case a.started != 0 || b.started != 0:
		return a.started != 0
	}
	return a.first.Before(b.first)
}

// Start says that a message of a key is delivered. If it is the first since the key had
// no messages, the key is started: Start returns its number and name to be logged, so
// that the order is the same after a restart.
func (x *Index) Start(e *entries.Entry) (k StartedKey, logged bool) {
	n := x.fairKey(e.Group)
	if n == 0 || !x.order.FinishesFirst() || x.keys.all[n].started != 0 {
		return StartedKey{}, false
	}
	x.startKey(n, x.keys.lastStarted+1)
	if x.void {
		return StartedKey{}, false
	}
	k = StartedKey{x.keys.lastStarted, x.keys.all[n].name}
	if x.next.arrangement != nil {
		x.swap()
		x.StartByName(k.Name, k.Number)
		x.keys.lastStarted = k.Number // also if it has no message of the key yet
		x.swap()
	}
	return k, true
}

// startKey makes a key the number-th that was started.
func (x *Index) startKey(n uint32, number uint64) {
	k := x.keys.all[n]
	k.started, x.keys.lastStarted = number, max(x.keys.lastStarted, number)
	for _, list := range k.lists {
		list.started = number
		if list.eligible {
			x.levels.all[list.level].(*fairLane).started.fix(list)
		}
		x.levels.changed(list.level)
	}
}

// StartByName starts a key if it is not. It reports whether the key exists.
func (x *Index) StartByName(name string, number uint64) bool {
	n, ok := x.keys.byName.Get(name)
	if !ok || n == 0 || !x.order.FinishesFirst() {
		return false
	}
	if x.keys.all[n].started == 0 {
		x.startKey(n, number)
	}
	return true
}

// KeyCount returns one more than the highest number of a fair key.
func (x *Index) KeyCount() int { return len(x.keys.all) }

// Numbering changes when the fair keys are renumbered.
func (x *Index) Numbering() uint64 { return x.keys.renumbered }

// StartedKey returns key n, if it was started.
func (x *Index) StartedKey(n int) (k StartedKey, ok bool) {
	key := x.keys.all[n]
	if key == nil {
		return StartedKey{}, false
	}
	return StartedKey{key.started, key.name}, key.started != 0 && !x.void
}

// StartedKey is a fair key that was started, by its number among those.
type StartedKey struct {
	Number uint64
	Name   string
}

// StartedKeys returns the keys that were started, in that order. It visits every key.
func (x *Index) StartedKeys() []StartedKey {
	var all []StartedKey
	for n := range x.keys.all {
		if k, ok := x.StartedKey(n); ok {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b StartedKey) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// startedBefore reports whether a message of another key of the level is delivered before
// one of mine if nothing else arrives. After the first message of a key its others are
// next.
func (x *Index) startedBefore(l ordering.Level, other uint32, o entries.OrderKey, mine uint32, k entries.OrderKey) bool {
	a, b := x.listOrNew(l, other, o), x.listOrNew(l, mine, k)
	return !x.keys.all[other].atCap() && x.keys.all[other].eligibleAt() <= x.Clock && byStarted{}.before(a, b)
}

// listOrNew returns the list of a key, or a new one for a message that has none.
func (x *Index) listOrNew(l ordering.Level, n uint32, k entries.OrderKey) *keyList {
	if line := x.levels.all[l].(*fairLane).find(x, n); n != 0 && line != nil {
		return line
	}
	return &keyList{first: k}
}
