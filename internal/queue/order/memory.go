// SPDX-License-Identifier: Apache-2.0

package order

import "github.com/triagemq/triagemq/internal/queue/entries"

// levelsCost is about what the levels of a queue take from the first message on.
const levelsCost = 256

// unlistedGroup is what a group takes less if it has no list of its own.
const unlistedGroup = 320

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
	n := x.Entries.Memory() + x.Groups.Memory() + x.keys.indebted + int64(cap(x.keys.wakes))*16
	if !x.order.Fair && !x.sessionQueue {
		n -= int64(x.Groups.ByName.Len()) * unlistedGroup
	}
	if len(x.levels.all) > 0 {
		n += levelsCost
	}
	if f := x.next.arrangement; f != nil {
		n += f.keys.indebted + x.Groups.Bytes/2 + x.Ready*entries.ListedCost
	}
	return n
}
