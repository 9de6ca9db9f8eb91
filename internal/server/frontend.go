// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/metrics"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/server/connlimit"
)

// frontend is the top layer: listeners, connections and what serves them.
type frontend struct {
	cfg       Config
	log       *slog.Logger
	service   *azure.Service
	strict    access.Authority // for peers elsewhere
	local     access.Authority // for peers on this machine
	listeners []net.Listener
	tls       atomic.Pointer[tls.Config] // nil without a certificate; for connections to come
	ca        string
	limiter   *connlimit.Limiter
	memory    *budget.Process
	refusals  *connlimit.Refusals
	disk      func() metrics.Disk
	broker    *broker.Broker
	handler   http.Handler // of requests that are not ours
	web       *handoff
	unapplied atomic.Pointer[[]string] // parts of the configuration; nil before it was applied

	serving     sync.WaitGroup            // a goroutine for each connection
	saidCrowded atomic.Pointer[time.Time] // when crowded last wrote to the log
	saidTLS     atomic.Pointer[time.Time] // when handshakeFailed did
}

// listen opens the sockets. Nothing is accepted before run.
func listen(cfg Config, service *azure.Service, parts Parts, segments func() int, log *slog.Logger) (*frontend, error) {
	files := connlimit.MaxFiles()
	limit := func() int { return connlimit.Connections(cfg.Limits.MaxConnections, files, segments()) }
	crowded := func() bool { return parts.Memory.Unauthenticated().Available() < unauthenticatedReserve }
	f := &frontend{cfg: cfg, log: log, service: service, strict: parts.Keeper, local: parts.Keeper,
		limiter: connlimit.New(limit, crowded, maxUnauthenticated(cfg.MaxUnauthenticated, parts.Memory)), memory: parts.Memory, refusals: connlimit.NewRefusals(log), disk: parts.Disk, broker: parts.Broker, web: newHandoff()}
	if n := limit(); n < cfg.Limits.MaxConnections {
		log.Warn("too few file descriptors for limits.maxConnections: raise the limit of open files",
			"descriptors", files, "connections", n, "wanted", cfg.Limits.MaxConnections)
	}
	if cfg.trusting() {
		f.local = access.ForDevelopment(parts.Keeper)
	}
	parts.Authority = f.authorityFor
	f.handler = f.adminHandler(parts)
	if cfg.Handler != nil {
		f.handler = cfg.Handler(parts)
	}
	for _, addr := range cfg.Listeners {
		if err := f.open(addr); err != nil {
			f.close()
			return nil, fmt.Errorf("listen on %s: %w", addr, err)
		}
	}
	f.listeners = append(f.listeners, cfg.Opened...)
	if err := f.prepareTLS(); err != nil { // the certificate names the ports
		f.close()
		return nil, err
	}
	return f, nil
}

// open listens on an address. The name localhost has two, and clients may try
// either first; a machine without IPv6 has only one.
func (f *frontend) open(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if host != "localhost" {
		return f.openOne(addr)
	}
	if err := f.openOne(net.JoinHostPort("127.0.0.1", port)); err != nil {
		return err
	}
	if port == "0" {
		_, port, _ = net.SplitHostPort(f.listeners[len(f.listeners)-1].Addr().String())
	}
	if err := f.openOne(net.JoinHostPort("::1", port)); err != nil {
		f.log.Debug("no IPv6 for localhost", "err", err)
	}
	return nil
}

func (f *frontend) openOne(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err == nil {
		f.listeners = append(f.listeners, l)
	}
	return err
}

// authority returns who decides about a peer at addr.
func (f *frontend) authority(addr net.Addr) access.Authority {
	if connlimit.IsLoopback(addr) {
		return f.refusals.Watch(f.local, addr)
	}
	return f.refusals.Watch(f.strict, addr)
}

func (f *frontend) close() {
	for _, l := range f.listeners {
		l.Close()
	}
}

// ports are those that are listened on: those that were asked for, and those that the
// system chose.
func (f *frontend) ports() (asked, chosen []string) {
	for _, addr := range f.cfg.Listeners {
		if _, port, err := net.SplitHostPort(addr); err == nil {
			asked = append(asked, port)
		}
	}
	for _, l := range f.listeners {
		if _, port, err := net.SplitHostPort(l.Addr().String()); err == nil && !slices.Contains(asked, port) {
			chosen = append(chosen, port)
		}
	}
	return slices.DeleteFunc(asked, func(port string) bool { return port == "0" || port == "" }), chosen
}

func (f *frontend) addresses() []string {
	var as []string
	for _, l := range f.listeners {
		as = append(as, l.Addr().String())
	}
	return as
}

