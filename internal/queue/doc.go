// SPDX-License-Identifier: Apache-2.0

// Package queue is the state machine of one queue: which messages there are, in which
// state, who has them locked, and which one is delivered next. Commands and the time are
// its input; answers, records and effects its output.
//
// # Promise
//
// Order is exact. Within a level, messages are delivered by order time, then by sequence
// number, unless Order.LevelOrder says otherwise. The order time is the enqueue time; a reply
// uses that of its request. The discipline chooses among the levels. A message that is
// abandoned, released or whose lock expires returns to its old position. A session is
// delivered in sequence order. A free session is ranked by its best message, so an urgent
// message also advances the messages before it.
//
// At most one receiver has a message locked. Its token is valid until the lock ends. A lock
// is volatile, and its token never valid in another epoch, unless the receiver has asked
// for a durable one: that survives a restart, with its token and its end.
//
// A message that has failed may have to wait until a time. It keeps its place, and nobody
// gets it before, also after a restart. A session waits for its message.
//
// Records replayed into a new queue restore the same messages in the same states, except
// that volatile locks are gone. The effect of a command is complete when it
// returns; the owner publishes no answer before the records are durable.
//
// # Assumptions
//
// The owner writes the records of a command, all or none, in the order of the commands.
// It stores what is in Effects.DeadLettered elsewhere in the same write, with the same body: the
// reason of a dead letter is stored beside it.
//
// The clock is clamped: if now is earlier than the latest time seen, the latest time is
// used.
//
// After Configure the owner calls Reorder until it has no more to do: only then the new
// order is in force.
//
// # How the packages fit together
//
//	queue    commands: enqueue, take, settle, tick, operate, inspect, explain
//	state    the state, the changes that commands and replay share, snapshot, replay
//	record   the bytes of records
//	session  sessions and their listings        lease  locks, schedule, duplicate window
//	order    which message is next              entries  the messages in memory
//
// docs/format/queue-records.md draws every record; the doc.go of package state explains a
// snapshot that is written while commands run.
//
// # Memory
//
// Memory says what a queue has allocated, without a visit: slabs and pages as a whole, and
// about what lists, names and maps take. What a backlog took is freed when it has gone.
// A short queue has one small slab.
//
// A ready message costs 56 bytes in a slab (no pointers for the garbage collector)
// and 4 bytes in the page that maps its sequence number to its slot. Outside of long
// lists its sequence number is in a list, too, which takes 8 bytes. Names of sessions and
// fair keys are stored once. Bodies and the texts of reasons are in the journal; a dead
// letter with a reason costs a Ref in a map, and so does a message with a saved state.
//
// # Cost
//
// No command visits messages that it does not concern. Commands about many, such as
// Purge, work in steps, each of which visits a bounded number of messages; other commands
// may run in between. Strict finds the best level in a bit set; with a limit on age it
// first compares the heads of the levels. The other disciplines use a tournament tree
// over the levels (package order). Fair keys in round robin cost the same however many
// there are; keys that are finished first, and aged ones, are in a heap.
//
// Cache misses dominate in a long queue: an entry is out of the CPU cache when it
// becomes the head of its list. A long list therefore has slabs of its own (a
// slabRun), so that consecutive messages are adjacent in memory and the hardware
// prefetches them. The page index, which is ordered by sequence number, is not read
// on this path: a lane and a lock have the address of their message, and a
// removed message leaves its address in the page. A slab is freed when its last
// message is removed; the last few entries of a sparse slab are moved together. Only
// shares that change between hundreds of levels at each delivery still miss the cache,
// because hundreds of runs are more than the hardware prefetches. A slab in the
// middle of a run of which half of the messages are left leaves the run, and its
// messages are listed by number. bench/README.md has the figures.
//
// # Concurrency
//
// A queue has no goroutine and no mutex; it belongs to the goroutine of its owner.
//
// # Invariants
//
//  1. Sequence numbers are assigned without gaps and never reused.
//  2. A locked message has exactly one lock, a scheduled one exactly one schedule item,
//     one that waits for a retry exactly one time, and each of these has its message.
//  3. Every count equals what a walk over all messages finds.
//  4. A name is stored while a message, a lock or a state refers to it, no longer. The
//     same holds for arrival times that differ from order times, for the reasons of
//     dead letters, and for saved states.
//  5. Every ready message, and no other, is in exactly these sorted lists: without
//     sessions, the list of its level (with fair keys: of its level and key); with
//     sessions, the list of its session and the list of its session and level. A free
//     session is listed in every level in which it has ready messages, by the oldest of
//     them; a locked one, and one that waits for a retry, in none. A session also has the set of its messages that are
//     not ready. The second index of a change of order has the messages it has reached
//     in the same way.
//  6. A level is marked non-empty if and only if its lane has a message to deliver.
//  7. The order key of a message (order time, sequence number) never changes while it is
//     ready, so its position in its list is right.
//  8. An entry is at the address that the page of its sequence number has. A slab exists
//     while it is pinned or has an entry, and a slot is not allocated twice meanwhile.
//     Every slab of a run except the last has a message of the run.
//  9. A page is in the heap of expiries once, if one of its ready messages expires, and
//     is scanned when the first of them does or earlier.
//
// # Not here
//
// Bodies and their positions: the journal. Durability and waiting receivers: the shard.
// Which level and class a message gets: the policy.
package queue
