// SPDX-License-Identifier: Apache-2.0

// Package turns lets those who use something scarce take turns: a processor, the memory for a
// list, the right to change entities. A semaphore alone serves them in the order in which they
// come, and who has a thousand requests waiting is served a thousand times before the next.
//
//	owner a   a5 a4 a3 a2 ──┐
//	owner b            b1 ──┼──► one of each waits for a slot, in the order of their coming
//	owner c         c2 c1 ──┘
//
// # Promise
//
// Work waits for what has a slot, for the work of its own owner before it, and for as much work of
// each other owner as that may have at a time, however much of theirs waits.
//
// # Assumptions
//
// The owner of work is whose key its sender has shown: the key, or the entity with all its keys.
//
// # Concurrency
//
// A Turns may be used by several goroutines. It has none.
package turns
