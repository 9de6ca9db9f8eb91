// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// journal notes what hooks are called with.
type journal struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := strings.Join(j.lines, "\n")
	j.lines = nil
	return all
}

type spanKey struct{}

// hooks trace as a tracer would: what is begun in Sending is ended in Sent.
func (j *journal) hooks() client.Hooks {
	return client.Hooks{
		Sending: func(ctx context.Context, entity string, m *client.Message) context.Context {
			m.Properties["traceparent"] = "of " + string(m.Body)
			j.add("sending %s to %s", m.Body, entity)
			return context.WithValue(ctx, spanKey{}, "span")
		},
		Sent: func(ctx context.Context, entity string, m *client.Message, took time.Duration, err error) {
			j.add("sent %s to %s in %v with %v: %t", m.Body, entity, took > 0, ctx.Value(spanKey{}), err == nil)
		},
		Received: func(_ context.Context, m *client.Received) {
			j.add("received %s %v", m.Body, m.Properties["traceparent"])
		},
		Settled: func(_ context.Context, m *client.Received, outcome string, took time.Duration, err error) {
			j.add("%s %s in %v: %t", outcome, m.Body, took > 0, err == nil)
		},
	}
}

func TestHooksSeeEachMessage(t *testing.T) {
	b := triagetest.Start(t, entities)
	j := new(journal)
	c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{Hooks: j.hooks()})
	must(t, err)
	defer c.Close()
	q := open(t, c, "orders", nil)
	want := func(step string, lines ...string) {
		t.Helper()
		if got := j.take(); got != strings.Join(lines, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", step, got, strings.Join(lines, "\n"))
		}
	}

	own := &client.Message{Body: []byte("a")}
	must(t, q.Send(q.ctx, own))
	if own.Properties != nil {
		t.Errorf("the caller's message got %v", own.Properties)
	}
	want("send", "sending a to orders", "sent a to orders in true with span: true")
	must(t, q.SendBatch(q.ctx, []*client.Message{{Body: []byte("b")}, {Body: []byte("c")}}))
	want("batch", "sending b to orders", "sending c to orders",
		"sent b to orders in true with span: true", "sent c to orders in true with span: true")
	if err := q.Send(q.ctx, &client.Message{Body: []byte("bad"), Priority: "hgih"}); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("an unknown priority: %v", err)
	}
	want("refused", "sending bad to orders", "sent bad to orders in true with span: false")
	_, err = q.Schedule(q.ctx, time.Now().Add(time.Hour), &client.Message{Body: []byte("later")})
	must(t, err)
	want("schedule", "sending later to orders", "sent later to orders in true with span: true")

	ms := q.take(3)
	want("receive", "received a of a", "received b of b", "received c of c")
	must(t, q.Release(q.ctx, ms[0], nil))
	must(t, q.DeadLetter(q.ctx, ms[1], "why", "because"))
	must(t, q.Defer(q.ctx, ms[2], nil))
	want("settle", "released a in true: true", "dead-lettered b in true: true", "deferred c in true: true")
	again, err := q.ReceiveDeferred(q.ctx, ms[2].SeqNo)
	must(t, err)
	polled, err := q.Poll(q.ctx, 1)
	must(t, err)
	want("receive", "received c of c", "received a of a")
	must(t, q.Abandon(q.ctx, polled[0], nil))
	must(t, q.Complete(q.ctx, again[0]))
	if err := q.Complete(q.ctx, again[0]); !errors.Is(err, client.ErrLockLost) {
		t.Errorf("complete twice: %v", err)
	}
	want("settle", "abandoned a in true: true", "completed c in true: true", "completed c in true: false")
}

func TestHooksSeeRequestAndReply(t *testing.T) {
	b := triagetest.Start(t, entities)
	j := new(journal)
	c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{Hooks: j.hooks()})
	must(t, err)
	defer c.Close()
	other := b.Client()
	q := open(t, other, "work", nil)
	served := make(chan error, 1)
	go func() { // ends with the request below
		ms, err := q.Receive(q.ctx, 1)
		if err == nil {
			err = other.Reply(q.ctx, ms[0], &client.Message{Body: []byte("pong")})
		}
		served <- err
	}()
	_, err = c.Request(q.ctx, "work", &client.Message{Body: []byte("ping")})
	must(t, err)
	must(t, <-served)
	if got, want := j.take(), "sending ping to work\nsent ping to work in true with span: true\nreceived pong <nil>"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// What was fetched ahead and given back was never the caller's.
func TestHooksDoNotSeeWhatIsPrefetched(t *testing.T) {
	b := triagetest.Start(t, entities)
	j := new(journal)
	c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{Hooks: client.Hooks{
		Received: j.hooks().Received, Settled: j.hooks().Settled,
	}})
	must(t, err)
	defer c.Close()
	q := open(t, c, "orders", &client.ReceiverOptions{Prefetch: 5})
	q.say("a", "b")
	q.take(1)
	must(t, q.Receiver.Close())
	if got := j.take(); got != "received a <nil>" {
		t.Errorf("got:\n%s\nwant one message received", got)
	}
}
