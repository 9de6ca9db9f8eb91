// SPDX-License-Identifier: Apache-2.0

package group

import (
	"time"

	"github.com/triagemq/triagemq/internal/stream"
)

// None is the checkpoint of a partition that has none: the start position of its reader
// decides.
const None stream.SeqNo = -1

// Beginning is the checkpoint of a partition that was set back to before its first event:
// its reader starts with the oldest one.
const Beginning stream.SeqNo = -2

// Member is one process that handles events of a group.
type Member struct {
	ID   string // unique in its group
	Run  string // of one life of the process: another run has no handlers of the one before
	Name string // for operators
	// Key names the one by whose right it joined. It is not stored: "" is that it is not
	// known, as of every member after a restart until it joins again.
	Key string
	// Back says that this run has joined before. It is not stored.
	Back bool
	// Keep is how long its partitions wait for it when its connection is lost; the default
	// is half a second.
	Keep time.Duration
}

// Grant is one partition that a member has.
type Grant struct {
	Partition  int
	Epoch      int64
	Checkpoint stream.SeqNo // the last event that is handled; None, Beginning
	RevokeBy   time.Time    // when it is taken away, unless it is released before; zero: it stays
}

// Assignment is everything that a member has.
type Assignment struct {
	Version    uint64 // rises
	Partitions int    // of the hub
	Grants     []Grant
}

// Checkpoint says that the events of a partition up to one, and that one, are handled.
type Checkpoint struct {
	Partition int
	Epoch     int64 // of the grant
	SeqNo     stream.SeqNo
	At        time.Time // set by the broker
}

// Ownership is a claim of a processor that balances by itself, without members.
type Ownership struct {
	Partition int
	Owner     string // "" is given up
	ETag      string // "" is not there yet
	Modified  time.Time
}

// Progress is what a member says about one of its partitions: how far it is, and what that
// has cost since it reported last.
type Progress struct {
	Partition int
	Epoch     int64        // of the grant that it is about; 0 is not known
	Handled   stream.SeqNo // the last event that is handled; negative is none
	BusyNanos uint64
	Bytes     uint64
	Skipped   uint64 // events that were gone when their turn came
}
