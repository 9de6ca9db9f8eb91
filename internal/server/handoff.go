// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/server/connlimit"
)

// handoff is a net.Listener whose connections were accepted by someone else: the
// way in which HTTP connections reach net/http.
type handoff struct {
	conns  chan net.Conn // unbuffered: a connection changes hands
	closed chan struct{}
	once   sync.Once
}

func newHandoff() *handoff {
	return &handoff{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// serve hands a connection over and returns when it was closed.
func (h *handoff) serve(c *handed) {
	c.done = make(chan struct{})
	select {
	case h.conns <- c:
		<-c.done
	case <-h.closed:
	}
}

// Accept returns the next connection.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and serve.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr returns an address that says nothing.
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }

// handed is a connection in the hands of net/http, which knows one time-out for
// everybody, and nothing of memory. Here unauthenticated peers have less time, who reads nothing
// of an answer is cut off however long the answer may take to make, and what the peer
// makes us hold is charged: see memory.go.
type handed struct {
	*acceptedConn
	slot       *connlimit.Slot
	once       sync.Once
	done       chan struct{}
	firstBytes time.Duration // how long an unauthenticated peer may take to send or read something
	unread     time.Duration // how long a peer may take to read writePiece
	tunnel     atomic.Bool   // it has become a WebSocket, whose time-outs are AMQP's
	held       charges
}

// writePiece is how much is written under one deadline.
const writePiece = 16 << 10

// SetReadDeadline gives unauthenticated peers no more than their time.
func (c *handed) SetReadDeadline(at time.Time) error {
	if !c.slot.IsAuthenticated() {
		if most := time.Now().Add(c.firstBytes); at.IsZero() || at.After(most) {
			at = most
		}
	}
	return c.acceptedConn.SetReadDeadline(at)
}

// Read reads, if there is memory for what comes.
func (c *handed) Read(b []byte) (int, error) {
	n, err := c.acceptedConn.Read(b)
	if status := c.held.header(b[:n]); status != 0 {
		c.refuseHeader(status)
		return 0, io.EOF // net/http would answer any other error with 400
	}
	return n, err
}

// refuseHeader answers a request whose header there is no memory for. No handler is at
// work: headers are read between two of them.
func (c *handed) refuseHeader(status int) {
	text := http.StatusText(status)
	_, err := fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s\n", status, text, text)
	if err != nil || c.CloseWrite() != nil {
		return
	}
	// Closing a socket that has unread input may take the answer away again.
	const patience, most = 500 * time.Millisecond, 1 << 20
	_ = c.acceptedConn.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.CopyN(io.Discard, c.acceptedConn, most)
}

// Write writes as long as the peer reads.
func (c *handed) Write(b []byte) (written int, err error) {
	// Answers to unauthenticated peers are short, or the same for all of them.
	if len(b) > writePiece && !c.tunnel.Load() && c.slot.IsAuthenticated() {
		defer c.held.output(int64(len(b)))()
	}
	for first := true; err == nil && (first || len(b) > 0); first = false {
		piece := b
		if !c.tunnel.Load() {
			piece = b[:min(len(b), writePiece)]
			if err := c.acceptedConn.SetWriteDeadline(time.Now().Add(c.patience())); err != nil {
				return written, err
			}
		}
		var n int
		n, err = c.acceptedConn.Write(piece)
		written, b = written+n, b[n:]
	}
	return written, err
}

func (c *handed) patience() time.Duration {
	if c.slot.IsAuthenticated() {
		return c.unread
	}
	return c.firstBytes
}

func closeWrite(nc net.Conn) error {
	switch c := nc.(type) {
	case *sniffed:
		return closeWrite(c.Conn)
	case interface{ CloseWrite() error }:
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection and lets serve return.
func (c *handed) Close() error {
	err := c.acceptedConn.Close()
	c.once.Do(func() { close(c.done) })
	return err
}
