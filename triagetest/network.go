// SPDX-License-Identifier: Apache-2.0

package triagetest

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
)

// network is how clients reach the broker: through memory, and through a loopback port
// once somebody asks for one. It outlives crashes of the broker.
type network struct {
	mu   sync.Mutex
	to   *entrance    // that of the running broker; nil while none runs; guarded by mu
	port net.Listener // nil until it is asked for; guarded by mu

	accepting sync.WaitGroup
}

var errNoBroker = errors.New("triagetest: no broker is running")

// enter returns a listener for a broker that starts. Its Close ends the way to it.
func (n *network) enter() *entrance {
	e := &entrance{network: n, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.to = e
	return e
}

// dial connects through memory. It has the form of [client.Options.DialContext].
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	if err := n.hand(ctx.Done(), fromHere{theirs}); err != nil {
		ours.Close()
		theirs.Close()
		// A client takes a time-out for an outage, and the end of its caller for the end.
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	return fromHere{ours}, nil
}

// hand gives a connection to the broker, unless done is closed first.
func (n *network) hand(done <-chan struct{}, c net.Conn) error {
	n.mu.Lock()
	e := n.to
	n.mu.Unlock()
	if e == nil {
		return errNoBroker
	}
	select {
	case e.conns <- c:
		return nil
	case <-e.closed:
		return errNoBroker
	case <-done:
		return context.Canceled
	}
}

// address returns host and port, after opening the port if need be.
func (n *network) address() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.port == nil {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		n.port = l
		n.accepting.Go(func() { n.accept(l) })
	}
	return n.port.Addr().String(), nil
}

func (n *network) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // close has closed it
		}
		if n.hand(nil, c) != nil {
			c.Close()
		}
	}
}

// close gives the port back. The broker has stopped.
func (n *network) close() {
	n.mu.Lock()
	if n.port != nil {
		n.port.Close()
	}
	n.mu.Unlock()
	n.accepting.Wait()
}

// entrance is the listener of one life of the broker.
type entrance struct {
	network *network
	conns   chan net.Conn // unbuffered: no connection is left in it
	closed  chan struct{}
	once    sync.Once
}

// Accept implements [net.Listener].
func (e *entrance) Accept() (net.Conn, error) {
	select {
	case c := <-e.conns:
		return c, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (e *entrance) Close() error {
	e.once.Do(func() {
		close(e.closed)
		e.network.mu.Lock()
		defer e.network.mu.Unlock()
		if e.network.to == e {
			e.network.to = nil
		}
	})
	return nil
}

// Addr implements [net.Listener].
func (e *entrance) Addr() net.Addr { return here }

// here is the address of both ends of a connection through memory: the broker takes its
// peer for one on this machine.
var here = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

type fromHere struct{ net.Conn }

func (fromHere) LocalAddr() net.Addr  { return here }
func (fromHere) RemoteAddr() net.Addr { return here }
