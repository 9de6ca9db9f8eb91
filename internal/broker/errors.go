// SPDX-License-Identifier: Apache-2.0

package broker

import "github.com/triagemq/triagemq/internal/broker/catalog"

// The errors of the broker. Package catalog explains each.
var (
	ErrNotFound         = catalog.ErrNotFound
	ErrExists           = catalog.ErrExists
	ErrInvalid          = catalog.ErrInvalid
	ErrNotAllowed       = catalog.ErrNotAllowed
	ErrDisabled         = catalog.ErrDisabled
	ErrTooLarge         = catalog.ErrTooLarge
	ErrQuota            = catalog.ErrQuota
	ErrMemory           = catalog.ErrMemory
	ErrDefinitionMemory = catalog.ErrDefinitionMemory
	ErrDiskFull         = catalog.ErrDiskFull
	ErrSessionRequired  = catalog.ErrSessionRequired
	ErrLockLost         = catalog.ErrLockLost
	ErrSessionLockLost  = catalog.ErrSessionLockLost
	ErrSessionLocked    = catalog.ErrSessionLocked
	ErrMessageNotFound  = catalog.ErrMessageNotFound
	ErrNoPropertySpace  = catalog.ErrNoPropertySpace
	ErrUnreadable       = catalog.ErrUnreadable
	ErrTimeout          = catalog.ErrTimeout
	ErrBusy             = catalog.ErrBusy
	ErrMoved            = catalog.ErrMoved
	ErrStopping         = catalog.ErrStopping
)
