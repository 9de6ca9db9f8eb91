// SPDX-License-Identifier: Apache-2.0

// Package group is the coordinator of event processors: the members of the consumer groups
// of one event hub, which partitions they have, and how far they are. [Groups] is a state
// machine as package machine describes it: it has no clock, no file and no goroutine.
//
// # Promise
//
//   - A partition has one owner at a time. Every grant of it has a higher epoch than the one
//     before, and so has every rewind.
//   - A checkpoint is stored only with the epoch of the last grant, and goes back only by a
//     rewind.
//   - Counts of members differ by at most one, with the fewest moves that allow it.
//   - An owner that is there is asked to release a partition before another gets it.
//
// # A partition that moves
//
//	owned by A, epoch 7 ──balance──► revoking: A is told, and drains
//	                                    │ A releases, or 30 s are over
//	                                    ▼
//	                                 owned by B, epoch 8: A's checkpoints are refused
//
// The partitions of a member that is gone need no release.
//
// # Presence
//
// A member is there while it is connected and reports. One whose connection is lost keeps
// its partitions for a grace time and gets no others; so does everyone after a restart.
// Then it is forgotten, and its partitions are free. A member that comes back with the same
// run goes on where it was; with another one its partitions are granted anew. The younger run
// wins: one that was replaced is refused when it comes back.
//
// A member may ask for a longer grace time, Keep, of up to an hour. It ends with the right by
// which the member had joined: the caller says when, by KeepUntil and Expel. By whose right
// members had joined is not stored; after a restart they are kept for a minute at most. In a
// full group those that are away give way to new members.
//
// When members come or go, partitions are assigned 200 ms later, once for all. The
// partition counts for the member that it moves to; so a move is not decided twice.
//
// # What is stored
//
// Members, owners, epochs, checkpoints, pauses, cool-downs and claims are. When a member was
// heard, what is being revoked, loads and the history of changes are in memory only.
//
// # Claims
//
// Processors that balance by themselves claim partitions by ETag: the one that was read must
// be the current one. A group that has members takes no claims.
//
// # Invariants
//
//  1. Groups ascend by name, and members of a group by id; counts are those of the lists.
//  2. An owner is a member, and so is who gets a partition next.
//  3. A partition that has an owner has an epoch.
//  4. There are at most 1,024 members of a group, 256 changes in its history, and 8 members
//     that do not get a partition back for a while.
//  5. Size is what the parts of the state take, by the costs in cost.go.
//
// # Not here
//
// Who is connected by which link, and what is durable: package streamserver. The events:
// package stream.
//
// # Files
//
//	groups.go, types.go, errors.go     groups, members, partitions; what members hear
//	part.go, cost.go                   a partition for a group; what the state takes in memory
//	runs.go                            runs whose place another has taken
//	members.go                         joining, leaving, silence, keep; the timer
//	balance.go, assign.go, loads.go    who gets what
//	checkpoint.go, claim.go            positions, pauses, claims
//	record.go, replay.go, snapshot.go  records; docs/format/hub-records.md draws them
//	tolerate.go                        a history of which records are missing
//	machine.go, info.go                the rest of what the engine and operators need
package group
