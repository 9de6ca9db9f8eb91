// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

// GroupInfo is a consumer group as an operator sees it. What is stored of it is durable.
type GroupInfo struct {
	Members    []MemberInfo
	Partitions []GroupPartition
	Changes    []GroupChange // of ownership, the last ones since the hub was opened
	Moves      uint64        // from one member to another, since then
}

// MemberInfo is one member of a group.
type MemberInfo struct {
	ID, Name   string
	Since      time.Time // when it joined
	Heard      time.Time // when it last reported; zero is not since the hub was opened
	Partitions int
	Connected  bool
	Leaving    bool
}

// GroupPartition is how far a group is in one partition.
type GroupPartition struct {
	Partition  int
	Owner      string // id of the member, or who has claimed it
	Epoch      int64
	State      string            // free, owned, revoking, paused or claimed
	Checkpoint *group.Checkpoint // nil is none
	Handled    stream.SeqNo      // as the owner reports; group.None if it is not known
	// The lag is what comes after Handled or the checkpoint, whichever is further.
	LagEvents int64
	LagBytes  uint64        // about
	LagTime   time.Duration // about the age of the first of these events
	// Gone is how many events after Handled or the checkpoint are not there any more: they
	// were not handled, and are not in the lag. It is 0 if there is neither.
	Gone int64
	// Skipped is how many events were gone when the owners came to them, as these report.
	Skipped       uint64
	CheckpointAge time.Duration
	// Stuck says that the owner is there, has events to handle, and has handled none for
	// half a minute.
	Stuck       bool
	Since       time.Time // when the owner got it
	PausedUntil time.Time // zero: it is not paused
}

// GroupChange is a change of ownership.
type GroupChange = group.Change

// stuckAfter is how long a partition with events makes no progress until it counts as
// stuck.
const stuckAfter = 30 * time.Second

// Group returns the state of a group.
func (h *Hub) Group(ctx context.Context, grp string) (GroupInfo, error) {
	var info GroupInfo
	err := h.do(ctx, func(tx *engine.Tx) error {
		info = h.groupInfo(tx.Now(), grp)
		return nil
	})
	if err != nil {
		return GroupInfo{}, err
	}
	return info, nil
}

func (h *Hub) groupInfo(now time.Time, grp string) GroupInfo {
	var known group.Info
	if h.groups != nil {
		known = h.groups.m.Info(now, grp)
	}
	info := GroupInfo{Partitions: make([]GroupPartition, len(h.partitions)), Changes: known.Changes, Moves: known.Moves}
	connected := make(map[string]bool)
	for _, m := range known.Members {
		connected[m.ID] = m.Connected
		info.Members = append(info.Members, MemberInfo{
			ID: m.ID, Name: m.Name, Since: m.Since, Heard: m.Heard, Partitions: m.Partitions, Connected: m.Connected, Leaving: m.Leaving,
		})
	}
	for n, p := range h.partitions {
		x := group.PartitionInfo{State: group.Free, Handled: group.None}
		if n < len(known.Partitions) {
			x = known.Partitions[n]
		}
		info.Partitions[n] = p.groupPartition(now, x, connected[x.Owner])
	}
	return info
}

func (p *partition) groupPartition(now time.Time, x group.PartitionInfo, there bool) GroupPartition {
	i := GroupPartition{
		Partition: p.number, Owner: x.Owner, Epoch: x.Epoch, State: string(x.State), Checkpoint: x.Checkpoint, Handled: x.Handled,
		Skipped: x.Skipped,
		Since:   x.Since, PausedUntil: x.PausedUntil,
	}
	done := x.Handled
	if c := x.Checkpoint; c != nil {
		done = max(done, c.SeqNo)
		i.CheckpointAge = max(0, now.Sub(c.At))
	}
	next := max(done+1, 0)
	if first := p.m.First(); next < first {
		if x.Checkpoint != nil || x.Handled != group.None {
			i.Gone = int64(first - next)
		}
		next = first
	}
	if i.LagEvents = p.m.EventsFrom(next); i.LagEvents > 0 {
		i.LagBytes = p.m.BytesFrom(next)
		i.LagTime = max(0, now.Sub(time.UnixMilli(p.m.TimeOf(next))))
		i.Stuck = there && now.Sub(x.Moved) >= stuckAfter && i.LagTime >= stuckAfter
	}
	return i
}
