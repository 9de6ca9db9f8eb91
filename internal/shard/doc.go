// SPDX-License-Identifier: Apache-2.0

// Package shard is the single writer: where the state of many queues meets time
// and disk.
//
// A shard owns a number of entities, each of them a few queue machines (its
// messages, its dead letters), and one history in the journal. Everything that
// happens to them is an operation in its mailbox. The shard takes the whole
// mailbox at once, applies each operation to the machines in memory, appends the
// records they wrote as one group, and lets go of the answers when the journal
// says that the group is safe.
//
// # Promise
//
// Nothing is observable before it is durable. An operation's callback runs, and a
// message reaches a sink, only after every record it depends on is on disk. A
// message that nobody has failed depends on its own arrival alone, so a long
// standing message is handed out without waiting for the sync in progress; but for
// the first of a key, where what was started is finished first: that it was started
// must be safe, too.
// What a consumer was given in memory and was not handed goes back to its place when
// the consumer goes, uncounted; what its sink could not pass on comes back by Return.
// A message that was taken for good and reached nobody is lost only by a crash, or by
// a stop while there is no space for the record that it returned. While a group waits
// for space, what is safe already is still handed out.
// Records that nobody waits for, such as the settlement of a consumer that wants
// no answer, may stay in memory for a few milliseconds, to go with the next that
// somebody does wait for.
//
// # Time
//
// Locks, schedules and lives end by the clock of package clock, which goes on
// whatever is done to the wall clock. A shard that is opened makes that clock begin
// no earlier than the latest time it finds in its history.
//
// # Records
//
// A body is a record of its own, appended before the small queue record that
// refers to it by position: a body without a reference is garbage, never the
// other way round. Everything else one step wrote is one group. The bytes are
// drawn in docs/format/shard-records.md.
//
// A dead letter keeps the body it had; its reason is a small body of its own, and the
// two are merged when the message is read.
//
// # Bodies
//
// The goroutine of a shard reads no bodies.
// What needs one that is not cached is parked, the body is read in the background,
// and the operation goes on when it is there: a consumer that takes for good holds
// the message locked meanwhile; a settlement with properties holds back the detach of
// its session. A body that cannot be read is an incident of its message, which becomes
// a dead letter; everything else goes on.
//
// # Operations in steps
//
// An operation visits a bounded number of messages. What is about more of them, as a
// purge or a list of sessions, is called again in later steps of the shard until it
// is done (CallInSteps), with the operations of others in between. Each of its steps
// leaves a state that is whole. In the same way the messages of a queue are put into
// another order, and the bodies of an entity that was dropped are freed; and consumers
// with much credit get their messages, HandOutStep at a time.
//
// # Snapshots
//
// A snapshot is written into the same journal in small steps between
// operations, so that no caller waits for it. It is fuzzy: each piece shows the
// state at its own place in the log, and replay ignores what touches a piece that
// has not come yet. The same pass moves bodies out of blocks that are mostly
// dead. When its end is durable, the shard truncates its history to where the
// snapshot began, and keeps of older blocks only those with live bodies.
//
// # Concurrency
//
// Run owns every field of Shard except the mailbox. Step and the methods it calls
// need no goroutine, which is how the simulator drives them: it also decides, with
// Options.Go, when background work is done. Methods that post to the mailbox may be
// called from anywhere and never block; their callbacks run on the shard's goroutine
// and must return at once. Delivery.Message and Read may wait for the disk.
//
// # Invariants
//
//  1. Positions in waiting ascend; nothing in it is released before its turn.
//  2. For each block, live counts the bytes of exactly those bodies that some
//     machine refers to, or one that was dropped and is not done with.
//  3. A consumer's deliveries are released in the order they were taken.
//  4. What was taken for a consumer is in its fetching, held or out, until it is
//     handed to the sink or back in its place.
//
// # Not here
//
// Names, rules and rights are the broker's; bytes on the wire are the
// endpoint's; the order of messages is the queue's.
package shard
