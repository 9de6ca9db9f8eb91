// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/coder/websocket"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/config"
	"github.com/triagemq/triagemq/internal/entity"
)

func TestMemoryForClients(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, tt := range []struct{ set, want int64 }{{200 << 20, 200 << 20}, {16 << 20, 16 << 20}} {
		c := Config{Config: config.Config{Limits: config.Limits{Memory: config.Size(tt.set)}}}
		if got := c.memory(log).Usage().Limit; got != tt.want {
			t.Errorf("with limits.memory of %d clients have %d", tt.set, got)
		}
	}
	if got, memory := (Config{}).memory(log).Usage().Limit, budget.Memory(); memory > 0 && got != max(memory/2, minMemory) {
		t.Errorf("of %d bytes clients have %d", memory, got)
	}
}

// frameOf makes a frame.
func frameOf(channel uint16, p interface{ Append([]byte) []byte }) []byte {
	b := p.Append(frame.AppendHeader(nil, frame.TypeAMQP, channel))
	frame.SetSize(b, 0)
	return b
}

// hostile returns what an unauthenticated peer sends that wants to fill memory.
func hostile(kind int) []byte {
	open := bytes.Join([][]byte{
		frame.AppendProtocol(nil, frame.ProtocolAMQP), frameOf(0, &frame.Open{ContainerID: "x", MaxFrameSize: 1 << 20}),
		frameOf(0, &frame.Begin{IncomingWindow: 1 << 30, HandleMax: 1 << 30}),
	}, nil)
	long := strings.Repeat("x", 3900)
	symbols := make([]string, frame.MaxSymbols)
	const most = 150 << 10
	for i := 0; len(open) < most; i++ {
		handle := uint32(i)
		var b []byte
		switch kind % 6 {
		case 0: // links that are refused, with much in them
			b = frameOf(0, &frame.Attach{Name: string(rune('a' + i)), Handle: handle, Target: &frame.Target{Address: long}})
		case 1: // symbols
			b = frameOf(0, &frame.Attach{Name: string(rune('a' + i)), Handle: handle, Role: frame.Receiver,
				Source: &frame.Source{Address: "$cbs", Outcomes: symbols, Capabilities: symbols}, OfferedCapabilities: symbols})
		case 2: // answers that nobody reads
			b = append(frameOf(1, &frame.Begin{IncomingWindow: 1}), frameOf(1, new(frame.End))...)
		case 3: // unfinished tokens
			if i == 0 {
				b = frameOf(0, &frame.Attach{Name: "t", Target: &frame.Target{Address: "$cbs"}})
				break
			}
			b = append(frame.AppendHeader(nil, frame.TypeAMQP, 0), (&frame.Transfer{HasDeliveryID: i == 1, DeliveryTag: []byte("t"), More: true}).Append(nil)...)
			b = append(b, make([]byte, 3000)...)
			frame.SetSize(b, 0)
		case 4: // sessions
			b = frameOf(uint16(1+i%4000), &frame.Begin{IncomingWindow: 1})
		case 5: // half a frame, and silence
			return append(open, 0, 0, 0x3f, 0xff, 2, 0, 0, 0)
		}
		open = append(open, b...)
	}
	return open
}

// A thousand hostile connections
// that have not logged in hold less than 100 MiB together, and a client with a key gets
// in and is served.
func TestThousandHostilePeers(t *testing.T) {
	const outsiders = 1000
	var memory *budget.Process
	r := run(t, func(c *Config) {
		c.Security.Dev = false
		c.MaxUnauthenticated = outsiders + 10
		c.Limits.Memory = 512 << 20
		c.Handler = func(p Parts) http.Handler {
			memory = p.Memory
			return http.NotFoundHandler()
		}
	})
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	scripts := make([][]byte, 6)
	for i := range scripts {
		scripts[i] = hostile(i)
	}
	before := inUse()
	var wg sync.WaitGroup
	for i := range outsiders {
		nc, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		wg.Go(func() {
			nc.SetWriteDeadline(time.Now().Add(time.Second))
			nc.Write(scripts[i%len(scripts)]) // it is cut off, or nobody reads it
		})
	}
	most := int64(0)
	all := make(chan struct{})
	go func() { wg.Wait(); close(all) }() // ends with the writes
	for done := false; !done; {
		select {
		case <-all:
			done = true
		case <-time.After(10 * time.Millisecond):
		}
		most = max(most, memory.Usage().Unauthenticated)
	}
	held := inUse() - before
	t.Logf("at most %d MB were charged; %d MB are in use", most>>20, held>>20)
	if most > budget.AllUnauthenticatedLimit+budget.AllUnauthenticatedLimit/4 {
		t.Errorf("unauthenticated peers hold %d bytes", most)
	}
	if held > 100<<20 {
		t.Errorf("%d MB are in use for them", held>>20)
	}
	key := r.up.NewKey
	nc := r.dial()
	r.roundTrip(nc, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(key.Name, key.PrimaryKey)})
}

// Unauthenticated peers that hold all the memory there is for them give way to those that come.
func TestUnauthenticatedPeersGiveWayWhenTheirMemoryIsUsedUp(t *testing.T) {
	var memory *budget.Process
	r := run(t, func(c *Config) {
		c.Security.Dev = false
		c.Handler = func(p Parts) http.Handler {
			memory = p.Memory
			return http.NotFoundHandler()
		}
	})
	old := r.dial()
	if _, err := old.Write(hostile(5)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 8)
	if _, err := io.ReadFull(old, answer); err != nil { // it is being served
		t.Fatal(err)
	}
	full := memory.Unauthenticated().Limit()
	memory.Unauthenticated().Charge(full)
	key := r.up.NewKey
	r.roundTrip(r.dial(), &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(key.Name, key.PrimaryKey)})
	if n, err := io.Copy(io.Discard, old); err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the unauthenticated peer was sent %d bytes and then %v", n, err)
	}
	memory.Unauthenticated().Release(full)
}

