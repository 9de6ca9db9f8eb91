// SPDX-License-Identifier: Apache-2.0

// Package session has the sessions of a queue: their messages, locks and states.
//
// A session is delivered in sequence order to one receiver at a time, which locks it.
// A free session is listed once in each level in which it has ready messages, by its
// oldest message there; the first listing that is picked locks the session and removes
// the others. So the discipline that ranks messages ranks sessions, and an urgent
// message also advances the messages before it in its session.
//
//	table.go  Table: sessions by id and number, states
//	level.go  the messages of a session, and its listings by level
//	ahead.go  what is delivered before a message of a session
//	check.go  invariants, for tests
//
// # Invariants
//
// By the numbers of package queue: 5.
//
// # Concurrency
//
// None: a Table belongs to one goroutine, that of its queue.
//
// # Not here
//
// Locking and settling, and records: queue.
package session
