// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

// Status codes of replies; they are HTTP's.
const (
	StatusOK           = 200
	StatusAccepted     = 202
	StatusNoContent    = 204
	StatusBadRequest   = 400
	StatusUnauthorized = 401
	StatusForbidden    = 403
	StatusNotFound     = 404
	StatusTimeout      = 408
	StatusConflict     = 409
	StatusGone         = 410
	StatusInternal     = 500
	StatusUnsupported  = 501
	StatusUnavailable  = 503
)

// Condition says how an error is reported to a peer: on a link by condition, in a
// reply also by status. In a text, {entity} is replaced by the entity's URL; an empty text
// is the error's own, which is fit for a peer. Without an error, it is the status of a
// condition that is raised directly.
type Condition struct {
	Err    error
	Name   string
	Status int32
	Text   string
}

// shared are the conditions of what all personalities use.
var shared = []Condition{
	{broker.ErrNotFound, endpoint.CondNotFound, StatusNotFound, "The messaging entity '{entity}' could not be found."},
	{broker.ErrExists, names.EntityAlreadyExists, StatusConflict, "The messaging entity '{entity}' already exists."},
	{broker.ErrInvalid, names.ArgumentError, StatusBadRequest, ""},
	{broker.ErrNotAllowed, endpoint.CondNotAllowed, StatusBadRequest, ""},
	{broker.ErrDisabled, names.EntityDisabled, StatusForbidden, "The messaging entity '{entity}' is currently disabled."},
	{broker.ErrTooLarge, endpoint.CondMessageSizeExceeded, StatusBadRequest, "The message is larger than '{entity}' accepts."},
	{broker.ErrMemory, endpoint.CondResourceLimitExceeded, StatusForbidden, ""},
	{broker.ErrDefinitionMemory, endpoint.CondResourceLimitExceeded, StatusForbidden, ""}, // these two are an ErrQuota
	{broker.ErrQuota, endpoint.CondResourceLimitExceeded, StatusForbidden, "The messaging entity '{entity}' has reached its size quota."},
	{broker.ErrDiskFull, endpoint.CondResourceLimitExceeded, StatusForbidden, "The broker's disk is full. Receiving and settling still work."},
	{broker.ErrTimeout, names.Timeout, StatusTimeout, "The operation did not complete within the allotted time."},
	{broker.ErrBusy, names.ServerBusy, StatusUnavailable, ""},
	{broker.ErrPoolInvalid, names.ArgumentError, StatusBadRequest, ""},
	{broker.ErrTooManyPools, endpoint.CondResourceLimitExceeded, StatusForbidden, ""},
	{broker.ErrMoved, endpoint.CondDetachForced, StatusUnavailable, "Another process has taken over the messages of '{entity}'. Connect again."},
	{broker.ErrStopping, endpoint.CondConnectionForced, StatusUnavailable, "The broker is stopping."},
	{context.DeadlineExceeded, names.Timeout, StatusTimeout, "The operation did not complete within the allotted time."},
	{context.Canceled, names.OperationCancelled, StatusUnavailable, "The operation was cancelled."},

	{access.ErrMalformed, endpoint.CondUnauthorizedAccess, StatusUnauthorized, "MalformedToken: The token is malformed."},
	{access.ErrSignature, endpoint.CondUnauthorizedAccess, StatusUnauthorized, "InvalidSignature: The token has an invalid signature."},
	{access.ErrRevoked, endpoint.CondUnauthorizedAccess, StatusUnauthorized, "InvalidSignature: The key of the token was changed or removed."},
	{access.ErrRefused, endpoint.CondUnauthorizedAccess, StatusUnauthorized, "InvalidAudience: Tokens of this type are not accepted here."},

	{limits.ErrExceeded, names.ArgumentError, StatusBadRequest, ""},
	{endpoint.ErrTooLarge, endpoint.CondMessageSizeExceeded, StatusBadRequest, "The message is larger than its receiver accepts."},
	{message.ErrSize, endpoint.CondMessageSizeExceeded, StatusBadRequest, "The message is larger than '{entity}' accepts."},
	{message.ErrSection, endpoint.CondDecodeError, StatusBadRequest, ""},
	{message.ErrOrder, endpoint.CondDecodeError, StatusBadRequest, ""},
	{message.ErrField, endpoint.CondDecodeError, StatusBadRequest, ""},
	{message.ErrBatch, endpoint.CondDecodeError, StatusBadRequest, ""},
	{codec.ErrShort, endpoint.CondDecodeError, StatusBadRequest, ""},
	{codec.ErrCode, endpoint.CondDecodeError, StatusBadRequest, ""},
	{codec.ErrCount, endpoint.CondDecodeError, StatusBadRequest, ""},
	{codec.ErrElements, endpoint.CondDecodeError, StatusBadRequest, ""},
	{codec.ErrType, endpoint.CondDecodeError, StatusBadRequest, ""},
	{codec.ErrDepth, endpoint.CondDecodeError, StatusBadRequest, ""},

	{nil, endpoint.CondUnauthorizedAccess, StatusUnauthorized, ""},
	{nil, endpoint.CondNotFound, StatusNotFound, ""},
	{nil, endpoint.CondNotAllowed, StatusBadRequest, ""},
	{nil, endpoint.CondNotImplemented, StatusUnsupported, ""},
	{nil, endpoint.CondResourceLimitExceeded, StatusForbidden, ""},
	{nil, names.ArgumentError, StatusBadRequest, ""},
	{nil, names.ServerBusy, StatusUnavailable, ""},
}

