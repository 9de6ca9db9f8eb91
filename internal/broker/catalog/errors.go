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
	// ErrInvalid means that a definition or an argument cannot be accepted; the
	// text around it says every fault.
	ErrInvalid = errors.New("broker: invalid")
	// ErrNotAllowed means that the entity does not do that: sending to a dead
	// letter queue, say, or reading a topic.
	ErrNotAllowed = errors.New("broker: not allowed")
	// ErrDisabled means that the entity's status forbids it for now.
	ErrDisabled = errors.New("broker: entity is disabled")
)

// Errors of sending.
var (
	// ErrTooLarge means that a message is larger than its entity takes.
	ErrTooLarge = errors.New("broker: message is too large")
	// ErrQuota means that the entity holds as much as it may.
	ErrQuota = queue.ErrFull
	// ErrDiskFull means that the store has no room; consumers can go on.
	ErrDiskFull = queueserver.ErrDiskFull
	// ErrSessionRequired means that the entity takes only messages of a session.
	ErrSessionRequired = queue.ErrSessionRequired
)

// Errors of receiving and settling.
var (
	// ErrLockLost means that the lock ran out, was settled, or never was.
	ErrLockLost = queue.ErrLockLost
	// ErrSessionLockLost means the same of a session.
	ErrSessionLockLost = queue.ErrSessionLockLost
	// ErrSessionLocked means that another receiver has the session.
	ErrSessionLocked = queue.ErrSessionLocked
	// ErrMessageNotFound means that no message has that number, or not in a
	// state that allows the operation.
	ErrMessageNotFound = queue.ErrNotFound
	// ErrNoRoom means that properties cannot be merged into a message while the
	// disk is full. The lock holds; it is an ErrDiskFull.
	ErrNoRoom = queueserver.ErrNoRoom
	// ErrUnreadable means that the body of a message cannot be read; it is among
	// the dead letters.
	ErrUnreadable = queueserver.ErrUnreadable
	// ErrTimeout means that nothing came in time.
	ErrTimeout = errors.New("broker: timeout")
)

// Errors of the moment: the same call may succeed later.
var (
	// ErrBusy means that the broker has more work queued than it accepts.
	ErrBusy = queueserver.ErrBusy
	// ErrMoved means that another owner has claimed the history that has the
	// entity. This broker does not serve it any more, and goes on with others.
	ErrMoved = queueserver.ErrMoved
	// ErrStopping means that the broker is going down.
	ErrStopping = queueserver.ErrStopped
)

// ThrottledError turns a message away for now, by class. It unwraps to ErrBusy.
type ThrottledError = queueserver.ThrottledError

// Translate turns what a machine says about being paused into the broker's word
// for it.
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
