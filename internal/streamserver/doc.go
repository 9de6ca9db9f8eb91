// SPDX-License-Identifier: Apache-2.0

// Package streamserver is one event hub: its partitions, those who append to them, those
// who read them and the members of its groups; the host of its engine.
//
//	Append, Configure …  ┌──────────────────────────── Hub ────────────────────────────┐
//	────────────────────►│ mailbox ─► engine's goroutine ─► stream.Partition × n       │
//	                     │               │          ▲ │                                │
//	◄────────────────────│◄── durable ───┘ question │ │ answer: where the events are   │
//	                     │                          │ ▼                                │
//	Next ───────────────►│ Reader, on the caller's goroutine ──► index, bodies ─► journal
//	                     └─────────────────────────────────────────────────────────────┘
//
// # Promise
//
//   - Nothing is observable before it is durable, nor after the lease of the journal: neither
//     an acknowledgement nor an event. Both wait for a Permit of the engine.
//   - A reader gets every event from its start on, in order, each batch once. It skips those
//     that retention has dropped before it came to them, and those that are damaged.
//   - A reader at the end is answered when more is durable. Nobody polls.
//   - Damage costs the batch whose bytes are damaged, or the block whose index is. It is
//     reported once. A disk that fails to read is an error of the reader, not a loss.
//   - On a full disk what has expired is dropped at once. Then senders are refused, and
//     readers go on. So do members of groups, checkpoints and claims, as long as the state
//     of the groups hardly grows; what operators change is refused.
//   - Members of groups hear what they have, and are told that a checkpoint or a claim is
//     stored, when that is durable.
//   - What peers can make a hub hold is bounded: five readers without epoch for each group
//     and partition, one with; one question for each reader; 256 producers for each
//     partition.
//
// # Readers
//
// A reader asks the engine where the next events are, and gets batches of the open block, or
// a sealed block, whose index it reads and keeps. It reads bodies itself, several at once,
// into a buffer of its own, checksums included. So the engine reads nothing, and a reader that
// is far behind costs the others no more than its questions.
//
// # Epochs
//
// Readers, their groups and epochs are in memory only. The table is at readerGroup.admit.
//
// # Groups
//
// Who has which partition, and how far they are, is a machine of its own on the same engine:
// package group. It is made when it is first needed. A grant ends the readers of the group
// that have a lower epoch, and others with one are refused.
//
// # Limits
//
// Nothing is ever moved. A partition that gets little keeps segments in which the others
// have much; they are freed by time. Retention by bytes alone therefore bounds the events of
// a partition, but not the disk space of a hub whose partitions get very different amounts.
//
// # Concurrency
//
// The engine's goroutine owns everything but the fields of a Reader that say otherwise.
// Callers reach it by its mailbox. ReaderOptions.Ended, Append.Done and what MemberOptions
// has run on it.
//
// # Files
//
//	hub.go, host.go, partition.go    the hub, as its callers, its engine and itself see it
//	append.go, producer.go           batches, idempotent producers
//	reader.go, ask.go, fetch.go      a reader: its life, questions and answers, reading
//	group.go                         who may read beside whom
//	coordinator.go, pace.go          the groups and their members, as the hub sees them; how much they write
//	member.go, coordinate.go         what members, and those who look after them, may do
//	groupinfo.go, info.go, flow.go, damage.go      for operators
//	manual.go                        for simulators and tests
//	errors.go                        what can go wrong
package streamserver
