// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/server/connlimit"
)

// from is a connection from an address that records whether it was closed.
type from struct {
	net.Conn
	ip     string
	closed bool
}

func (f *from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 1} }
func (f *from) Close() error         { f.closed = true; return nil }

// starved is a listener that has no descriptor for a while.
type starved struct {
	net.Listener
	fail  int
	conns chan net.Conn
}

func (s *starved) Addr() net.Addr { return &net.TCPAddr{} }
func (s *starved) Accept() (net.Conn, error) {
	if s.fail > 0 {
		s.fail--
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	c, ok := <-s.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Accepting goes on when there are descriptors again, and a long lack of
// them is told once.
func TestAcceptSurvivesALackOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := &frontend{log: slog.New(slog.NewTextHandler(&log, nil)), limiter: connlimit.New(func() int { return 0 }, func() bool { return false }, 1)}
		l := &starved{fail: 100, conns: make(chan net.Conn, 2)}
		done := make(chan struct{})
		began := time.Now()
		go func() { defer close(done); f.accept(t.Context(), l) }()
		first, second := &from{ip: "10.0.0.1"}, &from{ip: "10.0.0.1"}
		l.conns <- first
		l.conns <- second
		close(l.conns)
		<-done
		if !first.closed || !second.closed {
			t.Error("connections behind the lack of descriptors were not looked at")
		}
		if took := time.Since(began); took > 100*time.Second {
			t.Errorf("accepting came back after %v", took)
		}
		text := log.String()
		for what, want := range map[string]int{"cannot accept": 1, "accepted again": 1, "too many connections": 1} {
			if got := strings.Count(text, what); got != want {
				t.Errorf("the log says %q %d times, want %d", what, got, want)
			}
		}
	})
}
