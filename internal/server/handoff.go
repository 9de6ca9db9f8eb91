// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net"
	"sync"
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
func (h *handoff) serve(v *visitor, t *ticket) {
	c := &handed{visitor: v, ticket: t, done: make(chan struct{})}
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

// handed is a connection in the hands of net/http.
type handed struct {
	*visitor
	ticket *ticket
	once   sync.Once
	done   chan struct{}
}

// Close closes the connection and lets serve return.
func (c *handed) Close() error {
	err := c.visitor.Close()
	c.once.Do(func() { close(c.done) })
	return err
}
