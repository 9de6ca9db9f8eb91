// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"net"
	"testing"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/queue"
)

// What the broker delivered to a connection that ended before it was sent goes
// back uncounted: nobody has seen it.
func TestUnsentDeliveriesGoBack(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	for range 3 {
		p.send("q", &amqp.Message{Value: "x"})
	}

	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	_, first, finish := b.service.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	c := first.(*links)
	r := &receiver{c: c, link: new(endpoint.Link), path: "q"}
	from, err := b.broker.OpenReceiver(t.Context(), "q", broker.ReceiverOptions{Sink: r})
	if err != nil {
		t.Fatal(err)
	}
	r.from.Store(new(brokerReceiver(from)))
	from.SetDeliveryLimit(3)
	locked := func() (broker.Runtime, error) {
		// The first question may be answered in the step that delivers or
		// takes back, the second one comes after it.
		if rt, err := b.broker.Runtime(t.Context(), "q"); err != nil {
			return rt, err
		}
		return b.broker.Runtime(t.Context(), "q")
	}
	rt, err := locked()
	if err != nil || rt.Locked != 3 {
		t.Fatalf("%d locked, %v, want 3", rt.Locked, err)
	}
	finish()
	from.Close()
	if rt, err = locked(); err != nil || rt.Locked != 0 || rt.Active != 3 {
		t.Fatalf("%d active and %d locked, %v, want 3 and 0", rt.Active, rt.Locked, err)
	}
	if m := p.next(p.receiver("q", peekLock())); m.Header.DeliveryCount != 0 {
		t.Errorf("delivery count %d, want 0", m.Header.DeliveryCount)
	}
}

// The broker delivers a hundred messages with one
// call, of which the peer reads one after the other. Those that were encoded must not
// stay in memory until the last of them is.
func TestEncodedDeliveriesHoldNoBodies(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	for range 3 {
		p.send("q", &amqp.Message{Value: "x"})
	}
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	_, first, finish := b.service.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	c := first.(*links)
	ds, err := b.broker.Peek(t.Context(), "q", 0, 3, nil)
	if err != nil || len(ds) != 3 {
		t.Fatalf("%d messages, %v, want 3", len(ds), err)
	}
	w := work{to: &receiver{c: c, path: "q"}, deliveries: ds}
	if out := c.loader.encode(&w); len(out.messages) != 3 {
		t.Fatalf("%d messages were encoded, want 3", len(out.messages))
	}
	for i := range ds {
		if ds[i].Loaded() {
			t.Errorf("message %d is still in memory", i)
		}
	}
	finish()
}

func TestLockTableReusesPlaces(t *testing.T) {
	var table lockTable
	for i := range 100 {
		a, b := table.put(tokenOf(i)), table.put(tokenOf(i+1000))
		if got := table.take(a); got != tokenOf(i) {
			t.Fatalf("took %v, want %v", got, tokenOf(i))
		}
		if got := table.take(b); got != tokenOf(i+1000) {
			t.Fatalf("took %v, want %v", got, tokenOf(i+1000))
		}
	}
	if len(table.tokens) != 2 {
		t.Errorf("the table has grown to %d places for 2 deliveries", len(table.tokens))
	}
}

func tokenOf(n int) queue.Token { return queue.Token{Seq: queue.SeqNo(n), Nonce: uint64(n)} }
