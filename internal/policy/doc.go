// SPDX-License-Identifier: Apache-2.0

// Package policy defines priority classes, order and limits.
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
// # Format
//
// A policy is a JSON object. docs/guide/priorities.md names every field. Unknown fields
// are faults, so that a spelling mistake is noticed.
//
// # Concurrency
//
// A Policy never changes and may be shared. The envelope of Classify belongs to one
// goroutine at a time.
//
// # Invariants
//
//  1. Class n of a Classification is Classes[n-1]; zero is none.
//
// # Not here
//
// Whether a message is admitted: package admission. How the next message is chosen: the
// queue, by the Order of a policy. Whether an objective is met: package objective.
// Storing, changing and applying a policy: the broker.
package policy
