// SPDX-License-Identifier: Apache-2.0

package order

import (
	"slices"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// levelsCost is about what the levels of a queue take from the first message on.
const levelsCost = 256

// unlistedGroup is what a group takes less if it has no list of its own.
const unlistedGroup = 320

const (
	// listCost is what a list of a fair key takes in one more level.
	listCost = 176
	// ringCost is what a ring takes, of which a lane has one for each load.
	ringCost = 16
	// sessionLevelCost is what a level takes of a session that uses more than one.
	sessionLevelCost = 112
)

// LevelCost is about what a session and a fair key take more, each with a message in one more
// level.
func (x *Index) LevelCost() (session, key int64) {
	if x.sessionQueue {
		session = sessionLevelCost
	}
	if x.order.Fair {
		key = listCost
	}
	return session, key
}

// ListsKey reports whether the fair key of a name has messages in a level, or in none.
func (x *Index) ListsKey(name string, l ordering.Level) bool {
	n, _ := x.keys.byName.Get(name)
	lists := x.keys.all[n].listed()
	return len(lists) == 0 || slices.ContainsFunc(lists, func(k *keyList) bool { return k.level == l })
}

// GroupCost returns about what the first message of a session and fair key takes besides
// its entry.
func (x *Index) GroupCost(session, key string) int64 {
	n := entries.GroupCost(session, key)
	if !x.order.Fair && !x.sessionQueue {
		n -= unlistedGroup
	}
	return n
}

// Memory returns about how many bytes the index takes: the entries, the groups of messages
// with their sessions and fair keys, keys that are kept for their debt, and a second
// arrangement.
func (x *Index) Memory() int64 {
	n := x.Entries.Memory() + x.Groups.Memory() + x.keys.indebted + x.keys.lanes + x.SessionLevels*sessionLevelCost + int64(cap(x.keys.wakes))*16
	if !x.order.Fair && !x.sessionQueue {
		n -= int64(x.Groups.ByName.Len()) * unlistedGroup
	}
	if len(x.levels.all) > 0 {
		n += levelsCost
	}
	if f := x.next.arrangement; f != nil {
		n += f.keys.indebted + f.keys.lanes + x.Groups.Bytes/2 + x.Ready*entries.ListedCost
	}
	return n
}

// OrderGrowth returns about how many bytes Memory grows by if the order changes: a second
// arrangement, which is filled beside the first, and lists instead of runs.
func (x *Index) OrderGrowth(want ordering.Order) int64 {
	if !x.void && fits(&x.order, &want) {
		return 0
	}
	n := x.Groups.Bytes/2 + x.Ready*entries.ListedCost
	if want.Fair && !x.order.Fair && !x.sessionQueue {
		n += x.Ready*entries.ListedCost + int64(x.Groups.ByName.Len())*unlistedGroup
	}
	return n
}
