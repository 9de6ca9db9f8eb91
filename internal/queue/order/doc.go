// SPDX-License-Identifier: Apache-2.0

// Package order decides which message of a queue is delivered next.
//
// An Index owns the entries of a queue and lists those that are ready. It has a lane
// for each level, which orders the messages inside the level, and a picker, the
// discipline, which chooses the level:
//
//	level 9   lane: one sorted list          \
//	level 7   lane: a list for each fair key   > picker -> level -> head of its lane
//	level 2   lane: …                        /
//
// A picker compares only the heads of the lanes. That is sufficient: inside a level no
// message ranks above the head.
//
// In a session queue the lanes list sessions: each free session once in each level in
// which it has ready messages, by its oldest message there (package session).
//
// # How the files fit together
//
//	index.go       Index: add, remove, take, pick
//	levels.go      lanes and pickers; the lane of a single list
//	discipline.go  strict, aging, deadline
//	weighted.go    shares of levels (stride scheduling)
//	saturation.go  strict that switches to shares under load
//	winnertree.go  the picker of all disciplines that compare scores
//	fair.go        the lane of fair keys; keys.go: their limits; finish.go: started first
//	within.go      which lane a level gets
//	reorder.go     a change of the order, in steps
//	stats.go       counts by level and class
//	ahead.go       what is delivered before a message
//	bitmap.go, heap.go, listheap.go   small data structures
//	check.go       invariants, for tests
//
// # Cost
//
// Strict finds the best level in a bit set. The other disciplines keep a winner tree
// over the levels, in which a change of one level costs one comparison for each
// doubling of the number of levels. Fair keys in round robin cost the same however
// many there are; keys that are finished first, and aged ones, are in a heap.
//
// # Invariants
//
// By the numbers of package queue: 5 to 7.
//
// # Concurrency
//
// None: an Index belongs to one goroutine, that of its queue.
//
// # Not here
//
// States, locks and records: queue. The settings themselves: ordering.
package order
