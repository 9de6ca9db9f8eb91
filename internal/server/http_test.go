// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/vfs"
)

// strict starts a broker that wants a key and gives strangers little time.
func strict(t *testing.T, change func(*Config)) *running {
	return run(t, func(c *Config) {
		c.Security.Dev = false
		c.FirstBytes = 100 * time.Millisecond
		if change != nil {
			change(c)
		}
	})
}

// raw sends text on a connection of its own and returns a reader of the answer.
func (r *running) raw(format string, args ...any) (net.Conn, *bufio.Reader) {
	r.t.Helper()
	nc := r.dial()
	if _, err := fmt.Fprintf(nc, format, args...); err != nil {
		r.t.Fatal(err)
	}
	return nc, bufio.NewReader(nc)
}

// status reads the status of an answer; zero is none.
func status(t *testing.T, br *bufio.Reader) int {
	t.Helper()
	res, err := http.ReadResponse(br, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// Number 7 of the list of doors: a stranger is told at once that it is one, its body is
// not waited for, and neither is its next request.
func TestStrangersBodyIsNotWaitedFor(t *testing.T) {
	r := strict(t, nil)
	for _, head := range []string{
		"POST /q/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"POST /q/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"PUT /api/v1/queues/q HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp5\r\nContent-Length: 1000000\r\n\r\n",
		"POST /q/messages HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n",
		"PUT /q?api-version=2021-05 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"POST /$servicebus/websocket HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", // and nothing more
		"GET /healthz HTTP/1.1\r\nHost: x\r\n",
	} {
		_, br := r.raw("%s", head)
		if _, err := io.Copy(io.Discard, br); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("after %q: %v, want the connection closed", head, err)
		}
	}
	nc, br := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	if got := status(t, br); got != http.StatusUnauthorized {
		t.Errorf("a stranger that keeps its body back is told %d, want 401", got)
	}
	nc.Close()
}

// Number 7: whoever has shown a key may take its time, to send and to wait.
func TestKnownRequestsMayTakeTheirTime(t *testing.T) {
	r := strict(t, nil)
	key := basic(*r.up.NewKey)
	slow, slowAnswer := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 10\r\n\r\n", key)
	idle, idleAnswer := r.raw("GET /api/v1/queues HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", key)
	if got := status(t, idleAnswer); got != http.StatusOK {
		t.Fatalf("with a key: %d", got)
	}
	_, br := r.raw("POST /q/messages/head?timeout=1 HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 0\r\n\r\n", key)
	if got := status(t, br); got != http.StatusNoContent { // after ten times what a stranger has
		t.Errorf("waiting for a message: %d, want 204", got)
	}
	if _, err := io.WriteString(slow, "0123456789"); err != nil {
		t.Fatal(err)
	}
	if got := status(t, slowAnswer); got != http.StatusCreated {
		t.Errorf("a body that came late: %d, want 201", got)
	}
	if _, err := io.WriteString(idle, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := status(t, idleAnswer); got != http.StatusOK {
		t.Errorf("after a pause: %d, want 200", got)
	}
}

// Number 7: a request that was refused does not make its connection known, and one
// that was not does.
func TestConnectionIsKnownByAKeyAlone(t *testing.T) {
	r := strict(t, func(c *Config) {
		c.FirstBytes = time.Hour
		c.MaxStrangers = 1
	})
	ask := func(auth string) (net.Conn, *bufio.Reader) {
		nc, br := r.raw("GET /api/v1/queues HTTP/1.1\r\nHost: x\r\n%s\r\n", auth)
		status(t, br)
		return nc, br
	}
	_, stranger := ask("Authorization: Basic eDp5\r\n")
	r.dial() // takes the place of the stranger
	if _, err := stranger.ReadByte(); err == nil {
		t.Error("the stranger was not shut out")
	}
	nc, br := ask("Authorization: " + basic(*r.up.NewKey) + "\r\n")
	for range 3 {
		r.dial()
	}
	if _, err := fmt.Fprintf(nc, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := status(t, br); got != http.StatusOK {
		t.Errorf("who has shown a key is shut out for strangers: %d", got)
	}
}

// Number 7: who does not read its answer is cut off.
func TestAnswersAreNotWaitedForToBeRead(t *testing.T) {
	for _, who := range []string{"stranger", "known"} {
		r := strict(t, func(c *Config) { c.Limits.WriteTimeout = entity.Duration(100 * time.Millisecond) })
		auth := ""
		if who == "known" {
			auth = "Authorization: " + basic(*r.up.NewKey) + "\r\n"
		}
		nc := r.dial()
		_ = nc.(*net.TCPConn).SetReadBuffer(4 << 10)
		request := "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n"
		if _, err := io.WriteString(nc, strings.Repeat(request, 500)); err != nil {
			continue // cut off already
		}
		for {
			if _, err := io.WriteString(nc, request); err != nil {
				break // the test's time-out, otherwise
			}
		}
	}
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A client that leaves in the middle of its request is no error of ours.
func TestBrokenRequestIsNoError(t *testing.T) {
	var log syncBuffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	up, done := make(chan Ready, 1), make(chan error, 1)
	cfg := Config{Ready: func(r Ready) { up <- r }}
	cfg.FS, cfg.Listeners, cfg.Queues = vfs.NewMem(), []string{"127.0.0.1:0"}, []entity.Queue{{Name: "q"}}
	cfg.Security.Dev = true
	cfg.Storage.Shards, cfg.Storage.SegmentSize = 1, 1<<20
	cfg.Limits.WriteTimeout = entity.Duration(50 * time.Millisecond)
	go func() { done <- Run(ctx, cfg, slog.New(slog.NewTextHandler(&log, nil))) }()
	r := &running{t: t, up: <-up}
	r.addr = r.up.Addresses[0]
	for _, path := range []string{"POST /q/messages", "POST /api/v1/queues", "PUT /api/v1/policies/q", "PUT /q?api-version=2021-05", "POST /api/v1/queues/q/messages"} {
		for _, leave := range []func(*net.TCPConn) error{
			func(nc *net.TCPConn) error { return nc.CloseWrite() },
			func(nc *net.TCPConn) error { _ = nc.SetLinger(0); return nc.Close() },
			func(nc *net.TCPConn) error { return nil }, // too slow
		} {
			nc, br := r.raw("%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{", path)
			if err := leave(nc.(*net.TCPConn)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, br)
		}
	}
	nc, br := r.raw("POST /q/messages/head?timeout=600 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
	nc.Close()
	_ = br
	stop()
	<-done
	if text := log.String(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has\n%s", text)
	}
}
