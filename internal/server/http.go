// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const (
	webIdleTime = 2 * time.Minute

	pathWebSocket = "/$servicebus/websocket"
)

// connKey is the context key of the connection that a request came on.
type connKey struct{}

// httpServer serves the HTTP side of every listener.
func (f *frontend) httpServer(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           f.routes(ctx),
		ReadHeaderTimeout: f.cfg.handshake(),
		IdleTimeout:       webIdleTime,
		MaxHeaderBytes:    limits.Header,
		ErrorLog:          slog.NewLogLogger(f.log.Handler(), slog.LevelDebug),
		ConnState:         connState,
		// Every request comes to routes, which charges it.
		DisableGeneralOptionsHandler: true,
		// Requests that wait for a message end when the server does.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
	}
}

// connState notes which connections have no request: they are closed first. What they send next is
// a header, also if no handler has seen the request before.
func connState(c net.Conn, state http.ConnState) {
	conn := c.(*handed)
	switch slot := conn.slot; state {
	case http.StateIdle:
		slot.Idle()
		conn.held.end()
	case http.StateActive, http.StateHijacked:
		slot.Busy()
	}
}

// routes tells health checks, WebSockets and all others apart by hand: entity
// names of the management API may look like anything, and a ServeMux would
// clean them.
func (f *frontend) routes(ctx context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn := r.Context().Value(connKey{}).(*handed)
		protect(w.Header())
		r = f.begin(w, r, conn)
		defer conn.held.end()
		switch path := r.URL.Path; {
		case path == "/healthz":
			respond(w, http.StatusOK, "text/plain; charset=utf-8", "ok\n")
		case path == "/readyz":
			status, text := f.readiness()
			respond(w, status, "text/plain; charset=utf-8", text)
		case path == "*" && r.Method == http.MethodOptions:
			w.Header().Set("Content-Length", "0")
		case path == "/health": // what the vendor's emulator answers
			respond(w, http.StatusOK, "application/json", `{"status":"healthy","message":"Service is healthy."}`)
		case !f.plainTextAllowed(conn.acceptedConn):
			respond(w, http.StatusForbidden, "text/plain; charset=utf-8",
				"Plain text from another machine is not served: use https, or start the broker with --insecure.\n")
		case strings.EqualFold(strings.TrimSuffix(path, "/"), pathWebSocket): // uAMQP asks with the slash
			f.serveWebSocket(ctx, w, r, conn)
		default:
			if err := f.checkRequest(r); err != nil {
				refuseForeign(w, err)
				return
			}
			f.handler.ServeHTTP(w, r)
		}
	})
}

// readiness says whether everything is served. A broker whose disk is full is ready for
// who receives, which is how it gets empty: the status stays 200, and the text tells. It is
// for unauthenticated peers too, and has no numbers.
//
// A shard that has no space even to settle is not ready: the status is 503 then.
func (f *frontend) readiness() (status int, text string) {
	status = http.StatusOK
	stats := f.broker.ShardStats()
	switch {
	case slices.ContainsFunc(stats, func(st queueserver.Stats) bool { return st.Stuck }):
		status = http.StatusServiceUnavailable
		text = "stuck: the disk is full, and so is the space reserved for settling; nothing is stored or settled until space is freed on the disk\n"
	case f.disk != nil && f.disk().Full:
		text = "degraded: the disk is full, senders are refused; receiving and settling go on\n"
	}
	if slices.ContainsFunc(stats, func(st queueserver.Stats) bool { return st.Moved }) {
		text += "degraded: some entities have moved to another process; the others are served\n"
	}
	if unapplied := f.unapplied.Load(); unapplied != nil && len(*unapplied) > 0 {
		text += "degraded: parts of the configuration cannot be applied because of what is stored, everything else is served; see the log, or warnings in /api/v1/namespace\n"
	}
	if f.broker != nil && f.broker.DefinitionsExceeded() {
		text += "degraded: definitions take more memory than they may, none can be added; see the log, or warnings in /api/v1/namespace\n"
	}
	return status, cmp.Or(text, "ok\n")
}

// warnings returns what an operator has to do something about.
func (f *frontend) warnings() (all []string) {
	if unapplied := f.unapplied.Load(); unapplied != nil {
		for _, what := range *unapplied {
			all = append(all, "not applied of the configuration: "+what)
		}
	}
	if f.broker.DefinitionsExceeded() {
		used, limit := f.broker.DefinitionMemory()
		all = append(all, fmt.Sprintf("definitions of entities take %d bytes of memory and may take %d: none can be added; "+
			"raise limits.storedMemory, or delete entities, rules or policies", used, limit))
	}
	return all
}

func respond(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // the client has left, then
}