// run accepts and serves connections until ctx ends. Then it stops accepting, so that a
// client that comes back is refused and tries again, lets go of every peer and waits for
// them.
func (f *frontend) run(ctx context.Context) error {
	serve, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	serve = deadlineOf{serve, ctx}
	web := f.httpServer(serve)
	var accepting, requests sync.WaitGroup
	requests.Go(func() { _ = web.Serve(f.web) }) // ends with the hand-off, always with an error
	for _, l := range f.listeners {
		accepting.Go(func() { f.accept(serve, l) })
	}
	<-ctx.Done()
	f.log.Info("stopping", "cause", context.Cause(ctx), "connections", f.limiter.Open(), "grace", f.cfg.Grace.Std())
	f.close()
	accepting.Wait()
	stop(context.Cause(ctx))
	f.web.Close()
	f.stopWeb(ctx, web)
	requests.Wait()
	f.serving.Wait()
	f.log.Info("all connections are closed")
	return nil
}

// deadlineOf is a context with the deadline of another one, which ends earlier.
type deadlineOf struct {
	context.Context
	of context.Context
}

// Deadline returns that of the other context.
func (d deadlineOf) Deadline() (time.Time, bool) { return d.of.Deadline() }

// stopWeb lets requests finish for half of the time that the layer has, and then
// cuts them off.
func (f *frontend) stopWeb(ctx context.Context, web *http.Server) {
	patience := f.cfg.Grace.Std() / 2
	if at, ok := ctx.Deadline(); ok {
		patience = time.Until(at) / 2
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		f.log.Warn("HTTP requests were cut off", "err", err)
		web.Close()
	}
}

// accept takes connections until the listener is closed. When it fails, which is
// for lack of descriptors or memory, it waits for some to come back: a connection
// that was not accepted stays with the system meanwhile.
func (f *frontend) accept(ctx context.Context, l net.Listener) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	var pause time.Duration // zero while connections are accepted
	for {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			if pause == 0 {
				f.log.Error("cannot accept connections", "address", l.Addr().String(), "err", err)
			}
			pause = min(max(2*pause, shortest), longest)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			continue
		case pause > 0:
			pause = 0
			f.log.Info("connections are accepted again", "address", l.Addr().String())
		}
		// Here, so that connections are counted in the order they came.
		t, ok := f.limiter.Enter(nc)
		if !ok {
			f.crowded(nc)
			continue
		}
		f.serving.Go(func() { f.greet(ctx, nc, t) })
	}
}

// crowded turns a connection away and says so, but not for each of a crowd.
func (f *frontend) crowded(nc net.Conn) {
	f.sayCrowded("too many connections", "peer", nc.RemoteAddr().String(), "limit", f.limiter.Max())
	nc.Close()
}

func (f *frontend) sayCrowded(text string, attributes ...any) {
	const every = 10 * time.Second
	now := time.Now()
	if last := f.saidCrowded.Load(); last == nil || now.Sub(*last) >= every {
		f.saidCrowded.Store(&now)
		f.log.Warn(text, attributes...)
	}
}

// handshakeFailed says that a peer and we could not agree on TLS, mostly because it does
// not trust our certificate, but not for each of many.
func (f *frontend) handshakeFailed(nc net.Conn, err error) {
	const every = 10 * time.Second
	now := time.Now()
	if last := f.saidTLS.Load(); last == nil || now.Sub(*last) >= every {
		f.saidTLS.Store(&now)
		f.log.Info("TLS handshake failed", "peer", nc.RemoteAddr().String(), "err", err)
	}
}

// greet finds out what a connection speaks and has it served.
func (f *frontend) greet(ctx context.Context, nc net.Conn, t *connlimit.Slot) {
	defer t.Leave()
	defer nc.Close()
	// TLS waits for five seconds to say goodbye, whatever deadline there is.
	defer context.AfterFunc(ctx, func() {
		if at, ok := ctx.Deadline(); ok {
			time.AfterFunc(time.Until(at)*31/32, func() { nc.Close() })
		}
	})()
	// A peer that has not said what it speaks need not be notified that we stop.
	quiet := context.AfterFunc(ctx, func() { nc.SetReadDeadline(time.Unix(1, 0)) })
	speaks, c, err := f.identify(ctx, nc, t)
	quiet()
	if err != nil {
		f.log.Debug("connection ended before it began", "peer", nc.RemoteAddr().String(), "err", err)
		return
	}
	switch speaks {
	case protoAMQP:
		f.serveAMQP(ctx, c, t, azure.Peer{Authority: f.authority(c.RemoteAddr()), Certificate: c.certificate, CertificateEnds: c.certificateEnds, Cost: c.cost()})
	case protoHTTP:
		f.serveHTTP(c, t)
	}
}

