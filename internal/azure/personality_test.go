// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
)

var rootRule = access.Rule{Name: access.RootRule, Rights: access.All, PrimaryKey: "root key"}

// toys is a service with two toy personalities.
type toys struct {
	service  *azure.Service
	counters *counters
	memory   *budget.Process
	keeper   *access.RuleAuthority
}

func startToys(t *testing.T) *toys {
	s := &toys{counters: newCounters("counter/a", "counter/b"), memory: budget.Unlimited()}
	s.service = azure.New(brokertest.Start(t), s.memory, slog.New(slog.DiscardHandler), &echoes{}, s.counters)
	s.keeper = access.NewRuleAuthority(access.Rules{rootRule}, func(string) (access.Entity, bool) { return access.Entity{}, false })
	t.Cleanup(func() { // after those of the clients
		if held := s.service.Held(); held != (azure.Held{}) {
			t.Errorf("the service still has %+v", held)
		}
		if u := s.memory.Usage(); u.Used != 0 {
			t.Errorf("memory is charged: %+v", u)
		}
	})
	return s
}

// client is one end of a connection, the other of which is served.
type client struct {
	*amqp.Session
	t   *testing.T
	ctx context.Context
}

// connect connects a client that has proved nothing, or that has logged in.
func (s *toys) connect(t *testing.T, login amqp.SASLType) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.service.Serve(ctx, endpoint.NewConn(ours, endpoint.Config{}), azure.Peer{Authority: s.keeper})
	})
	conn, err := amqp.NewConn(ctx, theirs, &amqp.ConnOptions{HostName: "ns.example", SASLType: login})
	t.Cleanup(func() {
		if err == nil {
			conn.Close()
		}
		cancel()
		wg.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := conn.NewSession(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{session, t, ctx}
}

func (s *toys) login(t *testing.T) *client {
	t.Helper()
	return s.connect(t, amqp.SASLTypePlain(rootRule.Name, rootRule.PrimaryKey))
}

func (c *client) sender(addr string) *amqp.Sender {
	c.t.Helper()
	l, err := c.NewSender(c.ctx, addr, nil)
	if err != nil {
		c.t.Fatalf("attach a sender to %q: %v", addr, err)
	}
	return l
}

// want checks that err is of an AMQP condition.
func want(t *testing.T, what string, err error, condition string) {
	t.Helper()
	var e *amqp.Error
	if !errors.As(err, &e) || string(e.Condition) != condition {
		t.Errorf("%s: %v, want the condition %s", what, err, condition)
	}
}

// request sends a request to a node and returns the reply.
func (c *client) request(node, operation string, body any, properties map[string]any) *amqp.Message {
	c.t.Helper()
	replies, err := c.NewReceiver(c.ctx, node, &amqp.ReceiverOptions{Credit: 10, TargetAddress: "replies"})
	if err != nil {
		c.t.Fatalf("attach to %s: %v", node, err)
	}
	defer replies.Close(c.ctx)
	requests := c.sender(node)
	defer requests.Close(c.ctx)
	to := "replies"
	m := &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "1", ReplyTo: &to},
		ApplicationProperties: map[string]any{"operation": operation},
		Value:                 body,
	}
	maps.Copy(m.ApplicationProperties, properties)
	if err := requests.Send(c.ctx, m, nil); err != nil {
		c.t.Fatalf("%s: %v", operation, err)
	}
	reply, err := replies.Receive(c.ctx, nil)
	if err != nil {
		c.t.Fatalf("%s: no reply: %v", operation, err)
	}
	return reply
}

func wantStatus(t *testing.T, what string, reply *amqp.Message, status int32) {
	t.Helper()
	if got := reply.ApplicationProperties["statusCode"]; got != status {
		t.Errorf("%s: status %v (%v), want %d", what, got, reply.ApplicationProperties["statusDescription"], status)
	}
}

