// SPDX-License-Identifier: Apache-2.0

// Package admission admits messages to a queue, or rejects them, by its policy.
//
// # Promise
//
// An Admitter admits a batch as a whole or not at all. Over any time t a rate of n admits
// n for each of its units, n more at once, and the excess of the last batch. By the
// watermarks a message is rejected only if every level below its own is rejected, too.
//
// # Files
//
// admitter.go has the decision and the rates, bucket.go one rate, capacity.go the limits
// of classes and queue, depths.go the counts that they are compared with.
//
// # Concurrency
//
// An Admitter belongs to one goroutine at a time.
//
// # Invariants
//
//  1. A key without a bucket has a full one: full buckets are dropped.
package admission
