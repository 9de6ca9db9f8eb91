// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"time"

	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
)

// GroupInfo is a consumer group as an operator sees it. Everything in it is durable, but
// for what is in memory only.
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
	Heard      time.Time // when it last reported; zero since the hub was opened
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
	LagEvents     int64
	LagBytes      uint64 // about
	LagTime       time.Duration
	CheckpointAge time.Duration
	// Stuck says that the owner is there, has events to handle, and has handled none for
	// half a minute.
	Stuck       bool
	Since       time.Time // when the owner got it
	PausedUntil time.Time // zero: it is not paused
}

// GroupChange is a change of ownership.
type GroupChange struct {
	At        time.Time
	Partition int
	From, To  string // members; "" is nobody
	Why       string
}
