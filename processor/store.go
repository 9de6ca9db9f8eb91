// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/client"
)

// CheckpointStore keeps who owns which partition, and the checkpoints, for a fleet in store
// mode. Its methods are safe for concurrent use.
type CheckpointStore interface {
	// ListOwnership returns the records of a scope, and the time by the clock that their
	// Modified is of. The time is zero if the store cannot tell.
	ListOwnership(ctx context.Context, s Scope) ([]Ownership, time.Time, error)
	// ClaimOwnership writes records whose ETag is still that of the store, or that are new
	// and have none. It returns those that it wrote, with their new ETag and Modified. A
	// record that another has changed is left out, and is no error.
	ClaimOwnership(ctx context.Context, claims []Ownership) ([]Ownership, error)
	// ListCheckpoints returns the checkpoints of a scope. With an error it may return those
	// that it could read.
	ListCheckpoints(ctx context.Context, s Scope) ([]Checkpoint, error)
	// SetCheckpoint writes a checkpoint, without a look at the owner.
	SetCheckpoint(ctx context.Context, c Checkpoint) error
}

// Scope is what the records of one fleet have in common.
type Scope struct {
	Namespace string // host of the broker, with its port if the address has one
	Hub       string
	Group     string
}

// Ownership says who owns a partition.
type Ownership struct {
	Scope
	Partition string
	Owner     string    // "": nobody, it was given up
	ETag      string    // changes with each write
	Modified  time.Time // by the store's clock
}

// Checkpoint says how far a partition is handled.
type Checkpoint struct {
	Scope
	Partition string
	SeqNo     client.SeqNo // of the last event that is handled
	Offset    string       // of the same event, as the broker gave it; our broker's is the number
}
