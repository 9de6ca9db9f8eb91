// SPDX-License-Identifier: Apache-2.0

// Package sim runs the whole core in one goroutine from one seed: shards over a
// journal over a disk in memory, clients that send, take and settle, clocks that
// jump or stand still, and disks that are slow, full, failing, or gone with the
// power.
//
// # Promise
//
// Beside the real thing a model is kept, made of plain slices. After every step
// the two are compared:
//
//   - The message handed out is the one that is due: the highest level, then the
//     oldest, of those that are available; and nobody else holds it.
//   - Every queue holds exactly the messages that were sent and not settled, each
//     in its state, with its count of failures, and counts them right.
//   - Every answer is the one that the model gives.
//   - A crash leaves the state of some moment, whole: no later one than the last
//     operation, and no earlier one than the last thing that anyone was told. So
//     nothing acknowledged or delivered is lost, nothing completed comes back,
//     and every batch, every message to many queues is there or is not.
//   - A disk that is recovered twice gives the same state twice.
//
// The same seed gives the same run, to the last byte of its trace.
//
// # Concurrency
//
// One goroutine, which is the point. A body that was moved while its reader was
// looking for it is the one exception: the reader has a goroutine that the
// simulator waits for before it goes on.
//
// # Not here
//
// Goroutines and races: the tests of shard and broker. Real disks and real
// processes: test/crash.
package sim
