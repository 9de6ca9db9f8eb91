// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/policy"
)

// Problem is an error as a client gets it.
type Problem struct {
	Status  int      // of HTTP
	Code    string   // one word, for programs; it never changes
	Message string   // for people
	Details []Detail // every single fault, if there are several or they have a path
	// RetryAfter is how many seconds to wait before a retry; zero is not sent.
	RetryAfter float64
}

// Detail is one fault of a request.
type Detail struct {
	Field   string `json:"field,omitzero"` // the property at fault, as a path
	Problem string `json:"problem"`
}

// Error makes a Problem an error, so that handlers can return one.
func (p *Problem) Error() string { return p.Message }

// Bad is a request that cannot be understood.
func Bad(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Code: "bad_request", Message: fmt.Sprintf(format, args...)}
}

// NotFound is a path without a resource.
func NotFound(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusNotFound, Code: "not_found", Message: fmt.Sprintf(format, args...)}
}

// Method is a path that does not support the method; allow lists the supported
// ones.
func Method(allow ...string) *Problem {
	return &Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
		Message: "Allowed here: " + strings.Join(allow, ", ") + "."}
}

// tooLarge is a body of more than limit bytes.
func tooLarge(limit int64) *Problem {
	return &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large",
		Message: fmt.Sprintf("The request is larger than %d bytes.", limit)}
}

// Busy is a request for which there is no memory left of what its sender may use.
func Busy() *Problem {
	return &Problem{Status: http.StatusTooManyRequests, Code: "busy", RetryAfter: 1,
		Message: "The requests and connections of this key take all the memory that there is for them; try again later."}
}

// ReadBody reads the body of a request to its end. That a client breaks off or is too
// slow is its own affair, and no error of ours.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		return b, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, err
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return nil, p // an error of the reader below us
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &Problem{Status: http.StatusRequestTimeout, Code: "timeout", Message: "The body of the request did not arrive in time."}
	}
	return nil, Bad("The body of the request could not be read to its end.")
}

// known is the answer for each error. An empty text means the text of the error
// itself, which is fit for a client.
var known = []struct {
	err    error
	status int
	code   string
	text   string
}{
	{broker.ErrUnavailable, http.StatusServiceUnavailable, "unavailable", ""},
	{broker.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{broker.ErrExists, http.StatusConflict, "exists", ""},
	{broker.ErrInvalid, http.StatusBadRequest, "invalid", ""},
	{broker.ErrNotAllowed, http.StatusBadRequest, "not_allowed", ""},
	{broker.ErrDisabled, http.StatusForbidden, "disabled", ""},
	{broker.ErrTooLarge, http.StatusRequestEntityTooLarge, "too_large", ""},
	{broker.ErrQuota, http.StatusForbidden, "quota", ""},
	{broker.ErrGroupMemory, http.StatusForbidden, "quota", "The broker has no memory for more members, claims and checkpoints of consumer groups (limits.storedMemory)."},
	{broker.ErrHubMemory, http.StatusForbidden, "quota", "The broker has no memory for more partitions and idempotent producers of event hubs (limits.storedMemory)."},
	{broker.ErrDiskFull, http.StatusInsufficientStorage, "disk_full", "The broker's disk is full. Receiving and settling still work."},
	{broker.ErrSessionRequired, http.StatusBadRequest, "session_required", "The entity takes only messages of a session."},
	{broker.ErrLockLost, http.StatusGone, "lock_lost", "The lock expired, the message is already settled, or the token is unknown."},
	{broker.ErrSessionLockLost, http.StatusGone, "lock_lost", "The session lock was lost."},
	{broker.ErrSessionLocked, http.StatusConflict, "session_locked", "Another receiver has the session."},
	{broker.ErrMessageNotFound, http.StatusNotFound, "message_not_found", "No message has that number, or it is locked."},
	{broker.ErrTimeout, http.StatusRequestTimeout, "timeout", "No message or session was available before the timeout."},
	{broker.ErrBusy, http.StatusServiceUnavailable, "busy", ""},
	{broker.ErrPartition, http.StatusNotFound, "not_found", ""},
	{broker.ErrGroupPartition, http.StatusNotFound, "not_found", ""},
	{broker.ErrNotOwned, http.StatusConflict, "not_owned", ""},
	{broker.ErrCoordinated, http.StatusConflict, "coordinated", ""},
	{broker.ErrPoolNotFound, http.StatusNotFound, "pool_not_found", ""},
	{broker.ErrPoolInvalid, http.StatusBadRequest, "invalid", ""},
	{broker.ErrMoved, http.StatusServiceUnavailable, "moved", "Another process has taken over the messages of this entity."},
	{broker.ErrStopping, http.StatusServiceUnavailable, "stopping", "The broker is stopping."},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, "timeout", "The operation did not end in time."},
	{context.Canceled, http.StatusServiceUnavailable, "cancelled", "The operation was cancelled."},

	{limits.ErrExceeded, http.StatusBadRequest, "invalid", ""},
	{filter.ErrSyntax, http.StatusBadRequest, "syntax", ""},
	{filter.ErrEvaluation, http.StatusBadRequest, "evaluation", ""},
	{filter.ErrNoCondition, http.StatusBadRequest, "invalid", ""},
	{entity.ErrName, http.StatusBadRequest, "invalid", ""},
	{entity.ErrPath, http.StatusBadRequest, "invalid", ""},

	{caller.ErrMissing, http.StatusUnauthorized, "unauthorized", "Credentials are needed: a shared access signature, or the name and key of a rule."},
	{caller.ErrRights, http.StatusForbidden, "forbidden", ""},
	{access.ErrMalformed, http.StatusUnauthorized, "unauthorized", "MalformedToken: The credentials are malformed."},
	{access.ErrSignature, http.StatusUnauthorized, "unauthorized", "InvalidSignature: The token has an invalid signature."},
	{access.ErrRevoked, http.StatusUnauthorized, "unauthorized", "InvalidSignature: The key of the token was changed or removed."},
	{access.ErrRefused, http.StatusUnauthorized, "unauthorized", "InvalidAudience: Tokens of this type are not accepted here."},
}

