// SPDX-License-Identifier: Apache-2.0

// Package lease has what ends at a time: locks on messages and sessions, the schedule of
// messages that are delivered later, and the message ids of duplicate detection.
//
//	locks.go     LockTable: locks in order of their end, one list for each duration
//	schedule.go  Schedule: a heap of scheduled messages
//	window.go    DedupWindow: message ids that were seen within a time
//	fifo.go      a queue in chunks, for the window
//
// Each finds in constant time what ends first. Nothing here is logged: the queue logs
// what follows from it. Entries refer to locks and schedule items by index.
//
// # Concurrency
//
// None: each value belongs to one goroutine, that of its queue.
//
// # Not here
//
// What happens when something ends: queue.
package lease
