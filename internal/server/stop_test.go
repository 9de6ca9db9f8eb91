// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/server/connlimit"
)

// stalling is a connection of which so many bytes are read, and no more.
type stalling struct {
	net.Conn
	left   atomic.Int64
	closed chan struct{}
}

func (s *stalling) Read(b []byte) (int, error) {
	if s.left.Load() <= 0 {
		<-s.closed
		return 0, net.ErrClosed
	}
	n, err := s.Conn.Read(b)
	s.left.Add(-int64(n))
	return n, err
}

// A client that asks for messages and does not read them does not keep the broker from
// stopping within its grace.
func TestStopDespiteAClientThatDoesNotRead(t *testing.T) {
	for name, wrap := range map[string]func(*running, net.Conn) net.Conn{
		"plain": func(_ *running, nc net.Conn) net.Conn { return nc },
		"TLS":   func(r *running, nc net.Conn) net.Conn { return tls.Client(nc, r.tlsConfig()) },
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, func(c *Config) { c.Grace = entity.Duration(4 * time.Second) })
			wire := &stalling{Conn: r.dial(), closed: make(chan struct{})}
			wire.left.Store(1 << 20)
			defer close(wire.closed)
			c, err := amqp.NewConn(r.ctx(), wrap(r, wire), nil)
			if err != nil {
				t.Fatal(err)
			}
			session, err := c.NewSession(r.ctx(), nil)
			if err != nil {
				t.Fatal(err)
			}
			sender, err := session.NewSender(r.ctx(), "q", nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 100 { // more than sockets keep
				if err := sender.Send(r.ctx(), amqp.NewMessage(make([]byte, 200<<10)), nil); err != nil {
					t.Fatal(err)
				}
			}
			receiver, err := session.NewReceiver(r.ctx(), "q", &amqp.ReceiverOptions{Credit: 100})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := receiver.Receive(r.ctx(), nil); err != nil {
				t.Fatal(err)
			}
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// late is a connection whose first deadline is set when that of a stop was set already.
type late struct {
	net.Conn
	stopped chan struct{}
}

func (l *late) SetReadDeadline(at time.Time) error {
	if at.After(time.Now()) {
		<-l.stopped
		return l.Conn.SetReadDeadline(at)
	}
	defer close(l.stopped)
	return l.Conn.SetReadDeadline(at)
}

// A connection that comes in the moment of a stop, and says nothing, does not hold it up.
func TestStopDespiteASilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		f := &frontend{cfg: Config{FirstBytes: 5 * time.Second}, log: slog.New(slog.DiscardHandler),
			limiter: connlimit.New(func() int { return 10 }, func() bool { return false }, 10)}
		ticket, _ := f.limiter.Enter(ours)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		f.greet(ctx, &late{ours, make(chan struct{})}, ticket)
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}
