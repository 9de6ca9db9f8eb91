// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// Names of package streamserver that the wire uses.
type (
	// Producer is an idempotent producer of one partition.
	Producer = streamserver.Producer
	// EventBatch is a batch as it was stored.
	EventBatch = streamserver.Batch
	// EpochError says which reader excludes another.
	EpochError = streamserver.EpochError
	// ReadersError refuses a reader because there are too many.
	ReadersError = streamserver.ReadersError
	// PositionError refuses a reader that would begin behind the end of its partition.
	PositionError = streamserver.PositionError
)

// Errors of package streamserver that the wire reports.
var (
	ErrOutOfOrder     = streamserver.ErrOutOfOrder
	ErrProducerStolen = streamserver.ErrProducerStolen
	ErrReaderClosed   = streamserver.ErrClosed
)

// Names of packages group and streamserver that the wire uses.
type (
	// MemberOptions say who joins a consumer group; its Group is set by the broker.
	MemberOptions = streamserver.MemberOptions
	// Right is that by which a member has joined.
	Right = streamserver.Right
	// MemberReport is a sign of life of a member.
	MemberReport = streamserver.Report
	// GroupInfo is the state of a consumer group.
	GroupInfo = streamserver.GroupInfo
	// Assignment is everything that a member has.
	Assignment = group.Assignment
	// Grant is a partition that a member has.
	Grant = group.Grant
	// Progress is how far a member is in a partition.
	Progress = group.Progress
	// Checkpoint says how far a partition is handled.
	Checkpoint = group.Checkpoint
	// Ownership is a claim of a processor that balances by itself.
	Ownership = group.Ownership
)

// The checkpoints that are no events.
const (
	NoCheckpoint = group.None
	Beginning    = group.Beginning
)

// Errors of package group that the wire reports.
var (
	ErrFenced        = group.ErrFenced
	ErrBackwards     = group.ErrBackwards
	ErrUnknownMember = group.ErrUnknownMember
	ErrCoordinated   = group.ErrCoordinated
	ErrMembers       = group.ErrMembers
	ErrGroupMemory   = group.ErrMemory
	ErrHubMemory     = streamserver.ErrMemory
	ErrTaken         = group.ErrTaken
	ErrLeft          = group.ErrLeft
	// ErrGroupPartition means what ErrPartition does, while partitions are added.
	ErrGroupPartition = group.ErrPartition
	ErrNotOwned       = group.ErrNotOwned
	ErrMemberName     = group.ErrName
)
