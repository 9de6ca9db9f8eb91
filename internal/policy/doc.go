// SPDX-License-Identifier: Apache-2.0

// Package policy defines priority classes, order and limits, and admits messages by them.
//
// The level of a message is that of the class that its queue's policy assigns. Without
// one it is that of the message itself: the application property Priority, a number or a
// name, else the priority of its header, else 4, as in AMQP. A higher level is served
// first.
//
// # Promise
//
// Parse reports everything that is wrong with a policy, each fault with its path; a
// policy that it returns can be used without further checks. Classify assigns a level to
// every message, whatever it contains.
//
// An Admitter admits a batch as a whole or not at all. Over any time t a rate of n admits
// n for each of its units, n more at once, and the excess of the last batch. By the
// watermarks a message is rejected only if every level below its own is rejected, too.
//
// # Format
//
// A policy is a JSON object. docs/guide/priorities.md names every field. Unknown fields
// are faults, so that a spelling mistake is noticed.
//
// # Concurrency
//
// A Policy never changes and may be shared. An Admitter, and the envelope of Classify,
// belong to one goroutine at a time.
//
// # Invariants
//
//  1. Class n of a Classification is Classes[n-1]; zero is none.
//  2. A key without a bucket has a full one: full buckets are dropped.
//
// # Not here
//
// How the next message is chosen: the queue, by the Order of a policy. Whether an
// objective is met: package objective. Storing, changing and applying a policy: the
// broker.
package policy
