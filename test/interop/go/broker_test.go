// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/triagemq/triagemq/test/interop/go/running"
)

// entities is what every broker of this suite starts with. Tests do not share
// queues, so that they can run side by side.
const entities = `
security:
  rules:
    - {name: SendOnly, rights: [Send], primaryKey: c2VuZC1vbmx5LWtleQ==}
    - {name: ListenOnly, rights: [Listen], primaryKey: bGlzdGVuLW9ubHkta2V5, secondaryKey: bGlzdGVuLXNwYXJlLWtleQ==}
queues:
  - {name: modes}
  - {name: deleting}
  - {name: batches}
  - {name: draining}
  - {name: renewing, lockDuration: 5s}
  - {name: abandoning, maxDeliveryCount: 3}
  - {name: abandoning-much, maxDeliveryCount: 3}
  - {name: deferring}
  - {name: deferring-counts}
  - {name: long-lived}
  - {name: deferring-once, maxDeliveryCount: 1}
  - {name: deferred-expiring, deadLetteringOnMessageExpiration: true}
  - {name: deferred-dropped}
  - {name: short-lived, defaultMessageTimeToLive: 1h}
  - {name: forward-first, forwardTo: forward-middle}
  - {name: forward-middle, forwardTo: forward-last}
  - {name: forward-last}
  - {name: dead-letters-plain}
  - {name: large-properties}
  - {name: dead-letters}
  - {name: peeking}
  - {name: scheduling}
  - {name: sessions, requiresSession: true}
  - {name: next-session, requiresSession: true}
  - {name: contended, requiresSession: true}
  - {name: session-list, requiresSession: true}
  - {name: session-rules, requiresSession: true}
  - {name: duplicates, requiresDuplicateDetection: true, duplicateDetectionHistoryTimeWindow: 1m}
  - {name: forward-source, forwardTo: forward-target}
  - {name: forward-target}
  - {name: oversize}
  - {name: lock-lost, lockDuration: 5s}
  - {name: settled-elsewhere}
  - {name: secured}
  - {name: rights}
  - {name: bearer}
  - {name: websocket}
  - {name: tls}
  - {name: priorities}
  - {name: header-priorities}
  - {name: urgent-late}
  - {name: asking}
  - {name: answers}
  - {name: lifted, requiresSession: true}
  - {name: roundtrip}
  - {name: bodies}
  - {name: resend}
  - {name: competing}
  - {name: expiring, deadLetteringOnMessageExpiration: true}
  - {name: restart}
  - {name: load}
  - {name: site/nested}
`

// shared is the broker that most tests use. It is set by TestMain.
var shared *running.Broker

func TestMain(m *testing.M) {
	running.Main(m, entities, func(b *running.Broker) { shared = b })
}

// connect makes a client that fails fast instead of retrying for minutes.
func connect(t *testing.T, connection string) *azservicebus.Client {
	t.Helper()
	return connectWith(t, connection, &azservicebus.ClientOptions{
		RetryOptions: azservicebus.RetryOptions{MaxRetries: -1},
	})
}

func connectWith(t *testing.T, connection string, o *azservicebus.ClientOptions) *azservicebus.Client {
	t.Helper()
	c, err := azservicebus.NewClientFromConnectionString(connection, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// deadline bounds a test, so that a hang is a failure with a name.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// queue is a sender and a receiver on one queue.
type queue struct {
	t    *testing.T
	ctx  context.Context
	name string
	*azservicebus.Client
	*azservicebus.Sender
	*azservicebus.Receiver
}

// open connects to a queue of the shared broker in peek-lock mode.
func open(t *testing.T, name string) *queue {
	t.Helper()
	return openOn(t, connect(t, shared.Connection()), name)
}

func openOn(t *testing.T, c *azservicebus.Client, name string) *queue {
	t.Helper()
	s, err := c.NewSender(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.NewReceiverForQueue(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &queue{t: t, ctx: deadline(t), name: name, Client: c, Sender: s, Receiver: r}
}

// send sends messages with these bodies, one by one.
func (q *queue) send(bodies ...string) {
	q.t.Helper()
	for _, body := range bodies {
		q.sendMessage(&azservicebus.Message{Body: []byte(body)})
	}
}

func (q *queue) sendMessage(m *azservicebus.Message) {
	q.t.Helper()
	if err := q.SendMessage(q.ctx, m, nil); err != nil {
		q.t.Fatalf("send to %s: %v", q.name, err)
	}
}

// receive takes exactly n messages.
func (q *queue) receive(n int) []*azservicebus.ReceivedMessage {
	q.t.Helper()
	return take(q.t, q.ctx, q.Receiver, n)
}

// one takes exactly one message.
func (q *queue) one() *azservicebus.ReceivedMessage {
	q.t.Helper()
	return q.receive(1)[0]
}

// taker is what receivers and session receivers share.
type taker interface {
	ReceiveMessages(context.Context, int, *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
}

func take(t *testing.T, ctx context.Context, r taker, n int) []*azservicebus.ReceivedMessage {
	t.Helper()
	var out []*azservicebus.ReceivedMessage
	for len(out) < n {
		ms, err := r.ReceiveMessages(ctx, n-len(out), nil)
		if err != nil {
			t.Fatalf("receive message %d of %d: %v", len(out)+1, n, err)
		}
		out = append(out, ms...)
	}
	return out
}

// empty fails the test if a message comes within a short while.
func (q *queue) empty() {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.ctx, 300*time.Millisecond)
	defer cancel()
	ms, err := q.ReceiveMessages(ctx, 1, nil)
	if err == nil {
		q.t.Fatalf("%s: received %q, want nothing", q.name, bodies(ms))
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		q.t.Fatalf("%s: receive from an empty queue: %v, want %v", q.name, err, context.DeadlineExceeded)
	}
}

func (q *queue) complete(ms ...*azservicebus.ReceivedMessage) {
	q.t.Helper()
	for _, m := range ms {
		if err := q.CompleteMessage(q.ctx, m, nil); err != nil {
			q.t.Fatalf("complete %q: %v", m.Body, err)
		}
	}
}

// deadLetters opens a receiver on the queue's dead letter queue.
func (q *queue) deadLetters() *azservicebus.Receiver {
	q.t.Helper()
	r, err := q.NewReceiverForQueue(q.name, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	if err != nil {
		q.t.Fatal(err)
	}
	return r
}

func bodies(ms []*azservicebus.ReceivedMessage) string {
	out := make([]string, len(ms))
	for i, m := range ms {
		out[i] = string(m.Body)
	}
	return strings.Join(out, " ")
}

// wantCode fails the test unless err is the SDK's error with that code.
func wantCode(t *testing.T, what string, err error, code azservicebus.Code) *azservicebus.Error {
	t.Helper()
	var e *azservicebus.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("%s: %v (%T), want an error with code %s", what, err, err, code)
	}
	return e
}

func ptr[T any](v T) *T { return &v }
