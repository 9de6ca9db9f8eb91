// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/servicebus"
)

var (
	rootRule   = access.Rule{Name: access.RootRule, Rights: access.All, PrimaryKey: "root key"}
	sendRule   = access.Rule{Name: "sender", Rights: access.Send, PrimaryKey: "send key"}
	listenRule = access.Rule{Name: "listener", Rights: access.Listen, PrimaryKey: "listen key"}
)

// bench is a broker in memory with both personalities on top.
type bench struct {
	broker  *broker.Broker
	service *azure.Service
	memory  *budget.Process
	keeper  *access.RuleAuthority
}

// start runs a broker with the hub h of four partitions and the group g, the hub off that
// is disabled, and the queue q, until the test ends.
func start(t testing.TB) *bench {
	t.Helper()
	return startWith(t, budget.Unlimited())
}

func startWith(t testing.TB, memory *budget.Process) *bench {
	t.Helper()
	b, ctx := brokertest.Start(t), t.Context()
	for _, h := range []entity.Hub{
		{Name: "h", PartitionCount: 4, ConsumerGroups: []entity.ConsumerGroup{{Name: "g"}}},
		{Name: "off", Status: entity.Disabled},
	} {
		if _, err := b.CreateHub(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.CreateQueue(ctx, entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	return &bench{
		broker:  b,
		service: azure.New(b, memory, log, servicebus.New(b), New(b)),
		memory:  memory,
		keeper: access.NewRuleAuthority(access.Rules{rootRule, sendRule, listenRule}, func(name string) (access.Entity, bool) {
			id, rules, ok := b.Authorization(name)
			return access.Entity{ID: id, Rules: access.OfEntity(rules)}, ok
		}),
	}
}

// peerOf is a client's end of a connection, speaking through go-amqp.
type peerOf struct {
	*amqp.Conn
	t testing.TB
}

// serve connects the client's end of a pipe.
func (b *bench) serve(t testing.TB) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = b.service.Serve(ctx, endpoint.NewConn(ours, endpoint.Config{}), azure.Peer{Authority: b.keeper})
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return theirs
}

// login connects a client that proved itself with PLAIN.
func (b *bench) login(t testing.TB, rule access.Rule) *peerOf {
	t.Helper()
	return b.dial(t, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(rule.Name, rule.PrimaryKey)})
}

func (b *bench) dial(t testing.TB, o *amqp.ConnOptions) *peerOf {
	t.Helper()
	theirs := b.serve(t)
	conn, err := amqp.NewConn(t.Context(), theirs, o)
	if err != nil {
		theirs.Close()
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return &peerOf{conn, t}
}

// ctx bounds a step that should take no time at all.
func (p *peerOf) ctx() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *peerOf) session() *amqp.Session {
	p.t.Helper()
	s, err := p.NewSession(p.ctx(), nil)
	if err != nil {
		p.t.Fatalf("begin: %v", err)
	}
	return s
}

func (p *peerOf) sender(addr string) *amqp.Sender {
	p.t.Helper()
	s, err := p.session().NewSender(p.ctx(), addr, nil)
	if err != nil {
		p.t.Fatalf("attach a sender to %s: %v", addr, err)
	}
	return s
}

// send sends single events.
func (p *peerOf) send(addr string, bodies ...string) {
	p.t.Helper()
	s := p.sender(addr)
	for _, b := range bodies {
		if err := s.Send(p.ctx(), amqp.NewMessage([]byte(b)), nil); err != nil {
			p.t.Fatalf("send to %s: %v", addr, err)
		}
	}
}

// event is an event with a partition key; empty is none.
func event(key, body string) *amqp.Message {
	m := amqp.NewMessage([]byte(body))
	if key != "" {
		m.Annotations = amqp.Annotations{names.AnnotationPartitionKey: key}
	}
	return m
}

// batchOf is an envelope as the SDKs make it.
func batchOf(t testing.TB, events ...*amqp.Message) *amqp.Message {
	t.Helper()
	envelope := &amqp.Message{Format: 0x80013700, Annotations: events[0].Annotations}
	for _, e := range events {
		b, err := e.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		envelope.Data = append(envelope.Data, b)
	}
	return envelope
}

// from is how SDKs attach a receiver that begins at a position.
func from(selector string) *amqp.ReceiverOptions {
	o := &amqp.ReceiverOptions{Credit: 300, SettlementMode: amqp.ReceiverSettleModeFirst.Ptr()}
	if selector != "" {
		o.Filters = []amqp.LinkFilter{amqp.NewSelectorFilter("amqp.annotation." + selector)}
	}
	return o
}

const earliest = "x-opt-offset > '-1'"

// partition is the address of a partition for readers of $Default.
func partition(n int) string { return fmt.Sprintf("h/ConsumerGroups/$Default/Partitions/%d", n) }

func (p *peerOf) receiver(addr string, o *amqp.ReceiverOptions) *amqp.Receiver {
	p.t.Helper()
	r, err := p.session().NewReceiver(p.ctx(), addr, o)
	if err != nil {
		p.t.Fatalf("attach a receiver to %s: %v", addr, err)
	}
	return r
}

func (p *peerOf) attachReceiver(addr string, o *amqp.ReceiverOptions) error {
	p.t.Helper()
	_, err := p.session().NewReceiver(p.ctx(), addr, o)
	return err
}

// next receives an event.
func (p *peerOf) next(r *amqp.Receiver) *amqp.Message {
	p.t.Helper()
	m, err := r.Receive(p.ctx(), nil)
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	return m
}

// want receives events with these bodies.
func (p *peerOf) want(r *amqp.Receiver, bodies ...string) (ms []*amqp.Message) {
	p.t.Helper()
	for i, body := range bodies {
		m := p.next(r)
		if got := string(m.GetData()); got != body {
			p.t.Fatalf("event %d is %q, want %q", i, got, body)
		}
		ms = append(ms, m)
	}
	return ms
}

// rpc is a pair of links for requests, as the Go SDK makes it.
type rpc struct {
	p       *peerOf
	send    *amqp.Sender
	receive *amqp.Receiver
	replyTo string
}

func (p *peerOf) rpc(node string) *rpc {
	p.t.Helper()
	s := p.session()
	send, err := s.NewSender(p.ctx(), node, nil)
	if err != nil {
		p.t.Fatalf("attach to %s: %v", node, err)
	}
	replyTo := node + "$" + node + "-reply-to-1"
	receive, err := s.NewReceiver(p.ctx(), node, &amqp.ReceiverOptions{
		TargetAddress: replyTo, Credit: 1000, RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(),
	})
	if err != nil {
		p.t.Fatalf("attach to %s: %v", node, err)
	}
	return &rpc{p, send, receive, replyTo}
}

// call sends a request and returns the reply.
func (r *rpc) call(operation string, body any, properties map[string]any) *amqp.Message {
	r.p.t.Helper()
	m := &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "request 1", ReplyTo: &r.replyTo},
		ApplicationProperties: map[string]any{"operation": operation},
		Value:                 body,
	}
	maps.Copy(m.ApplicationProperties, properties)
	if err := r.send.Send(r.p.ctx(), m, nil); err != nil {
		r.p.t.Fatalf("%s: %v", operation, err)
	}
	reply, err := r.receive.Receive(r.p.ctx(), nil)
	if err != nil {
		r.p.t.Fatalf("%s: no reply: %v", operation, err)
	}
	return reply
}

// read asks about a hub or a partition, with the status wanted; it returns the body.
func (r *rpc) read(properties map[string]any, status int32) map[string]any {
	r.p.t.Helper()
	reply := r.call(names.Read, nil, properties)
	for _, key := range []string{"status-code", "statusCode"} {
		if got := reply.ApplicationProperties[key]; got != status {
			r.p.t.Fatalf("%v: %s is %T %v, want int32 %d (%v)", properties, key, got, got, status, reply.ApplicationProperties["statusDescription"])
		}
	}
	m, _ := reply.Value.(map[string]any)
	return m
}

// put puts a token for an audience.
func (r *rpc) put(rule access.Rule, audience string, expires time.Time) *amqp.Message {
	r.p.t.Helper()
	return r.call("put-token", access.SignToken(rule, audience, expires), map[string]any{
		"type": names.TokenSAS, "name": audience, "expiration": "0",
	})
}

// wantCondition checks that err is an AMQP error of the condition.
func wantCondition(t testing.TB, what string, err error, condition string) *amqp.Error {
	t.Helper()
	var e *amqp.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: %v, want the condition %s", what, err, condition)
	}
	if string(e.Condition) != condition {
		t.Fatalf("%s: %v, want the condition %s", what, e, condition)
	}
	return e
}
