// SPDX-License-Identifier: Apache-2.0

package processor

import "errors"

var (
	// ErrInvalid means that the settings of a processor cannot be used; the text names each.
	ErrInvalid = errors.New("processor: invalid settings")
	// ErrNotRunning means that the operation needs a processor that runs.
	ErrNotRunning = errors.New("processor: not running")
	// ErrNotOwned means that the operation needs a partition that this instance owns.
	ErrNotOwned = errors.New("processor: partition is not owned")
	// ErrLost means that another instance has the partition, or will have. It is the cause
	// of the end of a handler's context, and the answer to a checkpoint that came too late.
	ErrLost = errors.New("processor: partition lost")
	// ErrStopping is the cause of the end of a handler's context when the processor stops
	// and its grace is over.
	ErrStopping = errors.New("processor: stopping")
	// ErrTimeout is the cause of the end of a handler's context when a call of it has taken
	// longer than Timeout, and in errors that OnError gets about it.
	ErrTimeout = errors.New("processor: handler timed out")
	// ErrHandlerStuck means that a handler ignored the end of its context.
	ErrHandlerStuck = errors.New("processor: handler did not return")
	// ErrHandler is in errors that OnError gets about a handler that failed or panicked.
	ErrHandler = errors.New("processor: handler failed")
	// ErrStore is in errors that OnError gets about a store that did not do its work.
	ErrStore = errors.New("processor: checkpoint store failed")
)
