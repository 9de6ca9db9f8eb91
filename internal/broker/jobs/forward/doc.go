// SPDX-License-Identifier: Apache-2.0

// Package forward moves messages out of queues that forward them, and publishes the
// messages that a topic has stored: scheduled ones, and all messages of a topic with
// duplicate detection.
//
// Forwarders (forwarders.go) has one forwarder for each source: a queue that forwards,
// dead letters that are forwarded, the queue of a topic. It starts and stops them as
// definitions change. A forwarder (forwarder.go) is a consumer of its source and a job:
// it takes messages, and sends one after the other to the target.
//
// # Invariants
//
//  1. A message is never lost: within one shard the move is one group of records, and
//     between shards it is removed from the source when it is durable at the target. A
//     crash in between leaves a copy in both.
//  2. Messages leave a source in the order in which they were taken.
//  3. A message that its target does not accept at present is released, and its delivery
//     count does not grow. One that can never be forwarded becomes a transfer dead letter.
//  4. A forwarder has at most Window unsettled messages, and at most Workers forwarders
//     run at the same time.
//
// # Concurrency
//
// All methods may be called from any goroutine and never block. A forwarder's callbacks
// run on the goroutines of shards; what takes long is left to the job.
package forward