// The entity that a link names decides which personality serves it.
func TestPersonalityIsChosenByEntity(t *testing.T) {
	c := startToys(t).login(t)
	adder := c.sender("counter/a")
	if got := adder.Properties()["toy:most"]; got != int64(maxSum) {
		t.Errorf("the attach says that the most is %v, want %d", got, maxSum)
	}
	for range maxSum {
		if err := adder.Send(c.ctx, amqp.NewMessage([]byte("x")), nil); err != nil {
			t.Fatal(err)
		}
	}
	err := adder.Send(c.ctx, amqp.NewMessage([]byte("x")), nil)
	want(t, "one too many", err, "toy:overflow")
	if e := new(amqp.Error); errors.As(err, &e) && e.Description != "The counter 'sb://ns.example/counter/a' is full." {
		t.Errorf("told %q", e.Description)
	}
	want(t, "echo", c.sender("echo/x").Send(c.ctx, amqp.NewMessage([]byte("x")), nil), "toy:echo")
	_, err = c.NewSender(c.ctx, "nothing", nil)
	want(t, "a name that nothing has", err, "amqp:not-found")
	// To the anonymous terminus, each message names its entity.
	relay := c.sender("")
	for to, condition := range map[string]string{"counter/a": "toy:overflow", "echo/x": "amqp:not-found"} {
		m := amqp.NewMessage([]byte("x"))
		m.Properties = &amqp.MessageProperties{To: &to}
		want(t, "through the anonymous terminus to "+to, relay.Send(c.ctx, m, nil), condition)
	}
	m := amqp.NewMessage([]byte("x"))
	m.Properties = &amqp.MessageProperties{To: new("counter/b")}
	if err := relay.Send(c.ctx, m, nil); err != nil {
		t.Errorf("through the anonymous terminus: %v", err)
	}
}

// A link may ask for things in its properties and filters, and end because of another
// connection.
func TestReaderWithAHigherEpochTakesOver(t *testing.T) {
	s := startToys(t)
	one, two := s.login(t), s.login(t)
	read := func(c *client, epoch int64) (*amqp.Receiver, error) {
		return c.NewReceiver(c.ctx, "counter/a", &amqp.ReceiverOptions{
			Credit: 1, Properties: map[string]any{"toy:epoch": epoch},
			Filters: []amqp.LinkFilter{amqp.NewLinkFilter("toy:plus", 7, int64(40))},
		})
	}
	old, err := read(one, 1)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := old.Receive(one.ctx, nil); err != nil || m.Value != int64(40) {
		t.Fatalf("got %v, %v, want 40", m, err)
	}
	_, err = read(two, 0)
	want(t, "a lower epoch", err, "amqp:link:stolen")
	if _, err := read(two, 2); err != nil {
		t.Fatal(err)
	}
	for err = nil; err == nil; { // it may have had a sum on its way
		_, err = old.Receive(one.ctx, nil)
	}
	want(t, "the old reader", err, "amqp:link:stolen")
}

func TestOperationsOfAnEntity(t *testing.T) {
	c := startToys(t).login(t)
	const node = "counter/a/$management"
	wantStatus(t, "add 2", c.request(node, "ADD", map[string]any{"n": int64(2)}, nil), 200)
	wantStatus(t, "add 1", c.request(node, "ADD", map[string]any{"n": int64(1)}, nil), 417)
	wantStatus(t, "add too much", c.request(node, "ADD", map[string]any{"n": int64(2)}, nil), 418)
	reply := c.request(node, "READ", "no map", nil)
	wantStatus(t, "read", reply, 200)
	if body, _ := reply.Value.(map[string]any); body["sum"] != int64(2) {
		t.Errorf("read %v, want 2", reply.Value)
	}
	wantStatus(t, "unknown", c.request(node, "com.microsoft:peek-message", map[string]any{}, nil), 501)
	wantStatus(t, "of another personality", c.request("echo/x/$management", "READ", map[string]any{}, nil), 501)
}

// A client with a token for one entity may ask at the node of the namespace about that
// one, and no other: so do the clients of Event Hubs.
func TestOperationsOfTheNamespace(t *testing.T) {
	c := startToys(t).connect(t, amqp.SASLTypeAnonymous())
	_, err := c.NewSender(c.ctx, "$management", nil)
	want(t, "without a token", err, "amqp:unauthorized-access")
	audience := "sb://ns.example/counter/a/$management"
	wantStatus(t, "put", c.request("$cbs", "put-token", access.SignToken(rootRule, audience, time.Now().Add(time.Hour)),
		map[string]any{"type": "servicebus.windows.net:sastoken", "name": audience}), 202)
	read := func(name string) *amqp.Message {
		return c.request("$management", "READ", nil, map[string]any{"name": name})
	}
	reply := read("Counter/A")
	wantStatus(t, "read", reply, 200)
	if body, _ := reply.Value.(map[string]any); body["sum"] != int64(0) {
		t.Errorf("read %v, want 0", reply.Value)
	}
	wantStatus(t, "read another", read("counter/b"), 401)
	wantStatus(t, "read what is not there", read("counter/c"), 401)
	wantStatus(t, "unknown", c.request("$management", "WRITE", nil, nil), 501)
	_, err = c.NewSender(c.ctx, "counter/a", nil)
	want(t, "send without a token for it", err, "amqp:unauthorized-access")

	root := startToys(t).login(t)
	wantStatus(t, "root reads what is not there", root.request("$management", "READ", nil, map[string]any{"name": "counter/c"}), 404)
	wantStatus(t, "root reads nothing", root.request("$management", "READ", nil, nil), 400)
}
