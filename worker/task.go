// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Handler works on messages. Handle's context ends when the lock is lost, the timeout
// is over, the task is preempted (with Preemption.Cancel), or the pool's grace is;
// [context.Cause] says which. The error decides what becomes of the message:
//
//   - nil: it is complete;
//   - [RetryAfter]: it is available again after that time;
//   - [DeadLetter]: it is moved to the dead letter queue;
//   - [Discard]: it is complete, and counted as failed;
//   - [ErrPreempted]: it is handed back with the state saved, and counts as no failure;
//   - any other: it is available again after the pool's Retry, and counts as a failure.
type Handler interface {
	Handle(ctx context.Context, t *Task) error
}

// HandlerFunc makes a handler of a function.
type HandlerFunc func(ctx context.Context, t *Task) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, t *Task) error { return f(ctx, t) }

// Task is the work on one message.
type Task struct {
	*client.Received
	// Pool is the name of the pool.
	Pool string
}

// Yield lets a preempted task wait in place until a slot is free for it. It returns at
// once if the task is not preempted, and the context's cause when ctx ends. Handlers
// that run for long call it often; it costs a few nanoseconds.
func (t *Task) Yield(ctx context.Context) error { return nil }

// Save keeps a checkpoint for the next run of the message. It travels with the message
// when the task is handed back by ErrPreempted, a retry or a stop of the pool.
func (t *Task) Save(state []byte) {}

// State returns the checkpoint of an earlier run; nil if there is none.
func (t *Task) State() []byte { return nil }

// OnSuspend says how to suspend this task from outside, instead of by Yield: stop is
// called when it is preempted or its pool paused, and cont when it goes on. package program stops
// processes so. The two are never called at the same time.
func (t *Task) OnSuspend(stop, cont func() error) {}

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

// RetryAfter has the message delivered again after d; it counts as a failure. err may be nil.
func RetryAfter(d time.Duration, err error) error { return err }

// DeadLetter has the message moved to the dead letter queue with a reason.
func DeadLetter(reason string, err error) error { return err }

// Discard completes the message although err happened.
func Discard(err error) error { return err }

// Backoff says how long to wait after the given number of failures, from 1.
type Backoff func(failures int) time.Duration

// Constant waits always the same.
func Constant(d time.Duration) Backoff { return func(int) time.Duration { return d } }

// Exponential waits from first to most, twice as long each time, with jitter of a quarter.
func Exponential(first, most time.Duration) Backoff { return nil }
