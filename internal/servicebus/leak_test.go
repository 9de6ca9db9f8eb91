// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

const (
	leakSteps = 250 // of each client in a round
	leakPeers = 4
)

// 14: whatever ends a link, nothing of it is left. Clients attach, detach, end
// sessions and leave at random, while tokens expire, keys change and queues are
// deleted; after each round the broker is as it was before the first.
func TestNothingIsLeftOfLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		l := &leaks{bench: b, t: t, sleep: func(d time.Duration) { time.Sleep(d) }}
		for _, name := range leakQueues {
			l.define(t, l.queue(name))
		}
		synctest.Wait()
		before, _ := goroutines()
		for round := range leakRounds {
			var clients sync.WaitGroup
			for i := range leakPeers {
				clients.Go(func() {
					c := &leakClient{leaks: l, rnd: rand.New(rand.NewPCG(uint64(round), uint64(i)))}
					c.run()
				})
			}
			clients.Wait()
			l.check(round, before)
		}
		// Enough of them have to work for the test to mean anything.
		if tried, attached := l.tried.Load(), l.attached.Load(); attached < tried/4 {
			t.Errorf("%d of %d attaches worked, want a quarter at least", attached, tried)
		} else {
			t.Logf("%d of %d attaches worked", attached, tried)
		}
	})
}

// goroutines counts those of the test's bubble; the runtime has others of its own,
// which come and go.
func goroutines() (n int, stacks []byte) {
	stacks = make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return bytes.Count(stacks, []byte(", synctest bubble ")), stacks
}

var leakQueues = []string{"one", "two", "two/b"}

// leaks is what the clients share.
type leaks struct {
	*bench
	t     *testing.T
	sleep func(time.Duration) // in the bubble

	mu   sync.Mutex // held while a queue or a rule is changed
	keys int        // guarded by mu; keys made so far
	key  map[string]string

	tried, attached atomic.Int64 // links
}

// queue is a queue with a key of its own, which is another each time.
func (l *leaks) queue(name string) entity.Queue {
	if l.key == nil {
		l.key = map[string]string{}
	}
	l.keys++
	l.key[name] = fmt.Sprint("key ", l.keys)
	return entity.Queue{Name: name, RequiresSession: false,
		AuthorizationRules: entity.AuthorizationRules{ownRule("own", l.key[name], entity.Manage)}}
}

// shuffle changes the key of a queue, or deletes it and creates it anew, or takes the
// keys of the namespace away for a moment.
func (l *leaks) shuffle(rnd *rand.Rand) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := leakQueues[rnd.IntN(len(leakQueues))]
	switch rnd.IntN(3) {
	case 0:
		l.keeper.Set(access.Rules{sendRule})
		l.service.Review()
		l.keeper.Set(access.Rules{rootRule, sendRule, listenRule})
	case 1:
		if err := l.broker.DeleteQueue(l.t.Context(), name); err != nil {
			l.t.Error(err)
		}
		fallthrough
	default:
		l.define(l.t, l.queue(name))
	}
}

// check reports what is left when every client is gone.
func (l *leaks) check(round, before int) {
	t := l.t
	t.Helper()
	l.sleep(5 * time.Minute) // locks of messages run out
	synctest.Wait()
	if now, stacks := goroutines(); now > before {
		t.Fatalf("round %d: %d goroutines, there were %d before:\n%s", round, now, before, stacks)
	}
	for _, name := range append(leakQueues, "q", "sessions", "q/$deadletterqueue", "t/subscriptions/s") {
		rt, err := l.broker.Runtime(t.Context(), name)
		if err != nil || rt.Receivers != 0 || rt.Locked != 0 {
			t.Errorf("round %d: %s has %d receivers and %d locked messages (%v), want none", round, name, rt.Receivers, rt.Locked, err)
		}
	}
	for _, id := range leakSessions {
		r, err := l.broker.OpenReceiver(t.Context(), "sessions", broker.ReceiverOptions{Session: &id, Sink: noSink{}})
		if err != nil {
			t.Errorf("round %d: session %s: %v", round, id, err)
			continue
		}
		r.Close()
	}
	if held := l.service.Held(); held != (azure.Held{}) {
		t.Errorf("round %d: the service still has %+v", round, held)
	}
	if u := l.memory.Usage(); u.Used != 0 || u.Waiting != 0 {
		t.Errorf("round %d: memory is charged: %+v", round, u)
	}
	synctest.Wait()
}

