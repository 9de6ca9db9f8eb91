// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Errors of opening.
var (
	// ErrAddress means that the connection string or URL cannot be read; the
	// text says why.
	ErrAddress = errors.New("client: invalid address")
	// ErrUnauthorized means that the key, the token or its rights do not allow
	// the operation.
	ErrUnauthorized = errors.New("client: unauthorized")
	// ErrNotFound means that no queue, topic or subscription has that name.
	ErrNotFound = errors.New("client: entity not found")
	// ErrDisabled means that the entity's status forbids the operation for now.
	ErrDisabled = errors.New("client: entity is disabled")
	// ErrNotAllowed means that the entity does not do that: a plain receiver on
	// a queue that requires sessions, or sending to a dead letter queue.
	ErrNotAllowed = errors.New("client: not allowed")
	// ErrClosed means that the client, sender or receiver was closed.
	ErrClosed = errors.New("client: closed")
)

// Errors of sending.
var (
	// ErrTooLarge means that the message is larger than the entity takes.
	ErrTooLarge = errors.New("client: message is too large")
	// ErrInvalid means that the message cannot be sent as it is.
	ErrInvalid = errors.New("client: invalid message")
	// ErrQuota means that the entity has reached its size limit.
	ErrQuota = errors.New("client: entity is full")
	// ErrBusy means that the broker turns work away for now.
	ErrBusy = errors.New("client: broker is busy")
	// ErrNoReplyTo means that a message asks for no reply.
	ErrNoReplyTo = errors.New("client: message has no reply-to")
)

// Errors of receiving and settling.
var (
	// ErrLockLost means that the lock ran out, that the message was settled
	// before, or that it never was locked.
	ErrLockLost = errors.New("client: message lock lost")
	// ErrSessionLockLost means the same of a session.
	ErrSessionLockLost = errors.New("client: session lock lost")
	// ErrSessionLocked means that another receiver has the session.
	ErrSessionLocked = errors.New("client: session is locked by another receiver")
	// ErrMessageNotFound means that no message has that sequence number, or not
	// in a state that allows the operation.
	ErrMessageNotFound = errors.New("client: message not found")
)

// BusyError means that the broker turns messages of a class away for now, as the
// queue's policy asks. Send waits and tries again by itself, unless that would
// take longer than [Options.RetryTimeout]. It unwraps to ErrBusy.
type BusyError struct {
	Class      string // empty for messages in none
	RetryAfter time.Duration
	text       string
}

func (e *BusyError) Error() string { return ErrBusy.Error() + ": " + e.text }

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// What our own broker adds to a refusal.
const (
	infoClass      = names.InfoClass
	infoRetryAfter = names.InfoRetryAfter // milliseconds
)

// conditions says what each AMQP condition means to a caller. Conditions that
// are not here are taken for passing trouble of the link or the connection.
var conditions = map[string]error{
	names.NotFound:              ErrNotFound,
	names.ResourceDeleted:       ErrNotFound,
	names.UnauthorizedAccess:    ErrUnauthorized,
	names.NotAllowed:            ErrNotAllowed,
	names.NotImplemented:        ErrNotAllowed,
	names.ResourceLimitExceeded: ErrQuota,
	names.MessageSizeExceeded:   ErrTooLarge,
	names.DecodeError:           ErrInvalid,
	names.InvalidField:          ErrInvalid,
	names.PreconditionFailed:    ErrInvalid,
	names.ArgumentError:         ErrInvalid,
	names.ArgumentOutOfRange:    ErrInvalid,
	names.EntityDisabled:        ErrDisabled,
	names.AuthFailed:            ErrUnauthorized,
	names.MessageLockLost:       ErrLockLost,
	names.MessageNotFound:       ErrMessageNotFound,
	names.SessionLockLost:       ErrSessionLockLost,
	names.SessionCannotBeLocked: ErrSessionLocked,
}

// statuses does the same for replies of a request/response node that carry a
// number and no condition, or one that conditions does not know.
var statuses = map[int]error{
	400: ErrInvalid,
	401: ErrUnauthorized,
	403: ErrQuota,
	404: ErrNotFound,
	410: ErrLockLost,
}

const (
	conditionBusy    = names.ServerBusy
	conditionTimeout = names.Timeout
)

// statusError is the refusal of a request/response node.
type statusError struct {
	status      int
	condition   string
	description string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s (status %d %s)", e.description, e.status, e.condition)
}

// translate turns what the wire says into one of our errors, as far as one fits.
func translate(err error) error {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.translate()
	}
	if _, ok := errors.AsType[*amqp.ConnError](err); ok {
		return err // of all that it carried, not of this operation
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		if known, ok := conditions[string(e.Condition)]; ok {
			return fmt.Errorf("%w: %s", known, e.Description)
		}
		if after, ok := integer(e.Info[infoRetryAfter]); ok && e.Condition == conditionBusy {
			class, _ := e.Info[infoClass].(string)
			return &BusyError{Class: class, RetryAfter: time.Duration(after) * time.Millisecond, text: e.Description}
		}
		if e.Condition == conditionBusy {
			return fmt.Errorf("%w: %s", ErrBusy, e.Description)
		}
	}
	// go-amqp reports a refused login as text only.
	if err != nil && strings.Contains(err.Error(), "auth failed with code") {
		return fmt.Errorf("%w: %s", ErrUnauthorized, err.Error())
	}
	return err
}

func (e *statusError) translate() error {
	known, ok := conditions[e.condition]
	if !ok {
		known, ok = statuses[e.status]
	}
	switch {
	case ok:
		return fmt.Errorf("%w: %s", known, e.description)
	case e.condition == conditionBusy || e.status == 503:
		return fmt.Errorf("%w: %s", ErrBusy, e.description)
	}
	return e
}

// permanent reports whether a retry cannot help. Every error that is not a decision
// of the peer or of the caller counts as an outage.
func permanent(err error) bool {
	for _, known := range []error{
		ErrAddress, ErrUnauthorized, ErrNotFound, ErrDisabled, ErrNotAllowed, ErrClosed,
		ErrTooLarge, ErrInvalid, ErrQuota, ErrNoReplyTo,
		ErrLockLost, ErrSessionLockLost, ErrSessionLocked, ErrMessageNotFound,
		context.Canceled,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// hasCondition reports whether the peer gave exactly this reason.
func hasCondition(err error, condition string) bool {
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.condition == condition
	}
	e, ok := errors.AsType[*amqp.Error](err)
	return ok && string(e.Condition) == condition
}