// The memory of a key is not that of another which has its name: rules of two queues,
// or of a queue and the namespace, may be called the same.
func TestKeysOfOneNameDoNotShareTheirMemory(t *testing.T) {
	var memory *budget.Process
	own := entity.AuthorizationRule{KeyName: "own", Rights: []entity.Right{entity.Send}, PrimaryKey: "the long key of q"}
	r := run(t, func(c *Config) {
		c.Security.Dev = false
		c.Queues = []entity.Queue{{Name: "q", AuthorizationRules: entity.AuthorizationRules{own}}}
		c.Handler = func(p Parts) http.Handler {
			memory = p.Memory
			return admin.New(admin.Parts{Broker: p.Broker, Callers: p.Authority, Log: slog.New(slog.DiscardHandler)})
		}
	})
	other := memory.Enter() // of the rule of that name that the namespace has
	defer other.Leave()
	other.Prove(budget.Owner{Key: "own"})
	full := memory.Usage().Limit / 2
	other.Charge(full)
	defer other.Release(full)
	token := access.SignToken(access.Rule{Name: "own", PrimaryKey: "the long key of q"}, "http://x/q", time.Now().Add(time.Hour))
	if res, body := r.do("POST", "/q/messages", "x", "Authorization", token); res.StatusCode != http.StatusCreated {
		t.Errorf("%d %s, want 201", res.StatusCode, body)
	}
}

// What TLS and a WebSocket take is charged to who has logged in by them, with the header of the
// request that a WebSocket began with: net/http keeps it as long as the connection is there.
func TestTransportsAreCharged(t *testing.T) {
	var memory *budget.Process
	r := run(t, func(c *Config) {
		c.Handler = func(p Parts) http.Handler { memory = p.Memory; return http.NotFoundHandler() }
	})
	const header = 10_000
	web := func(scheme string) net.Conn {
		ws, _, err := websocket.Dial(r.ctx(), scheme+"://"+r.addr+pathWebSocket, &websocket.DialOptions{
			Subprotocols: []string{"amqp"}, HTTPHeader: http.Header{"X-Long": {strings.Repeat("x", header)}},
			HTTPClient: &http.Client{Transport: &http.Transport{TLSClientConfig: r.tlsConfig()}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return websocket.NetConn(r.ctx(), ws, websocket.MessageBinary)
	}
	charged := func(nc net.Conn) int64 {
		before := memory.Usage().Known
		c, err := amqp.NewConn(r.ctx(), nc, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.NewSession(r.ctx(), nil); err != nil { // by then it is known
			t.Fatal(err)
		}
		return memory.Usage().Known - before
	}
	none := func() bool { return memory.Usage().Known == 0 }
	plain := charged(r.dial())
	for _, over := range []struct {
		name string
		nc   net.Conn
		cost int64
	}{
		{"TLS", tls.Client(r.dial(), r.tlsConfig()), tlsCost},
		{"a WebSocket", web("ws"), webSocketCost + headerCost*header},
		{"a WebSocket over TLS", web("wss"), tlsCost + webSocketCost + headerCost*header},
	} {
		eventually(t, "the one before has left", none)
		if got := charged(over.nc) - plain; got < over.cost {
			t.Errorf("%s is charged with %d bytes, want at least %d", over.name, got, over.cost)
		}
	}
	eventually(t, "nothing is charged for who has left", none)
}

// TLS is charged to requests as well, once for a connection, and not a second time when it becomes a
// WebSocket.
func TestTLSOfRequestsIsCharged(t *testing.T) {
	memory := budget.NewProcess(budget.Limits{Process: 64 << 20})
	var c charges
	if !c.enter(memory) {
		t.Fatal("no memory for a connection")
	}
	defer c.leave()
	before := c.used()
	for range 2 {
		c.prove(access.Grant{Rule: "key"}, tlsCost)
	}
	if got := memory.Usage().Known; got < connectionCost+tlsCost || got >= connectionCost+2*tlsCost {
		t.Errorf("%d bytes are charged, want %d, and not more than a piece beyond", got, connectionCost+tlsCost)
	}
	if got := c.used(); got != before {
		t.Errorf("a WebSocket would be charged with %d bytes besides, want %d", got, before)
	}
}

// A connection by HTTPS takes more than one by HTTP.
func TestTransportsOfRequestsAreCharged(t *testing.T) {
	var memory *budget.Process
	r := run(t, func(c *Config) {
		c.Handler = func(p Parts) http.Handler {
			memory = p.Memory
			return admin.New(admin.Parts{Broker: p.Broker, Callers: p.Authority, Log: slog.New(slog.DiscardHandler)})
		}
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: r.tlsConfig()}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(r.ctx(), http.MethodGet, "https://"+r.addr+"/api/v1/namespace", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if got := memory.Usage().Known; res.StatusCode != http.StatusOK || got < connectionCost+tlsCost {
		t.Errorf("%d: %d bytes are charged, want at least %d", res.StatusCode, got, connectionCost+tlsCost)
	}
	client.CloseIdleConnections()
	eventually(t, "nothing is charged for who has left", func() bool { return memory.Usage().Known == 0 })
}