// Of returns the answer for err. For an unexpected error, planned is false: the
// caller must log it.
func Of(err error) (p *Problem, planned bool) {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p, true
	}
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit), true
	}
	if e, ok := errors.AsType[*access.ExpiredError](err); ok {
		return &Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Message: fmt.Sprintf(
			"ExpiredToken: The token is expired. Expiration time:'%s'.", e.At.UTC().Format("2006-01-02T15:04:05.000Z"))}, true
	}
	for _, k := range known {
		if !errors.Is(err, k.err) {
			continue
		}
		p := &Problem{Status: k.status, Code: k.code, Message: k.text, Details: details(err)}
		if p.Message == "" {
			p.Message = broker.Text(err)
		}
		if t, ok := errors.AsType[*broker.ThrottledError](err); ok {
			p.RetryAfter = t.RetryAfter
		}
		return p, true
	}
	return &Problem{Status: http.StatusInternalServerError, Code: "internal", Message: "Internal error; see the server's log."}, false
}

// details lists single faults for clients that show them where they belong.
func details(err error) []Detail {
	var ds []Detail
	if fs, ok := errors.AsType[entity.Faults](err); ok {
		for _, f := range fs {
			ds = append(ds, Detail{Field: f.Field, Problem: f.Problem})
		}
		return ds
	}
	if fs, ok := errors.AsType[policy.Faults](err); ok {
		for _, f := range fs {
			ds = append(ds, Detail{Field: f.Path, Problem: f.Problem})
		}
		return ds
	}
	for _, u := range Updates(err) {
		ds = append(ds, Detail{Field: u.Property, Problem: strings.TrimSpace(u.Text)})
	}
	return ds
}

// Updates returns the forbidden changes in an error, however it wraps them.
func Updates(err error) []*entity.UpdateError {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself, to find them all
	case nil:
		return nil
	case *entity.UpdateError:
		return []*entity.UpdateError{e}
	case interface{ Unwrap() error }:
		return Updates(e.Unwrap())
	case interface{ Unwrap() []error }:
		var us []*entity.UpdateError
		for _, inner := range e.Unwrap() {
			us = append(us, Updates(inner)...)
		}
		return us
	}
	return nil
}
