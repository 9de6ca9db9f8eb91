// SPDX-License-Identifier: Apache-2.0

// Package redrive moves dead letters back to the queue they came from, or to another
// queue or topic.
//
// Run reads the dead letters in sequence order, in windows. It locks those that match,
// sends them, and waits until the moves of a window are durable (redrive.go).
//
// # Invariants
//
//  1. A message is never lost: within one shard a move is one group of records, between
//     shards a crash leaves it in both.
//  2. A redrive ends: what is dead-lettered while it runs is not examined.
//  3. A message that returns to its queue is classified by the present policy.
//
// # Concurrency
//
// Run works on the goroutine of its caller and may be called from any.
package redrive