var leakSessions = []string{"a", "b", "c"}

// leakClient does things at random on a connection, and on another when that ends.
type leakClient struct {
	*leaks
	rnd      *rand.Rand
	conn     *amqp.Conn
	pipe     net.Conn
	served   sync.WaitGroup
	cbs      *rpc
	sessions []*amqp.Session
	links    []interface{ Close(context.Context) error }
	linkSeq  int
}

func (c *leakClient) run() {
	for range leakSteps {
		if c.conn == nil && !c.connect() {
			continue
		}
		c.step()
	}
	c.leave()
}

// ctx bounds a step.
func (c *leakClient) ctx() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.t.Context(), 5*time.Second)
}

func (c *leakClient) connect() bool {
	ours, theirs := net.Pipe()
	c.served.Go(func() {
		_ = c.service.Serve(c.t.Context(), endpoint.NewConn(ours, endpoint.Config{}), azure.Peer{Authority: c.keeper})
	})
	o := &amqp.ConnOptions{HostName: "ns.example", SASLType: amqp.SASLTypeAnonymous()}
	if c.rnd.IntN(2) == 0 {
		o.SASLType = amqp.SASLTypePlain(rootRule.Name, rootRule.PrimaryKey)
	}
	ctx, cancel := c.ctx()
	defer cancel()
	conn, err := amqp.NewConn(ctx, theirs, o)
	if err != nil {
		theirs.Close()
		c.served.Wait()
		return false
	}
	c.conn, c.pipe = conn, theirs
	return true
}

// leave ends the connection, politely or not.
func (c *leakClient) leave() {
	if c.conn == nil {
		return
	}
	if c.rnd.IntN(2) == 0 {
		c.pipe.Close()
	}
	c.conn.Close()
	c.served.Wait()
	c.conn, c.cbs, c.sessions, c.links = nil, nil, nil, nil
}

// step does one thing. Whether it works is not the question here.
func (c *leakClient) step() {
	ctx, cancel := c.ctx()
	defer cancel()
	s := c.session(ctx)
	if s == nil {
		c.leave()
		return
	}
	switch n := c.rnd.IntN(20); n {
	case 0:
		c.leave()
	case 1, 2:
		c.shuffle(c.rnd)
	case 3, 4:
		c.sleep(time.Duration(c.rnd.IntN(20)) * time.Second) // tokens and waits end
	case 5, 6, 7:
		c.put(ctx, s)
	case 8, 9:
		c.drop(func(i int) { _ = c.links[i].Close(ctx) })
	case 10:
		i := c.rnd.IntN(len(c.sessions))
		_ = c.sessions[i].Close(ctx)
		c.sessions = append(c.sessions[:i], c.sessions[i+1:]...)
	default:
		c.attach(ctx, s)
	}
}

func (c *leakClient) session(ctx context.Context) *amqp.Session {
	if n := len(c.sessions); n > 0 && c.rnd.IntN(4) > 0 {
		return c.sessions[c.rnd.IntN(n)]
	}
	s, err := c.conn.NewSession(ctx, nil)
	if err != nil {
		return nil
	}
	c.sessions = append(c.sessions, s)
	return s
}

func (c *leakClient) drop(fn func(i int)) {
	if n := len(c.links); n > 0 {
		i := c.rnd.IntN(n)
		fn(i)
		c.links = append(c.links[:i], c.links[i+1:]...)
	}
}

// put puts a token that soon ends, for one of the queues, by its own key or one of
// the namespace, and does not wait for the answer.
func (c *leakClient) put(ctx context.Context, s *amqp.Session) {
	send, err := s.NewSender(ctx, "$cbs", nil)
	if err != nil {
		return
	}
	defer send.Close(ctx)
	audience := append(leakQueues, "q", "sessions", "t/subscriptions/s")[c.rnd.IntN(len(leakQueues)+3)]
	rule := []access.Rule{rootRule, sendRule, listenRule}[c.rnd.IntN(3)]
	c.mu.Lock()
	if key, ok := c.key[audience]; ok && c.rnd.IntN(2) == 0 {
		rule = ownKey("own", key)
	}
	c.mu.Unlock()
	url := "sb://ns.example/" + audience
	life := time.Duration(c.rnd.IntN(30)-2) * time.Second
	_ = send.Send(ctx, &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "1"},
		ApplicationProperties: map[string]any{"operation": "put-token", "type": tokenSAS, "name": url},
		Value:                 access.SignToken(rule, url, time.Now().Add(life)),
	}, nil)
}

