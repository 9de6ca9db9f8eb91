// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/lifecycle"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/server/credentials"
	"github.com/triagemq/triagemq/internal/vfs"
)

// running is a server in memory on a port of its own.
type running struct {
	t    *testing.T
	addr string
	fs   *vfs.Mem
	up   Ready
	stop func() error
}

// run starts a server with the queue q and stops it when the test ends.
func run(t *testing.T, change func(*Config)) *running {
	t.Helper()
	r := &running{t: t, fs: vfs.NewMem()}
	cfg := Config{FS: r.fs}
	cfg.Listeners = []string{"127.0.0.1:0"}
	cfg.Security.Dev = true
	cfg.Storage = config.Storage{Shards: 1, SegmentSize: 1 << 20}
	cfg.Queues = []entity.Queue{{Name: "q"}}
	if change != nil {
		change(&cfg)
	}
	r.start(cfg)
	return r
}

func (r *running) start(cfg Config) {
	r.t.Helper()
	up := make(chan Ready, 1)
	cfg.Ready = func(x Ready) { up <- x }
	ctx, cancel := context.WithCancelCause(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg, slog.New(slog.DiscardHandler)) }() // stop waits for it
	select {
	case r.up = <-up:
	case err := <-done:
		r.t.Fatalf("server did not start: %v", err)
	}
	r.addr = r.up.Addresses[0]
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel(errors.New("test is over"))
		return <-done
	}
	r.t.Cleanup(func() {
		if err := r.stop(); err != nil {
			r.t.Errorf("server ended with %v", err)
		}
	})
}

func (r *running) ctx() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

// tlsConfig trusts the server's development CA.
func (r *running) tlsConfig() *tls.Config {
	r.t.Helper()
	pem, err := credentials.ReadFile(r.fs, r.up.CA)
	if err != nil {
		r.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		r.t.Fatal("no certificate in the CA file")
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}
}

