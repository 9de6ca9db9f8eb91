// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
)

const (
	// bodyStep is how much of a body has to come within the write timeout, or all
	// of it.
	bodyStep = 4 << 10
)

// errUnauthenticated ends the reading of a body whose sender is not known.
var errUnauthenticated = errors.New("server: the body of a request without credentials is not read")

// request is an HTTP request under way and the time it is given. Until its sender is
// identified it has as long as an unauthenticated peer has to say anything, for its body as for
// the answer. Then its body may take as long as it keeps coming, and the answer as
// long as it takes to make, as for a message that is waited for.
//
// Its methods are called by the goroutine of the request.
type request struct {
	io.ReadCloser // its body

	front      *frontend
	conn       *handed
	w          http.ResponseWriter
	deadlines  *http.ResponseController
	client     string // what it calls itself
	identified bool
	read       int  // of the body since the deadline was set, or as an unauthenticated peer
	ended      bool // all of the body was read, or there is none
}

// begin gives a request its deadlines and has its memory charged, until end. What it
// returns is for the handler.
func (f *frontend) begin(w http.ResponseWriter, r *http.Request, conn *handed) *http.Request {
	x := &request{ReadCloser: r.Body, front: f, conn: conn, w: w, deadlines: http.NewResponseController(w), client: r.UserAgent(),
		ended: r.ContentLength == 0}
	conn.held.begin()
	x.setDeadline(f.cfg.FirstBytes)
	if !x.ended {
		// A client that is refused need not send its body, and we need not read it.
		w.Header().Set("Connection", "close")
	}
	// A copy, so that net/http finds the body it made.
	r = r.WithContext(context.WithValue(caller.Observe(r.Context(), x.known), requestKey{}, x))
	r.Body = x
	return r
}

// known says who sent the request. It is refused if the key has used up its memory,
// before an answer is made for it.
func (x *request) known(g access.Grant) error {
	if !x.conn.slot.IsAuthenticated() {
		x.front.log.Debug("client connected", "peer", x.conn.RemoteAddr().String(), "key", g.Holder(), "client", x.client[:min(len(x.client), limits.ClientText)])
	}
	if !x.front.admit(x.conn.slot, g) {
		x.w.Header().Set("Connection", "close")
		return tooManyConnections()
	}
	x.conn.held.prove(g, x.conn.cost())
	if x.identified {
		return nil
	}
	if x.conn.held.short() {
		return problem.Busy()
	}
	x.identified, x.read = true, 0
	x.w.Header().Del("Connection")
	if x.ended {
		x.setDeadline(0)
		return nil
	}
	x.setDeadline(x.front.cfg.writeTimeout())
	return nil
}

// tooManyConnections answers a connection of a key that has too many.
func tooManyConnections() *problem.Problem {
	return &problem.Problem{Status: http.StatusServiceUnavailable, Code: "busy", RetryAfter: 1,
		Message: "This key, or this entity, has as many connections as are left for all others; close some, or try again later."}
}

// requestKey is the context key of the request that a handler works for.
type requestKey struct{}

// hold charges n bytes for as long as the handler of r takes, and reports whether there
// was memory for them.
func hold(r *http.Request, n int64) bool {
	return r.Context().Value(requestKey{}).(*request).conn.held.hold(n)
}

// unsynced is charged for the messages that r sends until they are on disk.
func unsynced(r *http.Request) *budget.Account {
	return r.Context().Value(requestKey{}).(*request).conn.held.member.Unsynced()
}

// setDeadline ends reading after d; zero is never. While there is none, net/http
// notices when the client leaves.
func (x *request) setDeadline(d time.Duration) {
	var at time.Time
	if d > 0 {
		at = time.Now().Add(d)
	}
	_ = x.deadlines.SetReadDeadline(at) // fails on connections that are closed
}

// Read reads from the body.
func (x *request) Read(p []byte) (int, error) {
	if !x.identified {
		if x.read >= limits.UnauthenticatedBody {
			return 0, errUnauthenticated
		}
		p = p[:min(len(p), limits.UnauthenticatedBody-x.read)]
	}
	n, err := x.ReadCloser.Read(p)
	if !x.conn.held.body(n) {
		x.ended = true
		x.w.Header().Set("Connection", "close") // as for unauthenticated peers
		x.setDeadline(x.front.cfg.FirstBytes)
		return 0, problem.Busy()
	}
	x.read += n
	switch {
	case err != nil:
		x.ended = true
		if x.identified && errors.Is(err, io.EOF) {
			x.setDeadline(0)
		}
	case x.identified && x.read >= bodyStep:
		x.read = 0
		x.setDeadline(x.front.cfg.writeTimeout())
	}
	return n, err
}
