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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/vfs"
)

// strict starts a broker that wants a key and gives unauthenticated peers little time.
func strict(t *testing.T, change func(*Config)) *running {
	return run(t, func(c *Config) {
		c.Security.Dev = false
		c.FirstBytes = 300 * time.Millisecond
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

// An unauthenticated peer is told at once that it is one, its body is
// not waited for, and neither is its next request.
func TestBodyOfUnauthenticatedRequestIsNotRead(t *testing.T) {
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
	r = strict(t, func(c *Config) { c.FirstBytes = time.Hour })
	nc, br := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	if got := status(t, br); got != http.StatusUnauthorized {
		t.Errorf("an unauthenticated peer that keeps its body back is told %d, want 401", got)
	}
	nc.Close()
}

// Number 7: a client that has shown a key may take its time, to send and to wait.
func TestKnownRequestsMayTakeTheirTime(t *testing.T) {
	r := strict(t, nil)
	key := basic(*r.up.NewKey)
	slow, slowAnswer := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 10\r\n\r\n", key)
	idle, idleAnswer := r.raw("GET /api/v1/queues HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", key)
	if got := status(t, idleAnswer); got != http.StatusOK {
		t.Fatalf("with a key: %d", got)
	}
	_, br := r.raw("POST /q/messages/head?timeout=1 HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 0\r\n\r\n", key)
	if got := status(t, br); got != http.StatusNoContent { // after three times what an unauthenticated peer has
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
		c.MaxUnauthenticated = 1
	})
	ask := func(auth string) (net.Conn, *bufio.Reader) {
		nc, br := r.raw("GET /api/v1/queues HTTP/1.1\r\nHost: x\r\n%s\r\n", auth)
		status(t, br)
		return nc, br
	}
	_, outsider := ask("Authorization: Basic eDp5\r\n")
	r.dial() // takes the place of the unauthenticated peer
	if _, err := outsider.ReadByte(); err == nil {
		t.Error("the unauthenticated peer was not shut out")
	}
	nc, br := ask("Authorization: " + basic(*r.up.NewKey) + "\r\n")
	for range 3 {
		r.dial()
	}
	if _, err := fmt.Fprintf(nc, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := status(t, br); got != http.StatusOK {
		t.Errorf("who has shown a key is shut out for unauthenticated peers: %d", got)
	}
}

// Number 7: who does not read its answer is cut off.
func TestAnswersAreNotWaitedForToBeRead(t *testing.T) {
	for _, who := range []string{"outsider", "known"} {
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

// An unauthenticated peer's handshake is not kept however long it says it will be.
func TestLongHandshakeIsCutOff(t *testing.T) {
	r := run(t, func(c *Config) { c.Limits.HandshakeTimeout = entity.Duration(time.Hour) })
	nc := r.dial()
	hello := append([]byte{1, 0, 0xff, 0xff}, make([]byte, 40_000)...) // the first part of a ClientHello of 64 KiB
	for piece := range slices.Chunk(hello, 16<<10) {
		record := append([]byte{0x16, 3, 1, byte(len(piece) >> 8), byte(len(piece))}, piece...)
		if _, err := nc.Write(record); err != nil {
			break
		}
	}
	if _, err := io.Copy(io.Discard, nc); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%v, want the connection closed", err)
	}
}

func TestHeaderMeter(t *testing.T) {
	for _, tt := range []struct {
		text  string
		bytes int
		lines int
		done  bool
	}{
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\nbody\nbody\n", 27, 2, true},
		{"GET / HTTP/1.1\nHost: x\n\n\n\n\n", 24, 2, true},
		{"\r\n\r\nGET / HTTP/1.1\r\na:b\r\n", 25, 4, false},
		{"GET / HTTP/1.1\r\n \r\n", 19, 2, false},
		{"", 0, 0, false},
	} {
		want := int64(tt.bytes*headerCost + tt.lines*headerLineCost)
		var whole, single headerMeter
		if got := whole.cost([]byte(tt.text)); got != want || whole.done != tt.done {
			t.Errorf("%q costs %d, ended %v; want %d, %v", tt.text, got, whole.done, want, tt.done)
		}
		var sum int64
		for i := range tt.text {
			sum += single.cost([]byte{tt.text[i]})
		}
		if sum != want || single != whole {
			t.Errorf("%q, byte by byte, costs %d, want %d", tt.text, sum, want)
		}
	}
}

// usage starts a broker with little memory and returns how to ask for it.
func usage(t *testing.T, patience time.Duration) (*running, func() budget.Usage) {
	var memory *budget.Process
	r := strict(t, func(c *Config) {
		c.FirstBytes = patience
		c.Limits.Memory = minMemory
		c.Limits.WriteTimeout = entity.Duration(time.Hour)
		c.Security.Rules = entity.AuthorizationRules{
			{KeyName: "a", Rights: []entity.Right{entity.Send}, PrimaryKey: "the long key of a"},
			{KeyName: "b", Rights: []entity.Right{entity.Send}, PrimaryKey: "the long key of b"},
		}
		c.Handler = func(p Parts) http.Handler {
			memory = p.Memory
			return admin.New(admin.Parts{Broker: p.Broker, Callers: p.Authority, Log: slog.New(slog.DiscardHandler), Unsynced: unsynced})
		}
	})
	return r, func() budget.Usage { return memory.Usage() }
}

// eventually waits for something that others do.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(30 * time.Second); !ok(); {
		select {
		case <-deadline:
			t.Fatalf("not within 30 s: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// Number 7: a header of many small lines takes many times its bytes, and is charged so.
func TestUnauthenticatedHeadersAreCharged(t *testing.T) {
	r, usage := usage(t, time.Hour)
	const conns = 20
	for i := range conns {
		var head strings.Builder
		for j := range 300 {
			fmt.Fprintf(&head, "a%d:\n", j)
		}
		nc, _ := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\n%s", head.String())
		eventually(t, "the header is charged", func() bool { return usage().Unauthenticated >= int64(i+1)*(300*headerLineCost) })
		defer nc.Close()
	}
	nc, br := r.raw("POST /q/messages HTTP/1.1\r\nHost: x\r\n%s\r\n", strings.Repeat("a:\n", 5000))
	if got := status(t, br); got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 5,000 lines: %d, want 431", got)
	}
	nc.Close()
	eventually(t, "nothing is charged for who has left", func() bool { return usage().Unauthenticated < (conns+1)*(64<<10) })
}

// Every header of a connection is charged, whatever was before it: a request that no handler
// sees, a body that none has read and that looks like the end of a header, two requests at once.
func TestHeadersAfterTheFirstAreCharged(t *testing.T) {
	r := strict(t, nil)
	for name, first := range map[string]struct {
		sent    string
		answers int
	}{
		"options":             {"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 1},
		"options with a body": {"OPTIONS * HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\na\n\nb\n\n", 1},
		"a body not read":     {"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\na\n\nb\n\n", 1},
		"no such thing":       {"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 1},
		"two at once":         {"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 2},
	} {
		nc := r.dial()
		br := bufio.NewReader(nc)
		fmt.Fprint(nc, first.sent)
		for range first.answers {
			if status(t, br) == 0 {
				t.Errorf("%s: no answer", name)
			}
		}
		fmt.Fprintf(nc, "GET /healthz HTTP/1.1\r\nHost: x\r\n%s\r\n", strings.Repeat("a:\n", 5000))
		if got := status(t, br); got != http.StatusRequestHeaderFieldsTooLarge && got != 0 {
			t.Errorf("a header of 5,000 lines after %s: %d, want 431", name, got)
		}
		nc.Close()
	}
}

// Number 7: bodies that are not complete are charged to the key of who sends them. When
// its share is used up it is told so, and others are served.
func TestBodiesAreCharged(t *testing.T) {
	r, usage := usage(t, time.Hour)
	head := func(rule string, n int) string {
		return fmt.Sprintf("POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n",
			basic(access.Rule{Name: rule, PrimaryKey: "the long key of " + rule}), n)
	}
	const size = 200_000
	var kept []net.Conn
	full := false
	for !full {
		nc := r.dial()
		kept = append(kept, nc)
		want := usage().Known + (size-1)*bodyCost - 32<<10 // which may have been held before
		answered := make(chan int, 1)
		if _, err := io.WriteString(nc, head("a", size)+strings.Repeat("x", size-1)); err != nil {
			t.Fatal(err)
		}
		go func() { answered <- status(t, bufio.NewReader(nc)) }()
		eventually(t, "the body is charged, or refused", func() bool {
			select {
			case got := <-answered:
				if full = true; got != http.StatusTooManyRequests {
					t.Errorf("a body for which there is no space: %d, want 429", got)
				}
				return true
			default:
				return usage().Known >= want
			}
		})
	}
	_, br := r.raw("%s%s", head("b", size), strings.Repeat("x", size))
	if got := status(t, br); got != http.StatusCreated {
		t.Errorf("another key: %d, want 201", got)
	}
	for _, nc := range kept {
		nc.Close()
	}
	eventually(t, "nothing is charged for who has left", func() bool { return usage().Known < size })
}

// Number 7: a WebSocket is not charged as a request that never ends, and has the time of
// AMQP.
func TestWebSocketCountsAsAuthenticated(t *testing.T) {
	r, usage := usage(t, 300*time.Millisecond)
	dial := func() *amqp.Conn {
		ws, _, err := websocket.Dial(r.ctx(), "ws://"+r.addr+pathWebSocket, &websocket.DialOptions{Subprotocols: []string{"amqp"}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := amqp.NewConn(r.ctx(), websocket.NetConn(r.ctx(), ws, websocket.MessageBinary),
			&amqp.ConnOptions{SASLType: amqp.SASLTypePlain("a", "the long key of a")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c := dial()
	for range 20 {
		dial()
	}
	eventually(t, "nobody is charged as an unauthenticated peer", func() bool { return usage().Unauthenticated == 0 })
	_, br := r.raw("POST /q/messages/head?timeout=1 HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: 0\r\n\r\n", basic(*r.up.NewKey))
	if got := status(t, br); got != http.StatusNoContent { // after some time
		t.Errorf("waiting for a message: %d, want 204", got)
	}
	if _, err := c.NewSession(r.ctx(), nil); err != nil {
		t.Errorf("after some time: %v", err)
	}
}

// Number 7: a key whose connections hold all that it may is given no more, and others
// are. What is held is given back with the request, and with the connection.
func TestKeysHaveTheirShareOfMemory(t *testing.T) {
	p := budget.NewProcess(budget.Limits{Process: minMemory})
	connect := func(rule string) *charges {
		c := new(charges)
		if !c.enter(p) {
			t.Fatal("no space for a connection")
		}
		c.prove(access.Grant{Rule: rule}, 0)
		return c
	}
	var mine []*charges
	for full := false; !full; {
		c := connect("mine")
		mine = append(mine, c)
		for c.hold(64 << 10) {
		}
		full = c.short()
	}
	if c := connect("mine"); !c.short() || c.hold(64<<10) {
		t.Error("another connection of the key has space")
	}
	if c := connect("other"); c.short() || !c.hold(64<<10) {
		t.Error("another key has none")
	}
	mine[0].end()
	if mine[0].short() {
		t.Error("a request that has ended still holds memory")
	}
	written := mine[0].output(1 << 20)
	for _, c := range mine {
		c.leave()
	}
	written()
	mine[0].end()
	if mine[0].hold(1) {
		t.Error("a connection that has left was charged")
	}
	if used := p.Usage().Known; used > 3*(64<<10) {
		t.Errorf("%d bytes are held by who has left", used)
	}
}
