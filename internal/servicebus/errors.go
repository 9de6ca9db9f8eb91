// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// Conditions of the vendor.
const (
	condServerBusy      = "com.microsoft:server-busy"
	condTimeout         = "com.microsoft:timeout"
	condCancelled       = "com.microsoft:operation-cancelled"
	condLockLost        = "com.microsoft:message-lock-lost"
	condSessionLockLost = "com.microsoft:session-lock-lost"
	condSessionLocked   = "com.microsoft:session-cannot-be-locked"
	condMessageNotFound = "com.microsoft:message-not-found"
	condSessionNotFound = "com.microsoft:session-not-found"
	condEntityDisabled  = "com.microsoft:entity-disabled"
	condEntityExists    = "com.microsoft:entity-already-exists"
	condArgument        = "com.microsoft:argument-error"
	condDeadLetter      = "com.microsoft:dead-letter"
)

// Texts that clients and their tests look for.
const (
	textLockLost = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue, " +
		"or was received by a different receiver instance."
	textSessionLockLost = "The session lock was lost. Request a new session receiver."
	textSessionRequired = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver."
	textNoSession       = "The message does not have a session id, which the entity requires."
)

// errNoMemory is what a peer is told that makes us hold as much as it may.
var errNoMemory = endpoint.Errorf(endpoint.CondResourceLimitExceeded,
	"This connection, its key or the broker holds too much memory already. Try again later.")

// errGone is why what a connection has under way ends with it.
var errGone = errors.New("servicebus: connection is gone")

// errReplaced means that an entity was deleted and another has its name now. It is
// a broker.ErrNotFound.
var errReplaced = fmt.Errorf("%w: it was deleted, and created anew", broker.ErrNotFound)

// Status codes of replies; they are HTTP's.
const (
	statusOK           = 200
	statusAccepted     = 202
	statusNoContent    = 204
	statusBadRequest   = 400
	statusUnauthorized = 401
	statusForbidden    = 403
	statusNotFound     = 404
	statusTimeout      = 408
	statusConflict     = 409
	statusGone         = 410
	statusInternal     = 500
	statusUnsupported  = 501
	statusUnavailable  = 503
)

// conditions says what a peer is told about each error: on a link by condition,
// in a reply also by status. It is the only place where a Go error turns into
// either. In a text, {entity} stands for the entity's URL; an empty text is the
// error's own, which is fit for a peer.
var conditions = []struct {
	err       error
	condition string
	status    int32
	text      string
}{
	{broker.ErrNotFound, endpoint.CondNotFound, statusNotFound, "The messaging entity '{entity}' could not be found."},
	{broker.ErrExists, condEntityExists, statusConflict, "The messaging entity '{entity}' already exists."},
	{broker.ErrInvalid, condArgument, statusBadRequest, ""},
	{broker.ErrNotAllowed, endpoint.CondNotAllowed, statusBadRequest, ""},
	{broker.ErrDisabled, condEntityDisabled, statusForbidden, "The messaging entity '{entity}' is currently disabled."},
	{broker.ErrTooLarge, endpoint.CondMessageSizeExceeded, statusBadRequest, "The message is larger than '{entity}' accepts."},
	{broker.ErrQuota, endpoint.CondResourceLimitExceeded, statusForbidden, "The messaging entity '{entity}' has reached its size quota."},
	{broker.ErrNoRoom, condServerBusy, statusUnavailable, "The broker's disk is full: properties cannot be merged into a message. " +
		"Settle it without them, or try again later; its lock holds."},
	{broker.ErrUnreadable, condMessageNotFound, statusNotFound, "The message cannot be read from the disk of the broker. It is among the dead letters of '{entity}'."},
	{broker.ErrDiskFull, endpoint.CondResourceLimitExceeded, statusForbidden, "The broker's disk is full. Receiving and settling still work."},
	{broker.ErrSessionRequired, endpoint.CondNotAllowed, statusBadRequest, textNoSession},
	{broker.ErrLockLost, condLockLost, statusGone, textLockLost},
	{broker.ErrSessionLockLost, condSessionLockLost, statusGone, textSessionLockLost},
	{broker.ErrSessionLocked, condSessionLocked, statusGone, "The requested session cannot be accepted. It may be locked by another receiver."},
	{broker.ErrMessageNotFound, condMessageNotFound, statusNotFound, "The message could not be found on '{entity}'."},
	{broker.ErrTimeout, condTimeout, statusTimeout, "The operation did not complete within the allotted time."},
	{broker.ErrBusy, condServerBusy, statusUnavailable, ""},
	{broker.ErrMoved, endpoint.CondDetachForced, statusUnavailable, "Another process has taken over the messages of '{entity}'. Connect again."},
	{broker.ErrStopping, endpoint.CondConnectionForced, statusUnavailable, "The broker is stopping."},
	{context.DeadlineExceeded, condTimeout, statusTimeout, "The operation did not complete within the allotted time."},
	{context.Canceled, condCancelled, statusUnavailable, "The operation was cancelled."},
	{errGone, condCancelled, statusUnavailable, "The operation was cancelled."}, // nobody hears it

	{access.ErrMalformed, endpoint.CondUnauthorizedAccess, statusUnauthorized, "MalformedToken: The token is malformed."},
	{access.ErrSignature, endpoint.CondUnauthorizedAccess, statusUnauthorized, "InvalidSignature: The token has an invalid signature."},
	{access.ErrRevoked, endpoint.CondUnauthorizedAccess, statusUnauthorized, "InvalidSignature: The key of the token was changed or removed."},
	{access.ErrRefused, endpoint.CondUnauthorizedAccess, statusUnauthorized, "InvalidAudience: Tokens of this type are not accepted here."},

	{limits.ErrExceeded, condArgument, statusBadRequest, ""},
	{message.ErrSize, endpoint.CondMessageSizeExceeded, statusBadRequest, "The message is larger than '{entity}' accepts."},
	{message.ErrSection, endpoint.CondDecodeError, statusBadRequest, ""},
	{message.ErrOrder, endpoint.CondDecodeError, statusBadRequest, ""},
	{message.ErrField, endpoint.CondDecodeError, statusBadRequest, ""},
	{message.ErrBatch, endpoint.CondDecodeError, statusBadRequest, ""},
	{codec.ErrShort, endpoint.CondDecodeError, statusBadRequest, ""},
	{codec.ErrCode, endpoint.CondDecodeError, statusBadRequest, ""},
	{codec.ErrCount, endpoint.CondDecodeError, statusBadRequest, ""},
	{codec.ErrElements, endpoint.CondDecodeError, statusBadRequest, ""},
	{codec.ErrType, endpoint.CondDecodeError, statusBadRequest, ""},
	{codec.ErrDepth, endpoint.CondDecodeError, statusBadRequest, ""},
}

