// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/turns"
)

// Parts is what the handler works with; all of it is required.
type Parts struct {
	Broker    *broker.Broker
	Callers   caller.Authorities
	Log       *slog.Logger
	Encrypted func(*http.Request) bool
	// Unsynced returns what is charged for the messages of a request that are not on disk yet.
	Unsynced func(*http.Request) *budget.Account
	// ChargeMemory charges memory until the handler of a request returns, and
	// reports whether there was space for it.
	ChargeMemory func(*http.Request, int64) bool
	// Turns is for requests that take a processor for long.
	Turns *turns.Turns
}

// Handler answers the requests that Handles recognises.
type Handler struct{ Parts }

// New returns the handler.
func New(p Parts) *Handler { return &Handler{p} }

// place is the resource of an entity that a request is for.
type place struct {
	entity string
	head   bool   // the next message
	lock   string // the lock of one
}

// find parses a path; names may contain slashes, so it searches from the right.
func find(path string) (place, bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	n := len(segments)
	is := func(i int) bool { return i > 0 && strings.EqualFold(segments[i], "messages") }
	join := func(to int) string { return strings.Join(segments[:to], "/") }
	switch {
	case is(n - 1):
		return place{entity: join(n - 1)}, true
	case is(n-2) && strings.EqualFold(segments[n-1], "head"):
		return place{entity: join(n - 2), head: true}, true
	case is(n - 3):
		return place{entity: join(n - 3), lock: segments[n-1]}, true
	}
	return place{}, false
}

// Handles reports whether a request is one of this interface.
func Handles(r *http.Request) bool {
	_, ok := find(r.URL.Path)
	return ok
}

// call is one request under way.
type call struct {
	*Handler
	*http.Request
	place
	w     http.ResponseWriter
	grant access.Grant
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Handler: h, Request: r, w: w}
	var ok bool
	if c.place, ok = find(r.URL.Path); !ok {
		c.fail(problem.NotFound("No resource at this address."))
		return
	}
	if err := c.serve(); err != nil {
		c.fail(err)
	}
}

func (c *call) serve() error {
	grant, err := c.Callers.Identify(c.Request)
	if err != nil {
		return err
	}
	right, do, err := c.operation()
	if err != nil {
		return err
	}
	if err := caller.Require(grant, right, caller.Path(c.entity)); err != nil {
		return unauthorized(right)
	}
	c.grant = grant
	if _, err := c.Broker.Resolve(c.entity); err != nil {
		return err
	}
	return do()
}

// recheck reports that the request has lost its right while it waited.
func (c *call) recheck(right access.Rights) error {
	if _, err := c.Callers.Recheck(c.Request, c.grant, right, caller.Path(c.entity)); err != nil {
		return unauthorized(right)
	}
	return nil
}

func unauthorized(right access.Rights) error {
	return &problem.Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Message: fmt.Sprintf(
		"Unauthorized access. '%s' claim(s) are required to perform this operation.", right)}
}

// operation returns what a method does at a place, and the right it needs.
func (c *call) operation() (access.Rights, func() error, error) {
	switch {
	case !c.head && c.lock == "":
		if c.Method == http.MethodPost {
			return access.OfRoute(sending), c.send, nil
		}
		return 0, nil, problem.Method(http.MethodPost)
	case c.head:
		switch c.Method {
		case http.MethodPost:
			return access.OfRoute(receiving), func() error { return c.receive(broker.PeekLock) }, nil
		case http.MethodDelete:
			return access.OfRoute(receiving), func() error { return c.receive(broker.ReceiveAndDelete) }, nil
		}
		return 0, nil, problem.Method(http.MethodPost, http.MethodDelete)
	}
	switch c.Method {
	case http.MethodDelete:
		return access.OfRoute(receiving), func() error { return c.settle(broker.Complete) }, nil
	case http.MethodPut:
		return access.OfRoute(receiving), func() error { return c.settle(broker.Abandon) }, nil
	case http.MethodPost:
		return access.OfRoute(receiving), c.renew, nil
	}
	return 0, nil, problem.Method(http.MethodDelete, http.MethodPut, http.MethodPost)
}

// fail answers with an error. The service documents 410 for an entity and 404 for
// a lock that is not there.
func (c *call) fail(err error) {
	p, planned := problem.Of(err)
	if !planned && c.Context().Err() == nil { // else the client has left
		c.Log.Error("unexpected error of a message request", "method", c.Method, "path", c.URL.Path, "err", err)
	}
	status := p.Status
	switch {
	case errors.Is(err, broker.ErrNotFound):
		status = http.StatusGone
	case errors.Is(err, broker.ErrLockLost):
		status = http.StatusNotFound
	case status == http.StatusUnauthorized:
		c.w.Header().Set("WWW-Authenticate", `Basic realm="triagemq"`)
	}
	if p.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(p.RetryAfter)+1))
	}
	var text strings.Builder
	_ = xml.EscapeText(&text, []byte(p.Message)) // a builder takes everything
	c.w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	c.w.WriteHeader(status)
	fmt.Fprintf(c.w, "<Error><Code>%d</Code><Detail>%s</Detail></Error>", status, text.String())
}

// The names of the routes in the table of rights.
const (
	sending   = "restSend"
	receiving = "restReceive"
)
