// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
	// ErrExists means that there is an entity of that name already.
	ErrExists = errors.New("client: entity exists")
	// ErrClosed means that the client, sender or receiver was closed.
	ErrClosed = errors.New("client: closed")
)

// Errors of sending.
var (
	// ErrTooLarge means that the message is larger than the entity takes.
	ErrTooLarge = errors.New("client: message is too large")
	// ErrInvalid means that the message cannot be sent as it is, or that options
	// contradict each other or name what does not exist; the text says which.
	ErrInvalid = errors.New("client: invalid message or option")
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

// Error is what a broker said when it refused an operation. It unwraps to the Err
// variable that fits, if one does.
type Error struct {
	// Code is the AMQP error condition, such as amqp:not-found. Of an answer without
	// one it is the status, such as 404.
	Code string
	// Entity is the queue, topic or subscription that the operation was on.
	Entity string
	// Description is the broker's text.
	Description string
	// Kind is the Err variable that fits; nil if none does.
	Kind error

	cause error // as it came; nil if Code and Description say it all
}

func (e *Error) Error() string {
	if e.Kind != nil {
		return e.Kind.Error() + ": " + e.Description
	}
	return fmt.Sprintf("client: %s (%s)", e.Description, e.Code)
}

// Unwrap returns the Err variable that fits, if one does, and what came from the wire.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Kind, e.cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// failure says what an operation on an entity failed at.
func failure(doing, entity string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Entity == "" {
		e.Entity = entity // each error is made for one caller
	}
	return fmt.Errorf("%s %q: %w", doing, entity, err)
}

// BusyError means that the broker turns messages of a class away for now, as the
// queue's policy asks. Send waits and tries again by itself, unless that would
// take longer than [Options.RetryTimeout]. It unwraps to an Error and to ErrBusy.
type BusyError struct {
	Class      string // empty for messages in none
	RetryAfter time.Duration
	said       *Error
}

func (e *BusyError) Error() string { return e.said.Error() }

// Unwrap returns the [Error], which unwraps to ErrBusy.
func (e *BusyError) Unwrap() error { return e.said }

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
	names.Stolen:                ErrNotAllowed, // a reader of events whose partition is another's
	names.InvalidOffset:         ErrInvalid,
	names.ServerBusy:            ErrBusy,
	names.EntityAlreadyExists:   ErrExists,
	names.Fenced:                ErrFenced,
	names.Backwards:             ErrBackwards,
	names.UnknownMember:         ErrUnknownMember,
	names.Coordinated:           ErrCoordinated,
}

// statuses does the same for replies of a request/response node that carry a
// number and no condition, or one that conditions does not know.
var statuses = map[int]error{
	400: ErrInvalid,
	401: ErrUnauthorized,
	403: ErrQuota,
	404: ErrNotFound,
	410: ErrLockLost,
	503: ErrBusy,
}

const conditionTimeout = names.Timeout

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
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.translate()
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok {
		said := &Error{Code: string(e.Condition), Description: e.Description, cause: err}
		if _, ok := errors.AsType[*amqp.ConnError](err); ok {
			return said // of all that it carried, not of this operation
		}
		said.Kind = conditions[said.Code]
		if after, ok := integer(e.Info[infoRetryAfter]); ok && errors.Is(said.Kind, ErrBusy) {
			class, _ := e.Info[infoClass].(string)
			return &BusyError{Class: class, RetryAfter: time.Duration(after) * time.Millisecond, said: said}
		}
		return said
	}
	// go-amqp reports a refused login as text only.
	if err != nil && strings.Contains(err.Error(), "auth failed with code") {
		return &Error{Code: names.UnauthorizedAccess, Description: err.Error(), Kind: ErrUnauthorized, cause: err}
	}
	return err
}

func (e *statusError) translate() error {
	said := &Error{Code: e.condition, Description: e.description, Kind: conditions[e.condition], cause: e}
	if said.Kind == nil {
		said.Kind = statuses[e.status]
	}
	if said.Code == "" {
		said.Code = strconv.Itoa(e.status)
	}
	return said
}

// permanent reports whether a retry cannot help. Every error that is not a decision
// of the peer or of the caller counts as an outage.
func permanent(err error) bool {
	for _, known := range []error{
		ErrAddress, ErrUnauthorized, ErrNotFound, ErrExists, ErrDisabled, ErrNotAllowed, ErrClosed,
		ErrTooLarge, ErrInvalid, ErrQuota, ErrNoReplyTo,
		ErrLockLost, ErrSessionLockLost, ErrSessionLocked, ErrMessageNotFound,
		ErrFenced, ErrBackwards, ErrTaken, ErrUnknownMember, ErrCoordinated, errors.ErrUnsupported,
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
