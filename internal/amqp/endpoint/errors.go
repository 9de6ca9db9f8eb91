// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/frame"
)

// Error is what a peer is told: the one form in which errors of an App reach the
// wire with their text.
type Error = frame.Error

// Conditions of the specification [AMQP 2.8.15-18]. Vendor conditions belong to
// the personality that speaks them.
const (
	CondInternalError         = "amqp:internal-error"
	CondNotFound              = "amqp:not-found"
	CondUnauthorizedAccess    = "amqp:unauthorized-access"
	CondDecodeError           = "amqp:decode-error"
	CondResourceLimitExceeded = "amqp:resource-limit-exceeded"
	CondNotAllowed            = "amqp:not-allowed"
	CondInvalidField          = "amqp:invalid-field"
	CondNotImplemented        = "amqp:not-implemented"
	CondResourceLocked        = "amqp:resource-locked"
	CondPreconditionFailed    = "amqp:precondition-failed"
	CondResourceDeleted       = "amqp:resource-deleted"
	CondIllegalState          = "amqp:illegal-state"
	CondFrameSizeTooSmall     = "amqp:frame-size-too-small"

	CondConnectionForced = "amqp:connection:forced"
	CondFramingError     = "amqp:connection:framing-error"
	CondRedirect         = "amqp:connection:redirect"

	CondWindowViolation  = "amqp:session:window-violation"
	CondErrantLink       = "amqp:session:errant-link"
	CondHandleInUse      = "amqp:session:handle-in-use"
	CondUnattachedHandle = "amqp:session:unattached-handle"

	CondDetachForced          = "amqp:link:detach-forced"
	CondTransferLimitExceeded = "amqp:link:transfer-limit-exceeded"
	CondMessageSizeExceeded   = "amqp:link:message-size-exceeded"
	CondLinkRedirect          = "amqp:link:redirect"
	CondStolen                = "amqp:link:stolen"
)

// Errors of Link.Send. The delivery was not sent and nothing changed.
var (
	ErrNoCredit = errors.New("endpoint: the peer granted no credit")
	ErrDetached = errors.New("endpoint: link is not attached")
	ErrTooLarge = errors.New("endpoint: message is larger than the peer takes")
)

// Errorf makes an Error with a condition and a formatted description.
func Errorf(condition, format string, args ...any) *Error {
	return &Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

// wireError returns what to tell the peer for err, which is nothing for nil. An
// error nobody translated goes out without its text, which may name files.
func wireError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Errorf(CondInternalError, "internal error; see the server log")
}
