// SPDX-License-Identifier: Apache-2.0

// Package policy says what a message is worth.
//
// The level of a message is that of the class its queue's policy puts it in, else
// what the message itself asks for: the application property Priority, a number or
// a name, else the priority of its header, else 4, as in AMQP. Higher wins.
//
// # Promise
//
// Parse reports everything that is wrong with a policy, each fault with the path
// of what is at fault; a policy that it returns can be used without further
// checks. Classify gives every message a level, whatever it looks like.
//
// An Admitter admits a batch as a whole or not at all. Over any time t a rate of n
// lets in n for each of its units, n more at once, and the rest of the last
// batch. By the watermarks a message is turned away only if every level below
// its own is turned away too.
//
// # Format
//
// A policy is a JSON object. docs/guide/priorities.md names every field. Fields
// that nobody knows are faults, so that a slip of the pen does not go unnoticed.
//
// # Concurrency
//
// A Policy never changes and may be shared. An Admitter and an envelope given to
// Classify belong to one goroutine at a time.
//
// # Invariants
//
//  1. Class n of a Classification is Classes[n-1]; zero is none.
//  2. A bucket of a key that is full is as good as none, and is dropped.
//
// # Not here
//
// How the next message is chosen: the queue, by the Order of a policy. Whether a
// promise is kept: package objective. Storing, changing and applying a policy: the
// broker.
package policy
