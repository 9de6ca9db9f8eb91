// SPDX-License-Identifier: Apache-2.0

// Package state holds the state of one queue and the changes that commands and replay
// share. It writes snapshots and replays records, so it implements machine.Machine;
// package queue adds the commands.
//
//	core.go      Core: the fields, settings, deadlines, references to bodies
//	change.go    the changes: insert, ready, remove, reclassify, replace a body
//	aside.go     what few messages have, beside the entries: arrival times, reasons, saved states
//	wait.go      waits for a retry, and durable locks
//	snapshot.go  the snapshot, written in steps
//	restore.go   the replay of records and snapshots
//	tolerate.go  the replay without records that a repair has dropped
//	check.go     the invariants of package queue, for tests and after a replay
//
// # Invariants
//
// By the numbers of package queue: 1 to 4; Check tests all nine. A change keeps them, so
// they hold between any two calls, except that no message is listed while a snapshot is
// being replayed: its end lists them all at once.
//
// # The fuzzy snapshot
//
// A snapshot is a fuzzy checkpoint, as in ARIES: its chunks are written one by one while
// commands run. The header has H, the highest sequence number at that time. The chunks
// contain the messages up to H, each as it is when its chunk is written. The state before
// the header is not needed to replay it:
//
//	log:     header H=3   removed 1   chunk {2} up to 2   failed 2   removed 3   chunk {} up to 3   removed 2   end
//	replay:               ignored                         applied    ignored                        applied
//
// A record about a message above H is always applied: no chunk has the message. For a
// message up to H the position of the record decides:
//
//   - before its chunk (removed 1, removed 3): ignored. The message is not restored yet,
//     and the chunk, written later, already contains the effect: it has no such message.
//   - after its chunk (failed 2, removed 2): applied. The chunk was written without it.
//
// A record is never inside a chunk: a chunk is one record. Records of settings,
// session states and started keys are applied wherever they are: each has the whole new
// value. A snapshot that follows one without an end replaces it. A queue that is restored
// already uses only the positions of bodies in a later snapshot.
//
// # Concurrency
//
// None: a Core belongs to one goroutine, that of its queue.
//
// # Not here
//
// Commands, tokens and their errors: queue. The bytes of a record: queue/record.
package state