// attach attaches a link of any kind, and uses it.
func (c *leakClient) attach(ctx context.Context, s *amqp.Session) {
	c.linkSeq++
	name := fmt.Sprint("link ", c.rnd.IntN(c.linkSeq)) // names come again, and are stolen
	queue := append(leakQueues, "q")[c.rnd.IntN(len(leakQueues)+1)]
	o := &amqp.ReceiverOptions{Name: name, Credit: int32(c.rnd.IntN(20) + 1), SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()}
	switch c.rnd.IntN(12) {
	case 0, 1, 2:
		c.send(ctx, s, queue, name)
	case 3:
		c.send(ctx, s, "", name)
	case 4:
		c.send(ctx, s, "sessions", name)
	case 5:
		o.RequestedSenderSettleMode = amqp.SenderSettleModeSettled.Ptr()
		c.receive(ctx, s, queue, o)
	case 6:
		var id any
		if c.rnd.IntN(2) == 0 {
			id = leakSessions[c.rnd.IntN(len(leakSessions))]
		}
		o.Filters = []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, id)}
		o.Properties = map[string]any{propTimeout: uint32(c.rnd.IntN(8000) + 1)}
		c.receive(ctx, s, "sessions", o)
	case 7:
		o.Properties = map[string]any{names.Sources: []any{"two", "one", "q"}}
		c.receive(ctx, s, "two", o)
	case 8:
		o.DynamicAddress = true
		c.receive(ctx, s, "", o)
	case 9:
		o.Properties = map[string]any{names.Recall: true}
		c.receive(ctx, s, queue, o)
		c.receive(ctx, s, queue+recallSuffix, &amqp.ReceiverOptions{Properties: map[string]any{names.Link: name}})
	case 10:
		c.receive(ctx, s, queue+"/$management", &amqp.ReceiverOptions{Credit: -1})
		c.request(ctx, s, queue+"/$management")
	default:
		c.receive(ctx, s, queue, o)
	}
}

func (c *leakClient) send(ctx context.Context, s *amqp.Session, addr, name string) {
	c.tried.Add(1)
	l, err := s.NewSender(ctx, addr, &amqp.SenderOptions{Name: name})
	if err != nil {
		return
	}
	c.attached.Add(1)
	c.links = append(c.links, l)
	m := &amqp.Message{Value: "x", Properties: &amqp.MessageProperties{}}
	if to := "q"; addr == "" {
		m.Properties.To = &to
	}
	if addr == "sessions" {
		m.Properties.GroupID = &leakSessions[c.rnd.IntN(len(leakSessions))]
	}
	for range c.rnd.IntN(4) {
		_ = l.Send(ctx, m, nil)
	}
}

func (c *leakClient) receive(ctx context.Context, s *amqp.Session, addr string, o *amqp.ReceiverOptions) {
	c.tried.Add(1)
	l, err := s.NewReceiver(ctx, addr, o)
	if err != nil {
		return
	}
	c.attached.Add(1)
	c.links = append(c.links, l)
	if m := l.Prefetched(); m != nil && c.rnd.IntN(2) == 0 {
		_ = l.AcceptMessage(ctx, m)
	}
}

func (c *leakClient) request(ctx context.Context, s *amqp.Session, addr string) {
	l, err := s.NewSender(ctx, addr, nil)
	if err != nil {
		return
	}
	c.links = append(c.links, l)
	_ = l.Send(ctx, &amqp.Message{
		Properties:            &amqp.MessageProperties{MessageID: "1"},
		ApplicationProperties: map[string]any{"operation": "com.microsoft:peek-message"},
		Value:                 map[string]any{"from-sequence-number": int64(0), "message-count": int32(1)},
	}, nil)
}

// noSink is a Sink that is given nothing.
type noSink struct{}

