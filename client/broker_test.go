// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// entities is what the tests of this package work on.
const entities = `
queues:
  - {name: orders}
  - {name: strict, maxDeliveryCount: 2}
  - {name: work}
  - {name: sessions, requiresSession: true}
  - {name: replies, requiresSession: true}
  - {name: unique, requiresDuplicateDetection: true}
hubs:
  - {name: visits, partitionCount: 1}
`

// deadline bounds a test, so that a hang is a failure with a name.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// queue is a sender and a receiver on one queue.
type queue struct {
	t    *testing.T
	ctx  context.Context
	name string
	*client.Sender
	*client.Receiver
}

func open(t *testing.T, c *client.Client, name string, o *client.ReceiverOptions) *queue {
	t.Helper()
	ctx := deadline(t)
	s, err := c.OpenSender(ctx, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.OpenReceiver(ctx, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return &queue{t, ctx, name, s, r}
}

func (q *queue) send(ms ...client.Message) {
	q.t.Helper()
	for _, m := range ms {
		if err := q.Send(q.ctx, &m); err != nil {
			q.t.Fatal(err)
		}
	}
}

// say sends messages with these bodies.
func (q *queue) say(bodies ...string) {
	q.t.Helper()
	for _, body := range bodies {
		q.send(client.Message{Body: []byte(body)})
	}
}

// take receives exactly n messages.
func (q *queue) take(n int) []*client.Received {
	q.t.Helper()
	return take(q.t, q.ctx, q.Receiver, n)
}

func take(t *testing.T, ctx context.Context, r *client.Receiver, n int) []*client.Received {
	t.Helper()
	var out []*client.Received
	for len(out) < n {
		ms, err := r.Receive(ctx, n-len(out))
		if err != nil {
			t.Fatalf("receive message %d of %d: %v", len(out)+1, n, err)
		}
		out = append(out, ms...)
	}
	return out
}

// none fails the test if a message comes within a short while.
func (q *queue) none() {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.ctx, 100*time.Millisecond)
	defer cancel()
	ms, err := q.Receive(ctx, 5)
	if !errors.Is(err, context.DeadlineExceeded) {
		q.t.Fatalf("receive from an empty queue: %q, %v, want %v", bodies(ms), err, context.DeadlineExceeded)
	}
}

func bodies(ms []*client.Received) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.Body)
	}
	return strings.Join(out, " ")
}

func wantBodies(t *testing.T, ms []*client.Received, want string) {
	t.Helper()
	if got := bodies(ms); got != want {
		t.Errorf("received %q, want %q", got, want)
	}
}

func wantError(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMessageComesAsSent(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	at := time.Now()
	q.send(client.Message{
		ID: "m1", Body: []byte("hello"), Priority: "high", Properties: map[string]any{"tenant": "contoso", "size": int64(3)},
		Subject: "greeting", CorrelationID: "c", ContentType: "text/plain", To: "you", ReplyTo: "back", ReplyToSession: "rs",
		Session: "s", PartitionKey: "s", TTL: time.Hour,
	})
	m := q.take(1)[0]
	got := fmt.Sprint(m.ID, string(m.Body), m.Priority, m.Properties, m.Subject, m.CorrelationID, m.ContentType, m.To,
		m.ReplyTo, m.ReplyToSession, m.Session, m.PartitionKey, m.TTL)
	want := fmt.Sprint("m1", "hello", "high", map[string]any{"Priority": "high", "tenant": "contoso", "size": int64(3)},
		"greeting", "c", "text/plain", "you", "back", "rs", "s", "s", time.Hour)
	if got != want {
		t.Errorf("received %s\nwant     %s", got, want)
	}
	if m.SeqNo != 1 || m.DeliveryCount != 0 || m.Enqueued.Before(at.Add(-time.Second)) || !m.LockedUntil.After(at) {
		t.Errorf("number %d, count %d, enqueued %v, locked until %v", m.SeqNo, m.DeliveryCount, m.Enqueued, m.LockedUntil)
	}
	must(t, q.Complete(q.ctx, m))
	q.none()
}

func TestHigherPriorityFirst(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	for i, p := range []client.Priority{client.Low, "", client.Level(250), client.High, client.Level(0), client.High} {
		q.send(client.Message{Body: fmt.Append(nil, i), Priority: p})
	}
	ms := q.take(6)
	wantBodies(t, ms, "2 3 5 1 0 4")
	must(t, q.Complete(q.ctx, ms...))
}

func TestReceiveTakesNoMoreThanAsked(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	q := open(t, c, "orders", nil)
	q.none() // a call that ends empty-handed leaves no credit behind
	q.say("a", "b", "c")
	other := open(t, c, "orders", nil)
	first := other.take(1)
	wantBodies(t, first, "a")
	wantBodies(t, q.take(2), "b c")
}

func TestReceiveAndDelete(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", &client.ReceiverOptions{Mode: client.ReceiveAndDelete})
	q.say("a", "b")
	ms := q.take(2)
	wantBodies(t, ms, "a b")
	wantError(t, "complete what is not locked", q.Complete(q.ctx, ms[0]), client.ErrLockLost)
	if left, err := q.Peek(q.ctx, 0, 1); err != nil || len(left) != 0 {
		t.Errorf("left in the queue: %q, %v, want nothing", bodies(left), err)
	}
}

func TestMessagesIterates(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	q.say("a", "b", "c")
	ctx, cancel := context.WithCancel(q.ctx)
	defer cancel()
	var got []*client.Received
	for m, err := range q.Messages(ctx) {
		must(t, err)
		must(t, q.Complete(q.ctx, m))
		if got = append(got, m); len(got) == 3 {
			cancel() // the sequence ends without an error
		}
	}
	wantBodies(t, got, "a b c")
}

func TestBatchIsSplitAndKeepsOrder(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	must(t, q.SendBatch(q.ctx, nil))
	var ms []*client.Message
	for i := range 100 {
		ms = append(ms, &client.Message{Body: fmt.Appendf(nil, "%03d%s", i, strings.Repeat(".", 10<<10))}) // 1 MB in all
	}
	must(t, q.SendBatch(q.ctx, ms))
	got := q.take(100)
	for i, m := range got {
		if want := fmt.Sprintf("%03d", i); string(m.Body[:3]) != want {
			t.Fatalf("message %d is %s", i, m.Body[:3])
		}
	}
	must(t, q.Complete(q.ctx, got...))
	q.none()
}

func TestDuplicateIsDropped(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "unique", nil)
	q.send(client.Message{ID: "1", Body: []byte("a")}, client.Message{ID: "1", Body: []byte("a")}, client.Message{ID: "2", Body: []byte("b")})
	ms := q.take(2)
	wantBodies(t, ms, "a b")
	must(t, q.Complete(q.ctx, ms...))
	q.none()
}
