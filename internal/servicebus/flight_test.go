// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/entity"
)

// gatedConn is a connection whose peer reads only while the gate is open.
type gatedConn struct {
	net.Conn
	gate atomic.Pointer[chan struct{}] // closed when it is open
	read atomic.Int64
}

func (c *gatedConn) Read(b []byte) (int, error) {
	<-*c.gate.Load()
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func (c *gatedConn) shut() func() {
	gate := make(chan struct{})
	c.gate.Store(&gate)
	return sync.OnceFunc(func() { close(gate) })
}

// dialGated connects a client as root whose reading can be stopped.
func (b *bench) dialGated(t *testing.T) (*peerOf, *gatedConn) {
	t.Helper()
	ours, theirs := net.Pipe()
	g := &gatedConn{Conn: theirs}
	g.shut()() // open
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		served <- b.service.Serve(ctx, endpoint.NewConn(ours, endpoint.Config{WriteTimeout: time.Minute}), azure.Peer{Authority: b.keeper})
	})
	t.Cleanup(func() {
		cancel()
		theirs.Close()
		wg.Wait()
	})
	conn, err := amqp.NewConn(t.Context(), g, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain(rootRule.Name, rootRule.PrimaryKey)})
	if err != nil {
		t.Fatal(err)
	}
	return &peerOf{conn, t, served}, g
}

// settles waits until a number has not changed for a while, and returns the largest it
// was.
func settles(n func() int64) (most int64) {
	last, same := int64(-1), 0
	for same < 100 {
		<-time.After(2 * time.Millisecond)
		now := n()
		most = max(most, now)
		if same++; now != last {
			last, same = now, 0
		}
	}
	return most
}

// Receivers with much prefetch on one connection
// whose peer does not keep up. What is on its way is bounded for the connection,
// nobody is cut off, and everything arrives.
func TestPrefetchIsBoundedInBytes(t *testing.T) {
	const receivers, messages, size = 12, 200, 250_000
	for _, mode := range []amqp.ReceiverSettleMode{amqp.ReceiverSettleModeSecond, amqp.ReceiverSettleModeFirst} {
		b := start(t)
		p, gate := b.dialGated(t)
		o := &amqp.ReceiverOptions{SettlementMode: mode.Ptr(), Credit: 200}
		if mode == amqp.ReceiverSettleModeFirst {
			o.RequestedSenderSettleMode = amqp.SenderSettleModeSettled.Ptr()
		}
		var rs []*amqp.Receiver
		for range receivers {
			rs = append(rs, p.receiver("t/Subscriptions/s", o))
		}
		// They all have credit and nothing to read; then it comes all at once.
		open := gate.shut()
		topic := b.login(t, rootRule)
		out := topic.sender("t")
		for range messages {
			if err := out.Send(topic.ctx(), amqp.NewMessage(make([]byte, size)), nil); err != nil {
				t.Fatal(err)
			}
		}
		most := settles(func() int64 { return b.memory.Usage().Known })
		t.Logf("at most %d KB", most>>10)
		if most > 36<<20 {
			t.Errorf("a connection that reads nothing makes us hold %d MB", most>>20)
		}
		open()
		got := make(chan error, messages)
		for _, r := range rs {
			go func() { // ends with the connection
				for {
					m, err := r.Receive(t.Context(), nil)
					if err == nil && mode == amqp.ReceiverSettleModeSecond {
						err = r.AcceptMessage(t.Context(), m)
					}
					got <- err
					if err != nil {
						return
					}
				}
			}()
		}
		for i := range messages {
			if err := <-got; err != nil {
				t.Fatalf("message %d of %d: %v", i, messages, err)
			}
		}
		p.Close()
		topic.Close()
		<-p.served
		<-topic.served
		if used := settles(func() int64 { return b.memory.Usage().Used }); b.memory.Usage().Used != 0 {
			t.Errorf("all have left, and %d bytes are charged (at most %d)", b.memory.Usage().Used, used)
		}
	}
}