func (noSink) Deliver(ds []broker.Delivery) { broker.Return(ds) }
func (noSink) Drained()                     {}
func (noSink) Ended(error)                  {}

// 14: links that end with their token are gone while their connection is still
// there: they hold no session, take no message and have no goroutine.
func TestNothingIsLeftOfLinksThatExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t)
		b.define(t, entity.Queue{Name: "two"})
		p := b.anonymous(t, b.keeper)
		cbs := p.rpc("$cbs")
		checkStatus(t, "put", cbs.put(rootRule, "sb://ns.example/", time.Now().Add(30*time.Second)), 202)
		s := p.session()
		synctest.Wait()
		before, _ := goroutines()
		forGood := &amqp.ReceiverOptions{Credit: 10, RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr()}
		set := peekLock()
		set.Properties = map[string]any{names.Sources: []any{"q", "two"}}
		var links []*amqp.Receiver
		for addr, o := range map[string]*amqp.ReceiverOptions{
			"two": forGood, "q": set, "sessions": inSession("a", 0), "t/subscriptions/s": peekLock(), "": {DynamicAddress: true},
		} {
			r, err := s.NewReceiver(p.ctx(), addr, o)
			if err != nil {
				t.Fatalf("attach to %q: %v", addr, err)
			}
			links = append(links, r)
		}
		time.Sleep(31 * time.Second)
		for _, r := range links {
			_, err := r.Receive(p.ctx(), nil)
			wantCondition(t, r.Address(), err, "amqp:unauthorized-access")
		}
		synctest.Wait()
		if now, stacks := goroutines(); now > before {
			t.Errorf("%d goroutines, there were %d before the links:\n%s", now, before, stacks)
		}
		if cs, _ := b.service.Connections(t.Context(), 0, 10); len(cs) != 1 || len(cs[0].Links) != 2 {
			t.Errorf("connections %+v, want one with its two links to $cbs", cs)
		}
		if n := b.service.Held().DynamicNodes; n != 0 {
			t.Errorf("%d temporary nodes are left", n)
		}
		root := b.login(t, rootRule)
		root.send("two", &amqp.Message{Value: "x"})
		for _, name := range []string{"q", "two", "sessions", "t/subscriptions/s"} {
			if rt, err := b.broker.Runtime(t.Context(), name); err != nil || rt.Receivers != 0 {
				t.Errorf("%s has %d receivers (%v), want none", name, rt.Receivers, err)
			}
		}
		if rt, _ := b.broker.Runtime(t.Context(), "two"); rt.Active != 1 {
			t.Errorf("two holds %d messages, want the one that was sent", rt.Active)
		}
		root.receiver("sessions", inSession("a", 0)) // free

		// The connection is an unauthenticated peer again, and is not waited for.
		time.Sleep(authTimeout)
		if err := <-p.served; err == nil {
			t.Error("the connection ended without a reason")
		}
	})
}

// 14: a peer that does not read the answers to its requests loses the link for them,
// and can attach another. Nothing of the first is left.
func TestFullReplyLinkCanBeReplaced(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.session()
	send, err := s.NewSender(p.ctx(), "q/$management", nil)
	if err != nil {
		t.Fatal(err)
	}
	unread, err := s.NewReceiver(p.ctx(), "q/$management", &amqp.ReceiverOptions{Credit: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range limits.Replies + 1 {
		err := send.Send(p.ctx(), &amqp.Message{
			Properties:            &amqp.MessageProperties{MessageID: "1"},
			ApplicationProperties: map[string]any{"operation": "com.microsoft:unknown"},
			Value:                 map[string]any{"x": int32(1)},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = unread.Receive(p.ctx(), nil)
	wantCondition(t, "the link that was not read", err, "amqp:resource-limit-exceeded")
	if err := send.Close(p.ctx()); err != nil {
		t.Fatal(err)
	}
	p.rpc("q/$management").manage("peek-message", map[string]any{"from-sequence-number": int64(0), "message-count": int32(1)}, 204)
	if cs, _ := b.service.Connections(t.Context(), 0, 10); len(cs) != 1 || len(cs[0].Links) != 2 {
		t.Errorf("connections %+v, want one with the two links of the second pair", cs)
	}
}
