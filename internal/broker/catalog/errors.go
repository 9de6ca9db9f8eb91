// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Errors of naming.
var (
	// ErrNotFound means that no entity has that name.
	ErrNotFound = queueserver.ErrNoEntity
	// ErrExists means that an entity of that name exists already.
	ErrExists = errors.New("broker: entity already exists")
	// ErrInvalid means that a definition or an argument is invalid; the wrapping text has
	// every fault.
	ErrInvalid = errors.New("broker: invalid")
	// ErrNotAllowed means that the entity does not support the operation: sending to a
	// dead-letter queue, say, or receiving from a topic.
	ErrNotAllowed = errors.New("broker: not allowed")
	// ErrDisabled means that the entity's status forbids the operation.
	ErrDisabled = errors.New("broker: entity is disabled")
)

// Errors of sending.
var (
	// ErrTooLarge means that a message is larger than its entity accepts.
	ErrTooLarge = errors.New("broker: message is too large")
	// ErrQuota means that the entity has reached its size limit.
	ErrQuota = queue.ErrFull
	// ErrMemory means that the messages of all entities take all the memory that there is
	// for them. It is an ErrQuota.
	ErrMemory = queueserver.ErrMemory
	// ErrDefinitionMemory means that no memory is left for what a definition takes. It is an
	// ErrQuota.
	ErrDefinitionMemory = fmt.Errorf("%w: there is no memory for the definition", ErrQuota)
	// ErrDiskFull means that the disk is full; consumers can continue.
	ErrDiskFull = queueserver.ErrDiskFull
	// ErrSessionRequired means that the entity accepts only messages with a session.
	ErrSessionRequired = queue.ErrSessionRequired
)

// Errors of receiving and settling.
var (
	// ErrLockLost means that the lock expired, the message is settled, or the token is
	// unknown.
	ErrLockLost = queue.ErrLockLost
	// ErrSessionLockLost means the same of a session.
	ErrSessionLockLost = queue.ErrSessionLockLost
	// ErrSessionLocked means that another receiver has locked the session.
	ErrSessionLocked = queue.ErrSessionLocked
	// ErrMessageNotFound means that no message has that sequence number, or not in a state
	// that allows the operation.
	ErrMessageNotFound = queue.ErrNotFound
	// ErrNoPropertySpace means that properties cannot be merged into a message while the disk is
	// full. The lock stays valid; it is an ErrDiskFull.
	ErrNoPropertySpace = queueserver.ErrNoPropertySpace
	// ErrUnreadable means that the body of a message cannot be read; it has become a dead
	// letter.
	ErrUnreadable = queueserver.ErrUnreadable
	// ErrTimeout means that no message or session was available before the timeout.
	ErrTimeout = errors.New("broker: timeout")
)

// Errors that a retry may overcome.
var (
	// ErrBusy means that the broker has more work queued than it accepts.
	ErrBusy = queueserver.ErrBusy
	// ErrMoved means that another owner has claimed the shard of the entity. This broker
	// does not serve it any more, and continues with others.
	ErrMoved = queueserver.ErrMoved
	// ErrStopping means that the broker is stopping.
	ErrStopping = queueserver.ErrStopped
)

// ThrottledError rejects messages of a class until a retry. It unwraps to ErrBusy.
type ThrottledError = queueserver.ThrottledError

// Translate converts the errors of a queue into those of the broker.
func Translate(err error) error {
	switch {
	case errors.Is(err, queueserver.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case errors.Is(err, limits.ErrExceeded):
		return Invalid(err)
	case errors.Is(err, queue.ErrSendPaused), errors.Is(err, queue.ErrReceivePaused):
		return fmt.Errorf("%w: %w", ErrDisabled, err)
	case errors.Is(err, queue.ErrLocked):
		return fmt.Errorf("%w: %w", ErrMessageNotFound, err)
	case errors.Is(err, queue.ErrNotAllowed):
		return fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return err
}
