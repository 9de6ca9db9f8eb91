// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
)

// Handler works on messages. Handle's context ends when the lock is lost, the timeout
// is over, the task is preempted (with Preemption.Cancel), or the pool's grace is;
// [context.Cause] says which. The error decides what becomes of the message:
//
//   - nil: it is complete;
//   - [RetryAfter]: it is available again after that time;
//   - [DeadLetter]: it is moved to the dead letter queue;
//   - [Discard]: it is complete, and counted as failed;
//   - [ErrUnavailable]: it is handed back, counts as no failure, and the pool takes no
//     message for a while;
//   - [ErrPreempted]: it is handed back with the state saved, and counts as no failure;
//   - any other: it is available again after the pool's Retry, and counts as a failure.
//
// A handler that has a method Check() error is asked before the pool takes its first
// message. Its error makes the settings of the pool invalid.
type Handler interface {
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc makes a handler of a function.
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// Outcome is what became of a task.
type Outcome uint8

// The outcomes.
const (
	Completed Outcome = iota
	Failed            // available again, and counted
	DeadLettered
	Discarded
	HandedBack // available again, not counted: preempted, or the pool stopped
	LockLost   // somebody else has it, or will have
)

// ErrUnavailable is returned by a handler that cannot work on any message now, because what
// it needs is not there. The message is handed back and counts as no failure. The pool takes
// no message for a second, twice as long after each further time, up to a minute.
var ErrUnavailable = errors.New("worker: handler is unavailable")

// Causes of the end of a handler's context.
var (
	// ErrPreempted means that a message of a higher level needs the slot.
	ErrPreempted = errors.New("worker: preempted by a message of a higher level")
	// ErrLockLost means that another consumer may have the message now.
	ErrLockLost = errors.New("worker: message lock lost")
	// ErrTimeout means that Pool.Timeout is over.
	ErrTimeout = errors.New("worker: handler timed out")
	// ErrStopping means that the pool stops and its grace is over.
	ErrStopping = errors.New("worker: pool is stopping")
	// ErrHandlerStuck is returned by Run when handlers ignored the end of their contexts.
	ErrHandlerStuck = errors.New("worker: handlers did not return")
)