// statuses are those of conditions that our own code raises directly.
var statuses = map[string]int32{
	endpoint.CondUnauthorizedAccess:    statusUnauthorized,
	endpoint.CondNotFound:              statusNotFound,
	endpoint.CondNotAllowed:            statusBadRequest,
	endpoint.CondNotImplemented:        statusUnsupported,
	endpoint.CondResourceLimitExceeded: statusForbidden,
	condArgument:                       statusBadRequest,
	condSessionNotFound:                statusNotFound,
	condServerBusy:                     statusUnavailable,
}

// failure is an error as a peer is told it.
type failure struct {
	*endpoint.Error
	status int32
}

// failureOf translates err, which happened to the entity at addr. An error nobody
// planned for is logged and reported without its text, which may name files.
func (c *conn) failureOf(addr string, err error) failure {
	if e, ok := errors.AsType[*endpoint.Error](err); ok {
		status, ok := statuses[e.Condition]
		if !ok {
			status = statusInternal
		}
		if len(e.Description) > maxText {
			short := *e
			short.Description = shortened(e.Description)
			e = &short
		}
		return failure{e, status}
	}
	if e, ok := errors.AsType[*access.ExpiredError](err); ok {
		return failure{endpoint.Errorf(endpoint.CondUnauthorizedAccess,
			"ExpiredToken: The token is expired. Expiration time:'%s'.", e.At.UTC().Format("2006-01-02T15:04:05.000Z")), statusUnauthorized}
	}
	if e, ok := errors.AsType[*broker.ThrottledError](err); ok {
		return failure{throttled(e), statusUnavailable}
	}
	for _, known := range conditions {
		if !errors.Is(err, known.err) {
			continue
		}
		text := known.text
		if text == "" {
			text = strings.TrimSuffix(strings.TrimPrefix(broker.Text(err), broker.Text(known.err)+": "), ".") + "."
		}
		text = shortened(strings.ReplaceAll(text, "{entity}", c.urlOf(addr)))
		return failure{&endpoint.Error{Condition: known.condition, Description: text}, known.status}
	}
	c.log.Error("unexpected error", "entity", addr, "err", err)
	return failure{endpoint.Errorf(endpoint.CondInternalError, "internal error; see the server log"), statusInternal}
}

// maxText is how many bytes of text an error has for a peer: names that it sent itself
// may be in it.
const maxText = 1 << 10

// shortened cuts a text that is too long for an error.
func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// What a sender that is turned away learns besides the text. The names are on the
// wire and never change.
const (
	infoClass      = "triagemq:class"
	infoRetryAfter = "triagemq:retry-after" // milliseconds
)

// throttled tells a sender which class was refused and when to come back. SDKs
// know the condition and wait; our own client knows for how long.
func throttled(e *broker.ThrottledError) *endpoint.Error {
	info, at := codec.BeginMap(nil)
	info = codec.AppendString(codec.AppendSymbol(info, infoClass), e.Class)
	info = codec.AppendUint(codec.AppendSymbol(info, infoRetryAfter), uint32(math.Ceil(e.RetryAfter*1000)))
	text := broker.Text(e)
	return &endpoint.Error{
		Condition: condServerBusy, Description: strings.ToUpper(text[:1]) + text[1:] + ".",
		Info: codec.EndMap(info, at, 2),
	}
}

// wireError is failureOf for links, which know no status.
func (c *conn) wireError(addr string, err error) *endpoint.Error { return c.failureOf(addr, err).Error }