// roundTrip sends a message and receives it again.
func (r *running) roundTrip(nc net.Conn, o *amqp.ConnOptions) {
	r.t.Helper()
	c, err := amqp.NewConn(r.ctx(), nc, o)
	if err != nil {
		r.t.Fatalf("connect: %v", err)
	}
	defer c.Close()
	s, err := c.NewSession(r.ctx(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	send, err := s.NewSender(r.ctx(), "q", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := send.Send(r.ctx(), &amqp.Message{Value: "hello"}, nil); err != nil {
		r.t.Fatal(err)
	}
	receive, err := s.NewReceiver(r.ctx(), "q", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := receive.Receive(r.ctx(), nil)
	if err != nil || m.Value != "hello" {
		r.t.Fatalf("received %v, %v", m, err)
	}
	if err := receive.AcceptMessage(r.ctx(), m); err != nil {
		r.t.Fatal(err)
	}
}

// session connects without credentials and begins a session.
func (r *running) session() *amqp.Session {
	r.t.Helper()
	c, err := amqp.NewConn(r.ctx(), r.dial(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	s, err := c.NewSession(r.ctx(), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *running) dial() net.Conn {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	return nc
}

func TestOnePortSpeaksEverything(t *testing.T) {
	r := run(t, nil)
	t.Run("AMQP", func(t *testing.T) {
		r.roundTrip(r.dial(), nil)
	})
	t.Run("AMQP over TLS", func(t *testing.T) {
		r.roundTrip(tls.Client(r.dial(), r.tlsConfig()), nil)
	})
	for _, name := range []string{"amqp", "AMQPWSB10"} {
		t.Run("AMQP over WebSocket as "+name, func(t *testing.T) {
			ws, _, err := websocket.Dial(r.ctx(), "ws://"+r.addr+"/$servicebus/websocket", &websocket.DialOptions{Subprotocols: []string{name}})
			if err != nil {
				t.Fatal(err)
			}
			if ws.Subprotocol() != name {
				t.Errorf("subprotocol %q, want %q", ws.Subprotocol(), name)
			}
			r.roundTrip(websocket.NetConn(r.ctx(), ws, websocket.MessageBinary), nil)
		})
	}
	t.Run("WebSocket over TLS", func(t *testing.T) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tlsConfig()}}
		ws, _, err := websocket.Dial(r.ctx(), "wss://"+r.addr+"/$servicebus/websocket",
			&websocket.DialOptions{Subprotocols: []string{"amqp"}, HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		r.roundTrip(websocket.NetConn(r.ctx(), ws, websocket.MessageBinary), nil)
	})
}

func TestHTTP(t *testing.T) {
	r := run(t, nil)
	secure := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tlsConfig(), ForceAttemptHTTP2: true}}
	defer secure.CloseIdleConnections()
	tests := []struct {
		path   string
		status int
		body   string
	}{
		{"/healthz", 200, "ok\n"},
		{"/readyz", 200, "ok\n"},
		{"/health", 200, `{"status":"healthy","message":"Service is healthy."}`},
		{"/api/v1/connections", 200, "{\"connections\":[],\"total\":0}\n"},
		{"/nobody?api-version=2021-05", 404, "<Error><Code>404</Code><Detail>SubCode=40400. Not Found. No queue, topic or event hub is called 'nobody'.</Detail></Error>"},
	}
	for _, tt := range tests {
		for scheme, client := range map[string]*http.Client{"http": http.DefaultClient, "https": secure} {
			res, err := client.Get(scheme + "://" + r.addr + tt.path)
			if err != nil {
				t.Fatalf("%s %s: %v", scheme, tt.path, err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != tt.status || string(body) != tt.body {
				t.Errorf("%s %s: %d %q, %v, want %d %q", scheme, tt.path, res.StatusCode, body, err, tt.status, tt.body)
			}
			res.Body.Close()
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestForeignPagesAreKeptOutInDevelopment(t *testing.T) {
	r := run(t, nil)
	_, _, err := websocket.Dial(r.ctx(), "ws://"+r.addr+"/$servicebus/websocket", &websocket.DialOptions{
		Subprotocols: []string{"amqp"}, HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}},
	})
	if err == nil {
		t.Error("a page of another origin got in")
	}
}

func TestGarbageIsClosed(t *testing.T) {
	r := run(t, nil)
	for _, garbage := range []string{"\x00\x00\x00\x00\x00", "hello\r\n", "\x16\x03\x01\x00\x02ab", "AMQPxxxx", "GET / nonsense\r\n\r\n"} {
		nc := r.dial()
		if _, err := io.WriteString(nc, garbage); err != nil {
			t.Fatal(err)
		}
		nc.(*net.TCPConn).CloseWrite()
		if _, err := io.ReadAll(nc); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("after %q: %v, want the connection closed", garbage, err)
		}
	}
	r.roundTrip(r.dial(), nil)
}

func TestSilenceIsNotWaitedFor(t *testing.T) {
	r := run(t, func(c *Config) { c.FirstBytes = 10 * time.Millisecond })
	for _, start := range []string{"", "AM", "\x16"} {
		nc := r.dial()
		if _, err := io.WriteString(nc, start); err != nil {
			t.Fatal(err)
		}
		if start == "\x16" {
			continue // has as long as a handshake may take
		}
		if _, err := io.ReadAll(nc); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("after %q: %v, want the connection closed", start, err)
		}
	}
}

// However many connections of an address say nothing, one that speaks is served.
func TestSilentCrowdDoesNotKeepOthersOut(t *testing.T) {
	r := run(t, func(c *Config) {
		c.MaxUnauthenticated = 10
		c.FirstBytes = time.Hour
	})
	for range 200 {
		r.dial()
	}
	r.roundTrip(r.dial(), nil)
}

func TestTooManyConnections(t *testing.T) {
	r := run(t, func(c *Config) { c.Limits.MaxConnections = 1 })
	first, err := amqp.NewConn(r.ctx(), r.dial(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := amqp.NewConn(r.ctx(), r.dial(), nil); err == nil {
		t.Error("a second connection got in")
	}
	first.Close()
}

func TestFirstStartMakesAKey(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) {
		c.Security.Dev = false
		cfg = *c
	})
	if r.up.NewKey == nil || r.up.NewKey.Name != access.RootRule || r.up.CA != "" {
		t.Fatalf("first start: %+v, want a new key and no certificate", r.up)
	}
	key := *r.up.NewKey
	login := func() *amqp.ConnOptions {
		return &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(key.Name, key.PrimaryKey)}
	}
	r.roundTrip(r.dial(), login())
	if _, err := amqp.NewConn(r.ctx(), r.dial(), &amqp.ConnOptions{
		SASLType: amqp.SASLTypePlain(access.Development.Name, access.Development.PrimaryKey),
	}); err == nil {
		t.Error("the well-known key opened a broker that is not for development")
	}

	if err := r.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	r.start(cfg)
	if r.up.NewKey != nil {
		t.Error("a second start made another key")
	}
	r.roundTrip(r.dial(), login())
}

func TestStopTellsPeers(t *testing.T) {
	r := run(t, nil)
	c, err := amqp.NewConn(r.ctx(), r.dial(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	<-c.Done()
	var e *amqp.ConnError
	if !errors.As(c.Err(), &e) || e.RemoteErr == nil || e.RemoteErr.Condition != amqp.ErrCondConnectionForced {
		t.Errorf("peer was told %v, want amqp:connection:forced", c.Err())
	}
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("the port is still open")
	}
}

func TestConfigurationIsFollowed(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) {
		c.Topics = []config.Topic{{Topic: entity.Topic{Name: "t"}, Subscriptions: []entity.Subscription{{Name: "s"}}}}
		cfg = *c
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Queues = []entity.Queue{{Name: "q", MaxDeliveryCount: 3}, {Name: "more", ForwardTo: "q"}}
	r.start(cfg)
	s := r.session()
	for _, addr := range []string{"q", "more", "t"} {
		if _, err := s.NewSender(r.ctx(), addr, nil); err != nil {
			t.Errorf("sender to %s: %v", addr, err)
		}
	}
	if _, err := s.NewReceiver(r.ctx(), "t/Subscriptions/s", nil); err != nil {
		t.Errorf("receiver from the subscription: %v", err)
	}
}

func TestPlainTextElsewhereNeedsAWord(t *testing.T) {
	tests := []struct {
		listen   string
		insecure bool
		ok       bool
	}{
		{"127.0.0.1:0", false, true},
		{"[::1]:0", false, true},
		{"localhost:0", false, true},
		{"0.0.0.0:0", false, false},
		{":0", false, false},
		{"example.com:0", false, false},
		{"0.0.0.0:0", true, true},
		{"nonsense", false, false},
	}
	for _, tt := range tests {
		var cfg Config
		cfg.Listeners = []string{tt.listen}
		cfg.Security.Insecure = tt.insecure
		if err := cfg.Validate(); (err == nil) != tt.ok {
			t.Errorf("listen on %q, insecure %v: %v, want ok %v", tt.listen, tt.insecure, err, tt.ok)
		}
	}
}

// Without a key for this machine alone.
func TestDevelopmentIsForThisMachine(t *testing.T) {
	for _, tt := range []struct {
		listen string
		remote bool
		ok     bool
	}{
		{"127.0.0.1:0", false, true},
		{"localhost:0", false, true},
		{"[::1]:0", false, true},
		{"0.0.0.0:0", false, false},
		{":0", false, false},
		{"192.0.2.1:0", false, false},
		{"0.0.0.0:0", true, true},
		{"127.0.0.1:0", true, true},
	} {
		var cfg Config
		cfg.Listeners = []string{tt.listen}
		cfg.Security.Dev, cfg.Security.AllowRemote = true, tt.remote
		cfg.TLS.CertFile, cfg.TLS.KeyFile = "cert.pem", "key.pem"
		err := cfg.Validate()
		if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "--allow-remote") {
			t.Errorf("listen on %q, remote %v: %v, want ok %v", tt.listen, tt.remote, err, tt.ok)
		}
	}
}

// Number 21: where other machines are served, no client is accepted because of its address.
func TestRemoteDevelopmentNeedsAKey(t *testing.T) {
	r := run(t, func(c *Config) { c.Security.AllowRemote = true })
	for _, o := range []*amqp.ConnOptions{nil, {SASLType: amqp.SASLTypePlain(access.Development.Name, access.Development.PrimaryKey)}} {
		c, err := amqp.NewConn(r.ctx(), r.dial(), o)
		if err != nil {
			continue
		}
		s, err := c.NewSession(r.ctx(), nil)
		if err == nil {
			_, err = s.NewSender(r.ctx(), "q", nil)
		}
		if err == nil {
			t.Error("somebody got in without a key of this broker")
		}
		c.Close()
	}
	if res, _ := r.do("GET", "/api/v1/queues", "", "Host", "broker.example"); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %s, want 401", res.Status)
	}
	if res, _ := r.do("GET", "/api/v1/queues", "", "Host", "broker.example", "Authorization", basic(*r.up.NewKey)); res.StatusCode != http.StatusOK {
		t.Errorf("with the key: %s, want 200", res.Status)
	}
	r.roundTrip(r.dial(), &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(r.up.NewKey.Name, r.up.NewKey.PrimaryKey)})
}

// The key is made by the first start that needs one,
// and shown by it.
func TestKeyIsMadeWhenItIsNeeded(t *testing.T) {
	var cfg Config
	r := run(t, func(c *Config) { cfg = *c })
	if r.up.NewKey != nil {
		t.Error("development made a key")
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.Security.Dev = false
	r.start(cfg)
	if r.up.NewKey == nil {
		t.Fatal("the first start without --dev shows no key")
	}
	r.roundTrip(r.dial(), &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(r.up.NewKey.Name, r.up.NewKey.PrimaryKey)})
}

// Number 22: what was configured arrives where it belongs.
func TestSettingsAreUsed(t *testing.T) {
	r := run(t, func(c *Config) { c.Namespace = "shop" })
	if _, body := r.do("GET", "/api/v1/namespace", ""); !strings.Contains(body, `"name":"shop"`) {
		t.Errorf("the namespace is %s", body)
	}
	if _, body := r.do("GET", "/$namespaceinfo?api-version=2021-05", ""); !strings.Contains(body, "<Name>shop</Name>") {
		t.Errorf("the namespace is %s", body)
	}
	var cfg Config
	cfg.Storage.CacheSize, cfg.Storage.Shards = 1<<20, 4
	if got := cfg.shard().CacheBytes; got != 1<<20 {
		t.Errorf("a shard caches %d bytes, want what was given for each", got)
	}
}

// Number 22: the credit of senders is what they were granted.
func TestConnectionsShowCredit(t *testing.T) {
	r := run(t, nil)
	s := r.session()
	if _, err := s.NewSender(r.ctx(), "q", nil); err != nil {
		t.Fatal(err)
	}
	_, body := r.do("GET", "/api/v1/connections", "")
	if !strings.Contains(body, `"role":"sender","credit":`) || strings.Contains(body, `"credit":0`) {
		t.Errorf("connections: %s, want the credit of the sender", body)
	}
}

// hanging is a disk that stops to answer, with its first sync after hang, until it
// is released.
type hanging struct {
	*vfs.Fault
	hangs, released chan struct{}
}

func newHanging(disk vfs.FS) *hanging {
	return &hanging{Fault: vfs.NewFault(disk), hangs: make(chan struct{}), released: make(chan struct{})}
}

func (h *hanging) hang() {
	first := sync.OnceFunc(func() { close(h.hangs) })
	h.Before(func(op vfs.Op, _ string) error {
		if op == vfs.OpSync {
			first()
			<-h.released
		}
		return nil
	})
}

// The broker obeys an order to stop within its
// grace although the disk does not answer, and says what it could not finish.
func TestStopWhileTheDiskHangs(t *testing.T) {
	var disk *hanging
	r := run(t, func(c *Config) {
		disk = newHanging(c.FS)
		c.FS = disk
		c.Grace = entity.Duration(time.Second)
	})
	defer close(disk.released)
	c, err := amqp.NewConn(r.ctx(), r.dial(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession(r.ctx(), nil)
	if err != nil {
		t.Fatal(err)
	}
	send, err := s.NewSender(r.ctx(), "q", nil)
	if err != nil {
		t.Fatal(err)
	}
	disk.hang()
	sent := make(chan error, 1)
	go func() { sent <- send.Send(r.ctx(), amqp.NewMessage([]byte("late")), nil) }()
	post := make(chan error, 1)
	go func() {
		res, err := http.Post("http://"+r.addr+"/q/messages", "text/plain", strings.NewReader("late"))
		if err == nil {
			res.Body.Close()
			err = errors.New(res.Status)
		}
		post <- err
	}()
	<-disk.hangs
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	select {
	case err = <-stopped:
	case <-time.After(30 * time.Second): // thirty times the grace
		t.Fatal("the broker does not stop")
	}
	if !errors.Is(err, ErrUnfinished) || !errors.Is(err, lifecycle.ErrStopTimeout) || !errors.Is(err, queueserver.ErrUnfinished) {
		t.Errorf("stopped with %v; want to be told of the journal that does not return, and of the shard's groups", err)
	}
	if err := <-sent; err == nil {
		t.Error("the sender was told that its message is safe")
	}
	if err := <-post; err == nil || strings.HasPrefix(err.Error(), "2") {
		t.Errorf("the HTTP client was told %v", err)
	}
}

// Neither does a start on a disk that hangs keep the process from ending.
func TestStopWhileTheStoreIsOpened(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpList, vfs.OpSync} { // while it is read, and written
		disk, hangs, released := vfs.NewFault(vfs.NewMem()), make(chan struct{}), make(chan struct{})
		first := sync.OnceFunc(func() { close(hangs) })
		disk.Before(func(got vfs.Op, _ string) error {
			if got == op {
				first()
				<-released
			}
			return nil
		})
		cfg := Config{FS: disk}
		cfg.Listeners, cfg.Grace = []string{"127.0.0.1:0"}, entity.Duration(50*time.Millisecond)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
		<-hangs
		cancel(errors.New("told to stop"))
		select {
		case err := <-done:
			if !errors.Is(err, ErrUnfinished) {
				t.Errorf("hanging in %s: ended with %v, want %v", op, err, ErrUnfinished)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("hanging in %s: does not stop", op)
		}
		close(released)
	}
}

// The entities of a file are made durable before anybody is served.
func TestStopWhileEntitiesAreDefined(t *testing.T) {
	disk, hangs, released := vfs.NewFault(vfs.NewMem()), make(chan struct{}), make(chan struct{})
	defer close(released)
	opened := false
	cfg := Config{FS: disk}
	cfg.Listeners, cfg.Grace = []string{"127.0.0.1:0"}, entity.Duration(50*time.Millisecond)
	cfg.Queues = []entity.Queue{{Name: "q"}}
	cfg.Storage = config.Storage{Shards: 1, SegmentSize: 1 << 20}
	first := sync.OnceFunc(func() { close(hangs) })
	disk.Before(func(op vfs.Op, name string) error {
		// The access rules are written when the store is open.
		opened = opened || op == vfs.OpRename && strings.HasPrefix(name, credentials.RulesFile)
		if op == vfs.OpSync && opened {
			first()
			<-released
		}
		return nil
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	<-hangs
	cancel(errors.New("told to stop"))
	select {
	case err := <-done:
		if !errors.Is(err, ErrUnfinished) {
			t.Errorf("ended with %v, want %v", err, ErrUnfinished)
		}
	case <-time.After(30 * time.Second):
		t.Error("does not stop")
	}
}

// Twelve senders of large messages and a disk that
// hangs take no more memory than there is for what is not on disk yet. When the disk
// goes on, so do they, and nothing is lost or refused.
func TestSendersWaitWhileTheDiskHangs(t *testing.T) {
	const senders, each, size = 12, 20, 200_000
	var disk *hanging
	var all *budget.Account
	r := run(t, func(c *Config) {
		disk = newHanging(c.FS)
		c.FS = disk
		c.MaxUnsynced = 8 << 20
		c.Handler = func(p Parts) http.Handler {
			all = p.Memory.Unsynced()
			return admin.New(admin.Parts{Broker: p.Broker, Callers: p.Authority, Log: slog.New(slog.DiscardHandler), Unsynced: unsynced})
		}
	})
	disk.hang()
	done := make(chan error, senders)
	for range senders {
		c, err := amqp.NewConn(r.ctx(), r.dial(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.NewSession(r.ctx(), nil)
		if err != nil {
			t.Fatal(err)
		}
		send, err := s.NewSender(r.ctx(), "q", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() { // done says that it ended
			done <- func() error {
				for range each {
					receipt, err := send.SendWithReceipt(r.ctx(), amqp.NewMessage(make([]byte, size)), nil)
					if err != nil {
						return err
					}
					defer func() {
						if state, werr := receipt.Wait(r.ctx()); werr != nil || state == nil {
							t.Errorf("a message was not accepted: %v, %v", state, werr)
						}
					}()
				}
				return nil
			}()
		}()
	}
	<-disk.hangs
	// All of them together want twelve times as much as one key may have: half of it.
	most, share := int64(0), all.Limit()/2
	for deadline := time.After(30 * time.Second); most < share-broker.Unsynced(size+1000, 1); {
		select {
		case <-deadline:
			t.Fatalf("%d of %d bytes are charged, and no more", most, share)
		case <-time.After(time.Millisecond):
			most = max(most, all.Used())
		}
	}
	if most > share {
		t.Errorf("%d bytes are charged, of %d", most, share)
	}
	// Who comes by HTTP is not kept waiting.
	res, err := http.Post("http://"+r.addr+"/q/messages", "text/plain", strings.NewReader(strings.Repeat("x", size)))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("HTTP: %s, want 503", res.Status)
	}
	close(disk.released)
	for range senders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if used := all.Used(); used != 0 {
		t.Errorf("everything is on disk, and %d bytes are charged", used)
	}
	res, err = http.Get("http://" + r.addr + "/api/v1/queues/q")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if want := fmt.Sprintf(`"active":%d`, senders*each); err != nil || !strings.Contains(string(body), want) {
		t.Errorf("the queue is %s, %v, want %s", body, err, want)
	}
}
