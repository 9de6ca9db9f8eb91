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
// A pool that the broker's operator has paused stays paused when its process starts again:
// the first request for messages waits for the broker's orders, for three seconds at most.
//
// A message whose handler failed keeps its lock, outside the slots, until its retry is
// due. Then it is given back as failed, and any worker can take it. What a stop or a
// preemption interrupts is given back uncounted, with what [Task.Save] was given.
//
// Each failure of a handler is a line in the log. When failures are many, one line in a
// second counts those that were left out. A handler that needs what is not there returns
// [ErrUnavailable], and no message pays for it.
//
// A panic of a handler is caught and counts as a failure. A message whose handler panics
// although it failed before is a dead letter with the stack in its description.
//
// # Preemption
//
// With [Pool.Preempt] a message of a higher level starts at once when all slots are
// busy, and the lowest running task makes way for it. Among equals that is the task with
// the least work done. At [Task.Yield] it waits in place, with its lock renewed, until a
// slot is free and no message ranks above it. Until it yields, more handlers run than
// there are slots: one for each urgent task. [Preemption].Cancel ends the context of the
// task instead, so that it saves its state and returns.
//
// In a pool of several sources in order, each message of an earlier source ranks above
// those of later ones. Within the first source, and with the other selections, the level
// decides.
//
// # Sessions
//
// With [Pool.Sessions] a slot takes a session, and handles its messages one after the other
// until none comes for a while. A message that is to be tried again keeps its session and the
// slot, so that the order holds. The state of the session is read and set with
// [Task.SessionState] and [Task.SetSessionState].
//
// # Assumptions
//
// The clocks of the broker and of this machine may differ if locks last 20 seconds or
// more: each is renewed at half of the remaining time, and every ten seconds at least.
// Shorter locks need a broker whose clock is not ahead by more than half a lock.
//
// The count of preemptions and the state of a task travel as properties of its message.
// The broker removes them from what senders send. Brokers without our extensions do not: there
// they are to be trusted as the body is.
//
// Brokers without our extensions, such as Azure Service Bus, cannot filter by level or
// wait at several sources. There a pool polls its sources in order, at least once a
// second, and only an earlier source preempts a later one. The log explains that once.
//
// # Concurrency
//
// One goroutine schedules the slots; each message has two of its own, one of which runs
// the handler. Run returns when all of them have ended. A handler that ignores its context holds Run
// up until [Pool.Grace] is over and five seconds more; then its message is handed back
// and Run returns [ErrHandlerStuck]. The methods of a pool are safe for concurrent use.
//
// # Not here
//
// Running a program for each message is package worker/program. What runs next is decided
// by package worker/internal/slots. The broker's list of pools, and pausing them from
// outside, is described in docs/guide/workers.md.
package worker
