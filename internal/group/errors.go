// SPDX-License-Identifier: Apache-2.0

package group

import "errors"

var (
	// ErrFenced means that the epoch is not the current one: the partition belongs to
	// another, or was set to another position.
	ErrFenced = errors.New("group: partition is not held with that epoch any more")
	// ErrBackwards means that a checkpoint is before the one that there is.
	ErrBackwards = errors.New("group: checkpoint would go back")
	// ErrUnknownMember means that the group has no such member, or no more.
	ErrUnknownMember = errors.New("group: no such member")
	// ErrCoordinated means that partitions cannot be claimed: the group has members, to
	// which the broker assigns them.
	ErrCoordinated = errors.New("group: partitions are assigned by the broker while the group has members")
	// ErrMemory means that there is no memory for more members, claims, checkpoints or pauses.
	ErrMemory = errors.New("group: no memory is left for consumer groups")
	// ErrMembers means that a group has too many members.
	ErrMembers = errors.New("group: too many members")
	// ErrTaken means that the member has joined with another run, or by another link.
	ErrTaken = errors.New("group: member has joined again elsewhere")
	// ErrLeft means that the member has left as planned.
	ErrLeft = errors.New("group: member has left")
	// ErrName means that a name is empty or too long.
	ErrName = errors.New("group: name is empty or too long")
	// ErrPartition means that there is no such partition.
	ErrPartition = errors.New("group: no such partition")
	// ErrNotOwned means that nobody has the partition.
	ErrNotOwned = errors.New("group: partition has no owner")
	// errCorrupt means that a record is not one of groups in this state.
	errCorrupt = errors.New("group: corrupt record")
)
