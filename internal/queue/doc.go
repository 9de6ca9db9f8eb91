// SPDX-License-Identifier: Apache-2.0

// Package queue is the state machine of one queue: which messages there are, in
// which state, who holds them, and which one goes next. Commands and the time go
// in; answers, records and effects come out.
//
// # Promise
//
// The order is exact. Inside a level the older message goes first, then the
// lower number, unless Order.Within says otherwise; a reply is as old as its
// request. The discipline chooses among the levels. A message that returns
// (abandoned, released, its lock run out) stands where it stood before. A session
// is served in the order of its numbers, and goes as the best message in it: a
// high message lifts the low ones that it has to wait for.
//
// A message has at most one holder. Its token is valid until the lock ends, and
// never in another epoch.
//
// Records replayed into a new queue give the same messages in the same states,
// except that nobody holds any: locks are not logged. What a command changed is
// changed when it returns; the owner shows nobody an answer before the records
// are durable.
//
// # Assumptions
//
// The owner writes the records of a command, all or none, in the order of the
// commands. What ends in Effects.Dead it stores elsewhere in the same write, with
// the same body: the reason of a death is kept beside it.
//
// Time may stand still but does not go back; if it does, the queue goes on with
// the latest time it has seen.
//
// After Configure the owner calls Reorder until that has no more to do: only then
// another order is in force.
//
// # Format
//
// docs/format/queue-records.md draws every record. The first byte is its kind; a
// new layout gets a new kind, and old ones are read for ever.
//
// # A snapshot while the queue works
//
// Snapshot writes the messages in steps, commands in between. Its first record
// names the highest number H at that time; the chunks bring the messages up to H
// as they are when the chunk is written. So a record between the two that is
// about a number up to H which no chunk has brought yet must be ignored: the
// chunk, written later, shows its effect.
//
//	snapshot H=3     chunk {1,2}    gone 3     chunk {} end
//	            gone 1          failed 2
//	            ignored: the    counts: 2     ignored, and the last
//	            chunk has no 1  was brought   chunk has no 3
//
// # Memory
//
// A ready message costs 56 bytes in a slab (no pointers for the garbage collector)
// and 4 bytes in the page that maps its sequence number to its slot. Outside of long
// lists its number is in a list, too, which takes 8 bytes. Names of sessions and fair
// keys are kept once. Bodies are the journal's. A dead letter that has a reason costs a
// Ref in a map; the text is the journal's, too.
//
// # Cost
//
// No command walks over messages that it is not about. What is about many, as Purge,
// is done in steps, each of which visits a bounded number of messages; others may give
// commands in between. A line holds exactly the messages that wait in it, so that
// nothing has to be cleared away when many have left it from the middle.
// Strict finds the best level in a set of bits; if it may be saturated by age, it
// looks at the first message of each level before that. The other disciplines hold a
// tournament among the levels, in which only levels that have changed play again;
// a level that is alone does not play at all, nor does one that has just opened
// and goes before all others. Keys that take turns cost the same however many there
// are; keys that are finished first, and aged ones, are in a heap.
//
// Cache misses dominate in a long queue: an entry is out of the CPU cache when it
// becomes the head of its list. A long list therefore has slabs of its own (a
// slabRun), so that consecutive messages are adjacent in memory and the hardware
// prefetches them. The page index, which is ordered by sequence number, is not read
// on this path: a lane and a lock remember the address of their message, and a
// removed message leaves its address in the page. A slab is freed when its last
// message is removed; the last few entries of a sparse slab are moved together. Only
// shares that change between hundreds of levels all the time still wait for memory,
// because hundreds of runs are more than the hardware prefetches. A slab in the
// middle of a run of which half of the messages are left leaves the run, and its
// messages are listed by number. bench/README.md has the figures.
//
// # Concurrency
//
// A queue has no goroutine and no lock; it belongs to the goroutine of its owner.
//
// # Invariants
//
//  1. Numbers rise without gaps as messages are stored, and are never reused.
//  2. A locked message has exactly one lock, a scheduled one exactly one
//     appointment, and each of these has its message.
//  3. Every count equals what a walk over all messages finds.
//  4. A name is kept while a message, a lock or a state refers to it, no longer;
//     so is a time of arrival, of the messages whose age is another, and the
//     reason of a dead letter.
//  5. A ready message stands in its place, and nobody else does: in the line of its
//     level, or of its level and key; or, in a queue of sessions, in that of its
//     session and that of its session and level. A free session is in every level in
//     which it has ready messages, by the oldest of them; a locked one is in none. A
//     session knows its messages that are not ready, too. A second index has the
//     messages that it follows in the same way.
//  6. A level is open if and only if its lane has something to hand out.
//  7. The key of a message (enqueue time, number) never changes while it is ready,
//     so it is never in the wrong place of its line.
//  8. An entry is at the address that the page of its number has. A slab exists
//     while it is pinned or has an entry, and a slot is not allocated twice
//     meanwhile. Every slab of a run but the last has a message of the run.
//  9. A page is in the heap of expiries once, if one of its ready messages expires,
//     and is looked at when the first of them does or earlier.
//
// # Not here
//
// Bodies and their places: the journal. Durability and waiting receivers: the
// shard. Which level and class a message gets: the policy.
package queue