// Table is the one place where a Go error becomes a condition and a status.
type Table struct {
	conditions []Condition
	statuses   map[string]int32 // of conditions that are raised directly
}

// NewTable returns a table of the shared conditions and those of personalities, which
// are looked at first: they are more special.
func NewTable(own ...[]Condition) *Table {
	t := &Table{statuses: map[string]int32{}}
	for _, cs := range append(own, shared) {
		for _, c := range cs {
			if c.Err != nil {
				t.conditions = append(t.conditions, c)
			} else {
				t.statuses[c.Name] = c.Status
			}
		}
	}
	return t
}

// Failure is an error as it is reported to a peer.
type Failure struct {
	*endpoint.Error
	Status int32
}

// Failure translates err, which happened to the entity whose URL is given. It reports
// false for an error without a condition: its text may name files, and is left out.
func (t *Table) Failure(err error, url func() string) (f Failure, planned bool) {
	if e, ok := errors.AsType[*endpoint.Error](err); ok {
		status, ok := t.statuses[e.Condition]
		if !ok {
			status = StatusInternal
		}
		if len(e.Description) > maxText {
			short := *e
			short.Description = shortened(e.Description)
			e = &short
		}
		return Failure{e, status}, true
	}
	if e, ok := errors.AsType[*access.ExpiredError](err); ok {
		return Failure{endpoint.Errorf(endpoint.CondUnauthorizedAccess,
			"ExpiredToken: The token is expired. Expiration time:'%s'.", e.At.UTC().Format("2006-01-02T15:04:05.000Z")), StatusUnauthorized}, true
	}
	if e, ok := errors.AsType[*broker.ThrottledError](err); ok {
		return Failure{throttled(e), StatusUnavailable}, true
	}
	for _, known := range t.conditions {
		if !errors.Is(err, known.Err) {
			continue
		}
		text := known.Text
		if text == "" {
			text = strings.TrimSuffix(strings.TrimPrefix(broker.Text(err), broker.Text(known.Err)+": "), ".") + "."
		}
		text = shortened(strings.ReplaceAll(text, "{entity}", url()))
		return Failure{&endpoint.Error{Condition: known.Name, Description: text}, known.Status}, true
	}
	return Failure{endpoint.Errorf(endpoint.CondInternalError, "internal error; see the server log"), StatusInternal}, false
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

// What a rejected sender gets besides the text. The names are on the
// wire and never change.
const (
	infoClass      = names.InfoClass
	infoRetryAfter = names.InfoRetryAfter // milliseconds
)

// throttled tells a sender which class was refused and when to come back. SDKs
// know the condition and wait; our own client knows for how long.
func throttled(e *broker.ThrottledError) *endpoint.Error {
	info, at := codec.BeginMap(nil)
	info = codec.AppendString(codec.AppendSymbol(info, infoClass), e.Class)
	info = codec.AppendUint(codec.AppendSymbol(info, infoRetryAfter), uint32(math.Ceil(e.RetryAfter*1000)))
	text := broker.Text(e)
	return &endpoint.Error{
		Condition: names.ServerBusy, Description: strings.ToUpper(text[:1]) + text[1:] + ".",
		Info: codec.EndMap(info, at, 2),
	}
}
