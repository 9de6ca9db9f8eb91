// SPDX-License-Identifier: Apache-2.0

package names

// Error conditions of AMQP [AMQP 2.8.15 to 2.8.18, 3.5.10 to 3.5.17].
const (
	InternalError         = "amqp:internal-error"
	NotFound              = "amqp:not-found"
	UnauthorizedAccess    = "amqp:unauthorized-access"
	DecodeError           = "amqp:decode-error"
	ResourceLimitExceeded = "amqp:resource-limit-exceeded"
	NotAllowed            = "amqp:not-allowed"
	InvalidField          = "amqp:invalid-field"
	NotImplemented        = "amqp:not-implemented"
	ResourceLocked        = "amqp:resource-locked"
	PreconditionFailed    = "amqp:precondition-failed"
	ResourceDeleted       = "amqp:resource-deleted"
	IllegalState          = "amqp:illegal-state"
	FrameSizeTooSmall     = "amqp:frame-size-too-small"

	ConnectionForced = "amqp:connection:forced"
	FramingError     = "amqp:connection:framing-error"
	Redirect         = "amqp:connection:redirect"

	WindowViolation  = "amqp:session:window-violation"
	ErrantLink       = "amqp:session:errant-link"
	HandleInUse      = "amqp:session:handle-in-use"
	UnattachedHandle = "amqp:session:unattached-handle"

	DetachForced          = "amqp:link:detach-forced"
	TransferLimitExceeded = "amqp:link:transfer-limit-exceeded"
	MessageSizeExceeded   = "amqp:link:message-size-exceeded"
	LinkRedirect          = "amqp:link:redirect"
	Stolen                = "amqp:link:stolen"
)

// Error conditions of the vendor.
const (
	ServerBusy            = "com.microsoft:server-busy"
	Timeout               = "com.microsoft:timeout" // also a property of an attach: how long to wait for a session
	OperationCancelled    = "com.microsoft:operation-cancelled"
	MessageLockLost       = "com.microsoft:message-lock-lost"
	SessionLockLost       = "com.microsoft:session-lock-lost"
	SessionCannotBeLocked = "com.microsoft:session-cannot-be-locked"
	MessageNotFound       = "com.microsoft:message-not-found"
	SessionNotFound       = "com.microsoft:session-not-found"
	EntityDisabled        = "com.microsoft:entity-disabled"
	EntityAlreadyExists   = "com.microsoft:entity-already-exists"
	ArgumentError         = "com.microsoft:argument-error"
	ArgumentOutOfRange    = "com.microsoft:argument-out-of-range"
	AuthFailed            = "com.microsoft:auth-failed"
	DeadLetter            = "com.microsoft:dead-letter"
	InvalidOffset         = "com.microsoft:georeplication:invalid-offset"
	OutOfOrderSequence    = "com.microsoft:out-of-order-sequence"
	ProducerStolen        = "com.microsoft:producer-epoch-stolen"
)

// What our own broker adds to the error of a sender that it throttles.
const (
	InfoClass      = "triagemq:class"
	InfoRetryAfter = "triagemq:retry-after" // milliseconds
)
