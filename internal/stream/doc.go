// SPDX-License-Identifier: Apache-2.0

// Package stream is one partition of an event hub: an append-only log of batches of
// events, with retention. A [Partition] is a state machine as package machine describes it:
// it has no clock, no file and no goroutine.
//
// # Promise
//
//   - Events have dense numbers from 0 on, in the order in which their batches were
//     appended. A number is never used twice, whatever records are lost: then there is a
//     gap, and where it is not known how many were given it is larger than can be.
//   - The time of an event is that of its batch, in milliseconds. It is at most a minute ahead
//     of the clock: so times go back only if the clock does, by more than that.
//   - A batch of an idempotent producer that comes again gets the number that it had.
//   - An event is kept for its retention at least, unless the partition is too large.
//
// # Blocks
//
// A batch is a body in the journal as it came, and 40 bytes in memory that say where it is.
// That would be too much for a log of 100 million batches. So batches are gathered in an
// open block; when it is full it is sealed: what was known of its batches, delta-encoded,
// becomes a body of the journal, its index, and 64 bytes are left in memory.
//
//	memory    │ block │ block │ block │ batch batch batch │
//	          └───┬───┴───────┴───────┴──── open block ───┘
//	              │ index                     │ body
//	              ▼                           ▼
//	journal   body body … index  …  body body body
//	          └──── segment ───┘    └─ segment ─┘
//
// The bodies of a block are in one segment of the journal. So they are counted by one Ref,
// of the place of the first and the size of all, and can be freed together.
//
// # Retention
//
// The oldest are dropped: sealed blocks as a whole, when their newest batch has expired, and
// of the open block batch by batch. An open block is no older than the retention, so an event
// lives at most about twice as long as it must. What was dropped is a record; the retention
// itself is not part of the state. Events that are of the future, since they were stored while the
// clock was wrong, go with the first one behind them whose time can be right: see type doubt.
//
// # Snapshot
//
// Blocks never change, so a snapshot writes them in steps, and everything else in one last
// record, before which a replay ignores all commands: see type snapshot.
//
// # Invariants
//
//  1. Blocks and open batches ascend in numbers and places, up to the end.
//  2. The counts of bytes are the sums over them.
//  3. At most maxProducers producers are remembered.
//
// # Not here
//
// Who reads, how far, and what is durable: package streamserver. The bytes of a batch:
// package message.
//
// # Files
//
//	partition.go, retain.go, producer.go  commands
//	block.go, batches.go                  blocks, their index
//	clock.go                              times of a clock that was wrong
//	find.go, start.go                     where a reader begins and goes on
//	record.go, snapshot.go, replay.go     records; docs/format/hub-records.md draws them
//	tolerate.go                           a history of which records are missing
//	machine.go                            the rest of what the engine needs
//	key.go                                which partition the events of a key belong to
package stream
