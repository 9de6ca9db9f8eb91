// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"errors"
	"fmt"

	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Error is what a peer is told: the one form in which errors of an App reach the
// wire with their text.
type Error = frame.Error

// Conditions of the specification [AMQP 2.8.15-18]. Vendor conditions belong to
// the personality that speaks them.
const (
	CondInternalError         = names.InternalError
	CondNotFound              = names.NotFound
	CondUnauthorizedAccess    = names.UnauthorizedAccess
	CondDecodeError           = names.DecodeError
	CondResourceLimitExceeded = names.ResourceLimitExceeded
	CondNotAllowed            = names.NotAllowed
	CondInvalidField          = names.InvalidField
	CondNotImplemented        = names.NotImplemented
	CondResourceLocked        = names.ResourceLocked
	CondPreconditionFailed    = names.PreconditionFailed
	CondResourceDeleted       = names.ResourceDeleted
	CondIllegalState          = names.IllegalState
	CondFrameSizeTooSmall     = names.FrameSizeTooSmall

	CondConnectionForced = names.ConnectionForced
	CondFramingError     = names.FramingError
	CondRedirect         = names.Redirect

	CondWindowViolation  = names.WindowViolation
	CondErrantLink       = names.ErrantLink
	CondHandleInUse      = names.HandleInUse
	CondUnattachedHandle = names.UnattachedHandle

	CondDetachForced          = names.DetachForced
	CondTransferLimitExceeded = names.TransferLimitExceeded
	CondMessageSizeExceeded   = names.MessageSizeExceeded
	CondLinkRedirect          = names.LinkRedirect
	CondStolen                = names.Stolen
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
