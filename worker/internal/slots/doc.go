// SPDX-License-Identifier: Apache-2.0

// Package slots decides what a pool does next: which messages start, which running
// task makes way for a better one, which suspended task goes on, and what to ask the
// broker for. It is a pure state machine: events and the time go in, actions come out.
//
// # States of a task
//
//	Arrived
//	   │
//	   ▼    preempted, paused           parked
//	running ───────────────► yielding ─────────► parked
//	   │  ▲                     │                  │
//	   │  └─────────────────────┴──────────────────┘
//	   │                  a slot is free
//	   ▼
//	leaving     its context has ended; it keeps its slot if it had one
//
// # Invariants
//
//  1. Tasks with a slot are running, or leaving after they ran. There are no more of
//     them than slots, except after the number of slots was reduced.
//  2. A task without a slot is yielding, parked, or leaving after it was either.
//  3. The broker is asked for no more messages than there are free slots, and for one
//     more that ranks above a task which can be preempted.
//  4. While a task waits for a slot, only messages that rank above it are asked for.
//
// # Concurrency
//
// A Machine belongs to one goroutine.
//
// # Not here
//
// Locks, retries and the broker: package worker carries out the actions.
package slots