// Many connections of one key that read nothing: each gets a message, as long as the key
// has memory for it. The rest wait, and get theirs when there is space.
func TestKeyWithManySlowConnectionsIsBounded(t *testing.T) {
	const connections, size, limit = 100, 900_000, 64 << 20 // a key has half of it
	b := start(t).limited(limit)
	if _, err := b.broker.CreateQueue(t.Context(), entity.Queue{Name: "large", MaxMessageSizeInKilobytes: 1024}); err != nil {
		t.Fatal(err)
	}
	sender := b.login(t, rootRule)
	out := sender.sender("large")
	for range connections {
		if err := out.Send(sender.ctx(), amqp.NewMessage(make([]byte, size)), nil); err != nil {
			t.Fatal(err)
		}
	}
	var rs []*amqp.Receiver
	var opens []func()
	for range connections {
		p, gate := b.dialGated(t)
		rs = append(rs, p.receiver("large", peekLock()))
		opens = append(opens, gate.shut())
	}
	for _, r := range rs {
		if err := r.IssueCredit(1); err != nil {
			t.Fatal(err)
		}
	}
	most := settles(func() int64 { return b.memory.Usage().Known })
	t.Logf("at most %d KB", most>>10)
	if most > limit*3/4 { // an eighth of it beyond, and buffers that have space to spare
		t.Errorf("connections that read nothing make us hold %d MB, where their key may have %d", most>>20, limit/2>>20)
	}
	for _, open := range opens {
		open()
	}
	for i, r := range rs {
		m, err := r.Receive(sender.ctx(), nil)
		if err != nil {
			t.Fatalf("connection %d of %d: %v", i, connections, err)
		}
		if err := r.AcceptMessage(sender.ctx(), m); err != nil {
			t.Fatal(err)
		}
	}
}

// The same with much prefetch: what a connection has no memory for goes back, and every
// message arrives once, at any of the receivers.
func TestKeyWithMuchPrefetchGetsEverythingOnce(t *testing.T) {
	const connections, messages, size, limit = 20, 200, 200_000, 32 << 20
	for _, mode := range []amqp.ReceiverSettleMode{amqp.ReceiverSettleModeSecond, amqp.ReceiverSettleModeFirst} {
		b := start(t).limited(limit)
		sender := b.login(t, rootRule)
		out := sender.sender("q")
		for i := range messages {
			m := amqp.NewMessage(make([]byte, size))
			m.Properties = &amqp.MessageProperties{MessageID: uint64(i)}
			if err := out.Send(sender.ctx(), m, nil); err != nil {
				t.Fatal(err)
			}
		}
		o := &amqp.ReceiverOptions{SettlementMode: mode.Ptr(), Credit: -1}
		if mode == amqp.ReceiverSettleModeFirst {
			o.RequestedSenderSettleMode = amqp.SenderSettleModeSettled.Ptr()
		}
		var rs []*amqp.Receiver
		var opens []func()
		for range connections {
			p, gate := b.dialGated(t)
			rs = append(rs, p.receiver("q", o))
			opens = append(opens, gate.shut())
		}
		for _, r := range rs {
			if err := r.IssueCredit(messages); err != nil {
				t.Fatal(err)
			}
		}
		most := settles(func() int64 { return b.memory.Usage().Known })
		t.Logf("at most %d KB", most>>10)
		if mode == amqp.ReceiverSettleModeSecond && most > limit {
			t.Errorf("%d MB are held, where the key may have %d", most>>20, limit/2>>20)
		}
		got := make(chan any, messages)
		for i, r := range rs {
			opens[i]()
			go func() { // ends with the connection
				for {
					m, err := r.Receive(t.Context(), nil)
					if err == nil && mode == amqp.ReceiverSettleModeSecond {
						err = r.AcceptMessage(t.Context(), m)
					}
					if err != nil {
						return
					}
					got <- m.Properties.MessageID
				}
			}()
		}
		seen := map[any]bool{}
		for range messages {
			select {
			case id := <-got:
				if seen[id] {
					t.Fatalf("message %v came twice", id)
				}
				seen[id] = true
			case <-sender.ctx().Done():
				t.Fatalf("%d of %d have come", len(seen), messages)
			}
		}
	}
}
