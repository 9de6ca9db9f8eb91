// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Properties that travel with a message that is given back.
const (
	propertyState       = names.PropertyState
	propertyPreemptions = names.PropertyPreemptions
)

// Task is the work on one message. A Task with only the exported fields can be given to
// a handler in a test: it is never preempted.
type Task struct {
	*client.Received
	// Pool is the name of the pool.
	Pool string

	attempt *attempt // nil in a task that a test made

	saves sync.Mutex // one Save at a time, in order
	mu    sync.Mutex
	state []byte // guarded by mu
	saved bool   // Save was called; guarded by mu
}

// Yield lets a preempted task wait in place until a slot is free for it. It returns at
// once if the task is not preempted, and the context's cause when ctx ends. Handlers
// that run for long call it often; it costs a few nanoseconds.
func (t *Task) Yield(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if t.attempt == nil || !t.attempt.asked.Load() {
		return nil
	}
	return t.attempt.yield(ctx)
}

// Save keeps a checkpoint for the next run of the message, wherever and however this one
// ends. It is durable when Save returns: the broker keeps it beside the message, in place of
// the one before, with at most 64 KiB, until the message is complete or a dead letter. Save
// renews the lock as well. After an error the one before is still there; with [ErrLockLost]
// the task is someone else's. Save works when the context of the handler has ended, so that
// a task that is preempted can save where it is.
//
// Brokers other than ours keep no checkpoints. There it is in memory, and travels with the
// message when the task is handed back by ErrPreempted, a retry or a stop of the pool.
func (t *Task) Save(ctx context.Context, state []byte) error {
	t.saves.Lock()
	defer t.saves.Unlock()
	if a := t.attempt; a != nil && a.from.Extensions() {
		if err := a.save(ctx, state); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.saved = bytes.Clone(state), true
	return nil
}

// State returns the last checkpoint, of this run or an earlier one; nil if there is none.
func (t *Task) State() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.saved && t.Received != nil {
		earlier, _ := t.Properties[propertyState].([]byte)
		return bytes.Clone(earlier)
	}
	return bytes.Clone(t.state)
}

// checkpoint returns what Save was given, and whether it was called.
func (t *Task) checkpoint() ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state, t.saved
}

// OnSuspend says how to suspend this task from outside, instead of by Yield: stop is
// called when it is preempted or its pool paused, and cont when it goes on or its
// context ends. Package worker/program stops processes so. The two are never called at
// the same time, nor after the handler has returned. A task whose stop fails runs on. One
// that still runs a second after the handler has returned is not waited for.
func (t *Task) OnSuspend(stop, cont func() error) {
	if t.attempt != nil {
		t.attempt.setHooks(hooks{stop, cont})
	}
}

// LockRemaining returns how long the lock lasts without a further renewal.
func (t *Task) LockRemaining() time.Duration {
	if t.attempt == nil {
		return 0
	}
	return t.attempt.lockLeft()
}
