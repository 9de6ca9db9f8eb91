// SPDX-License-Identifier: Apache-2.0

package servicebus

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
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
)

var (
	rootRule   = access.Rule{Name: access.RootRule, Rights: access.All, PrimaryKey: "root key"}
	sendRule   = access.Rule{Name: "sender", Rights: access.Send, PrimaryKey: "send key"}
	listenRule = access.Rule{Name: "listener", Rights: access.Listen, PrimaryKey: "listen key"}
)

// Of package azure.
const (
	tokenSAS    = "servicebus.windows.net:sastoken"
	tokenJWT    = "jwt"
	authTimeout = 20 * time.Second
)

// bench is a broker in memory with the personality on top.
type bench struct {
	broker  *broker.Broker
	service *azure.Service
	opened  *opened
	memory  *budget.Process
	keeper  *access.RuleAuthority
}

// opened is the personality, and what connections have of it.
type opened struct {
	*Personality
	mu  sync.Mutex
	all []*links // guarded by mu
}

func (o *opened) Open(c *azure.Conn) azure.Links {
	o.mu.Lock()
	defer o.mu.Unlock()
	ls := o.Personality.Open(c)
	o.all = append(o.all, ls.(*links))
	return ls
}

// last returns what the connection has that used the personality last.
func (o *opened) last() *links {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[len(o.all)-1]
}

// start runs a broker with the queues q and sessions, and the topic t with the
// subscription s, until the test ends.
func start(t *testing.T) *bench {
	t.Helper()
	b, ctx := brokertest.Start(t), t.Context()
	for _, q := range []entity.Queue{{Name: "q"}, {Name: "sessions", RequiresSession: true}, {Name: "off", Status: entity.Disabled}} {
		if _, err := b.CreateQueue(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.CreateTopic(ctx, entity.Topic{Name: "t"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateSubscription(ctx, "t", entity.Subscription{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	return serving(b)
}

// serving puts the personality on top of a broker.
func serving(b *broker.Broker) *bench {
	return servingWith(b, budget.Unlimited(), slog.New(slog.DiscardHandler))
}

func servingWith(b *broker.Broker, memory *budget.Process, log *slog.Logger) *bench {
	o := &opened{Personality: New(b)}
	return &bench{
		broker:  b,
		service: azure.New(b, memory, log, o),
		opened:  o,
		memory:  memory,
		keeper:  access.NewRuleAuthority(access.Rules{rootRule, sendRule, listenRule}, rulesOf(b)),
	}
}

// rulesOf looks up the access rules of entities, as the server does.
func rulesOf(b *broker.Broker) access.Entities {
	return func(name string) (access.Entity, bool) {
		id, rules, ok := b.Authorization(name)
		return access.Entity{ID: id, Rules: access.OfEntity(rules)}, ok
	}
}

// peerOf is a client's end of a connection, speaking through go-amqp.
type peerOf struct {
	*amqp.Conn
	t      *testing.T
	served chan error
}

// dial connects a client that authority judges.
func (b *bench) dial(t *testing.T, authority access.Authority, o *amqp.ConnOptions) (*peerOf, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		served <- b.service.Serve(ctx, endpoint.NewConn(ours, endpoint.Config{}), azure.Peer{Authority: authority})
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	conn, err := amqp.NewConn(t.Context(), theirs, o)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return &peerOf{conn, t, served}, nil
}

// login connects a client that proved itself with PLAIN.
func (b *bench) login(t *testing.T, rule access.Rule) *peerOf {
	t.Helper()
	p, err := b.dial(t, b.keeper, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(rule.Name, rule.PrimaryKey)})
	if err != nil {
		t.Fatalf("connect as %s: %v", rule.Name, err)
	}
	return p
}

// anonymous connects a client that proved nothing.
func (b *bench) anonymous(t *testing.T, authority access.Authority) *peerOf {
	t.Helper()
	p, err := b.dial(t, authority, &amqp.ConnOptions{HostName: "ns.example:5671", SASLType: amqp.SASLTypeAnonymous()})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	return p
}

func (p *peerOf) session() *amqp.Session {
	p.t.Helper()
	s, err := p.NewSession(p.ctx(), nil)
	if err != nil {
		p.t.Fatalf("begin: %v", err)
	}
	return s
}

// ctx bounds a step that should take no time at all.
func (p *peerOf) ctx() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *peerOf) sender(addr string) *amqp.Sender {
	p.t.Helper()
	s, err := p.session().NewSender(p.ctx(), addr, nil)
	if err != nil {
		p.t.Fatalf("attach a sender to %s: %v", addr, err)
	}
	return s
}

func (p *peerOf) send(addr string, ms ...*amqp.Message) {
	p.t.Helper()
	s := p.sender(addr)
	for _, m := range ms {
		if err := s.Send(p.ctx(), m, nil); err != nil {
			p.t.Fatalf("send to %s: %v", addr, err)
		}
	}
}

// peekLock is how SDKs attach a receiver that settles.
func peekLock() *amqp.ReceiverOptions {
	return &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr(), Credit: -1}
}

func (p *peerOf) receiver(addr string, o *amqp.ReceiverOptions) *amqp.Receiver {
	p.t.Helper()
	r, err := p.session().NewReceiver(p.ctx(), addr, o)
	if err != nil {
		p.t.Fatalf("attach a receiver to %s: %v", addr, err)
	}
	return r
}

// next receives a message, giving the credit for it.
func (p *peerOf) next(r *amqp.Receiver) *amqp.Message {
	p.t.Helper()
	if err := r.IssueCredit(1); err != nil {
		p.t.Fatalf("issue credit: %v", err)
	}
	m, err := r.Receive(p.ctx(), nil)
	if err != nil {
		p.t.Fatalf("receive: %v", err)
	}
	return m
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
	if reply.Properties == nil || reply.Properties.CorrelationID != "request 1" {
		r.p.t.Fatalf("%s: reply is not correlated: %+v", operation, reply.Properties)
	}
	return reply
}

// manage is call for $management, with the status wanted; it returns the body.
func (r *rpc) manage(operation string, body map[string]any, status int32) map[string]any {
	r.p.t.Helper()
	reply := r.call("com.microsoft:"+operation, body, nil)
	checkStatus(r.p.t, operation, reply, status)
	m, ok := reply.Value.(map[string]any)
	if !ok {
		r.p.t.Fatalf("%s: body is %T, want a map with string keys", operation, reply.Value)
	}
	return m
}

// checkStatus checks the status of a reply in both spellings and its exact type.
func checkStatus(t *testing.T, what string, reply *amqp.Message, want int32) {
	t.Helper()
	for _, key := range []string{"status-code", "statusCode"} {
		if got := reply.ApplicationProperties[key]; got != want {
			t.Fatalf("%s: %s is %T %v, want int32 %d (%v)", what, key, got, got, want, reply.ApplicationProperties["statusDescription"])
		}
	}
}

// put puts a token for an audience.
func (r *rpc) put(rule access.Rule, audience string, expires time.Time) *amqp.Message {
	r.p.t.Helper()
	return r.call("put-token", access.SignToken(rule, audience, expires), map[string]any{
		"type": tokenSAS, "name": audience, "expiration": "0",
	})
}

// wantCondition checks that err is an AMQP error of the condition.
func wantCondition(t *testing.T, what string, err error, condition string) *amqp.Error {
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
