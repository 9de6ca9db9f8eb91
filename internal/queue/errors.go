// SPDX-License-Identifier: Apache-2.0

package queue

import "errors"

// Errors of a sender. Nothing of the refused batch was stored.
var (
	// ErrFull says that the queue would exceed MaxBytes or MaxCount.
	ErrFull = errors.New("queue: full")
	// ErrSendPaused says that an operator has paused sending.
	ErrSendPaused = errors.New("queue: sending is paused")
	// ErrSessionRequired says that a message without a session was sent to a session
	// queue.
	ErrSessionRequired = errors.New("queue: a session is required")
)

// Errors of receiving and settling.
var (
	// ErrReceivePaused says that an operator has paused receiving.
	ErrReceivePaused = errors.New("queue: receiving is paused")
	// ErrNotFound says that no message has that sequence number and a fitting state.
	ErrNotFound = errors.New("queue: message not found")
	// ErrLocked says that another receiver has locked the message.
	ErrLocked = errors.New("queue: message is locked")
	// ErrLockLost says that the token is not, or no longer, valid.
	ErrLockLost = errors.New("queue: lock lost")
	// ErrNotAllowed says that a queue of this kind does not support the operation.
	ErrNotAllowed = errors.New("queue: not allowed")
)

// Errors of a session receiver.
var (
	// ErrSessionLocked says that another receiver has locked the session.
	ErrSessionLocked = errors.New("queue: session is locked")
	// ErrSessionLockLost says that the session lock is not, or no longer, valid.
	ErrSessionLockLost = errors.New("queue: session lock lost")
)
