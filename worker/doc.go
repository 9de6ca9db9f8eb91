// SPDX-License-Identifier: Apache-2.0

// Package worker runs a handler for each message of a queue, with what consumers
// of prioritised work need: slots, lock renewal, retries, preemption, autoscaling,
// time windows and a graceful stop.
//
//	pool := worker.Pool{Client: c, Source: "tasks", Slots: 4, Handler: worker.HandlerFunc(handle)}
//	err := pool.Run(ctx)
//
// # Promise
//
// A message is completed only after its handler returned nil, so each is handled
// to the end at least once. While a handler runs, its lock is renewed; when the lock
// is lost all the same, the handler's context ends with [ErrLockLost] as the cause.
// A pool asks the broker for no more messages than its free slots can start.
//
// # Preemption
//
// With [Pool.Preempt] a message of a higher level starts at once when all slots are
// busy, and the lowest running task makes way for it: at [Task.Yield] it waits in
// place, with its lock renewed, until a slot is free again.
//
// # Concurrency
//
// One goroutine schedules the slots; each running handler has one of its own. Run
// returns when all of them have ended. A handler that ignores its context holds Run
// up until [Pool.Grace] is over; then its message is handed back and Run returns
// [ErrHandlerStuck].
//
// # Not here
//
// Running a program for each message is package worker/program. The broker's list of
// pools, and pausing them from outside, is described in docs/guide/workers.md.
package worker