// serveHTTP serves a connection that speaks HTTP, or WebSocket, to its end.
func (f *frontend) serveHTTP(v *acceptedConn, t *connlimit.Slot) {
	c := &handed{acceptedConn: v, slot: t, firstBytes: f.cfg.FirstBytes, unread: f.cfg.writeTimeout()}
	defer c.held.leave()
	if !c.held.enter(f.memory) {
		f.log.Debug("no memory for a connection", "peer", v.RemoteAddr().String())
		return
	}
	f.web.serve(c)
}

// identify reads the first bytes, and behind TLS the first of what it protects.
func (f *frontend) identify(ctx context.Context, nc net.Conn, t *connlimit.Slot) (protocol, *acceptedConn, error) {
	nc.SetReadDeadline(time.Now().Add(f.cfg.FirstBytes))
	if ctx.Err() != nil { // then the deadline may have taken the place of the one of the stop
		return protoUnknown, nil, context.Cause(ctx)
	}
	speaks, c, err := sniff(nc)
	if err != nil {
		return protoUnknown, nil, err
	}
	t.Spoke()
	v := &acceptedConn{Conn: c}
	if speaks == protoTLS {
		if speaks, v, err = f.unwrap(ctx, c); err != nil {
			return protoUnknown, nil, err
		}
	}
	nc.SetDeadline(time.Time{})
	if speaks == protoAMQP && !f.plainTextAllowed(v) {
		return protoUnknown, nil, errPlainText
	}
	return speaks, v, nil
}

// errPlainText rejects peers that would send secrets in plain text.
var errPlainText = errors.New("server: plain text from another machine; use TLS, or serve with --insecure")

func (f *frontend) unwrap(ctx context.Context, c net.Conn) (protocol, *acceptedConn, error) {
	certified := f.tls.Load()
	if certified == nil {
		return protoUnknown, nil, errors.New("server: TLS asked for, but there is no certificate")
	}
	c.SetDeadline(time.Now().Add(f.cfg.handshake()))
	b := &bounded{Conn: c, left: limits.Handshake}
	tc := tls.Server(b, certified)
	if err := tc.HandshakeContext(ctx); err != nil {
		if ctx.Err() == nil {
			f.handshakeFailed(c, err)
		}
		return protoUnknown, nil, err
	}
	b.left = -1
	speaks, inner, err := sniff(tc)
	if err == nil && speaks == protoTLS {
		err = errors.New("server: TLS inside TLS")
	}
	v := &acceptedConn{Conn: inner, encrypted: true}
	if state := tc.ConnectionState(); len(state.VerifiedChains) > 0 {
		shown := state.PeerCertificates[0]
		v.certificate, v.certificateEnds = shown.Subject.CommonName, shown.NotAfter
	}
	return speaks, v, err
}

// acceptedConn is a connection and what is known about its way here.
type acceptedConn struct {
	net.Conn
	encrypted       bool
	certificate     string // name in the client's certificate, if it showed one that TLS has verified
	certificateEnds time.Time
}

// cost is what TLS takes of memory.
func (v *acceptedConn) cost() int64 {
	if v.encrypted {
		return tlsCost
	}
	return 0
}

// CloseWrite says that nothing more is written. With it, the endpoint and net/http give a
// client that still sends the time to read why it was refused.
func (v *acceptedConn) CloseWrite() error { return closeWrite(v.Conn) }

// plainTextAllowed reports whether anything but a health check may pass on v.
func (f *frontend) plainTextAllowed(v *acceptedConn) bool {
	return v.encrypted || f.cfg.plainText() || connlimit.IsLoopback(v.RemoteAddr())
}

// serveAMQP serves an AMQP connection to its end.
func (f *frontend) serveAMQP(ctx context.Context, nc net.Conn, t *connlimit.Slot, peer azure.Peer) {
	ec := endpoint.NewConn(nc, f.cfg.endpoint())
	peer.OnAuthenticated = func(g access.Grant) bool { return f.admit(t, g) }
	if err := f.service.Serve(ctx, ec, peer); err != nil {
		f.log.Debug("connection ended", "peer", nc.RemoteAddr().String(), "err", err)
	}
}

// admit counts a connection for the key that its peer has shown, and reports whether it may
// stay.
func (f *frontend) admit(t *connlimit.Slot, g access.Grant) bool {
	ok := t.SetAuthenticated(connlimit.Owner{Account: g.Account(), Manager: g.ManagesNamespace()})
	if !ok {
		f.sayCrowded("too many connections of a key", "key", g.Holder(), "limit", f.limiter.Max())
	}
	return ok
}
