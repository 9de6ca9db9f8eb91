// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// serve answers requests in capital letters until ctx ends.
func serve(ctx context.Context, t *testing.T, c *client.Client, queue string) {
	r, err := c.OpenReceiver(ctx, queue, nil)
	if err != nil {
		t.Error(err)
		return
	}
	task := context.WithoutCancel(ctx) // what was begun is finished
	for m, err := range r.Messages(ctx) {
		if err != nil {
			t.Error(err)
			return
		}
		if err := c.Reply(task, m, &client.Message{Body: []byte(strings.ToUpper(string(m.Body)))}); err != nil {
			t.Error(err)
		}
		if err := r.Complete(task, m); err != nil {
			t.Error(err)
		}
	}
}

func TestReplyReachesTheOneWhoAsked(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx, stop := context.WithCancel(deadline(t))
	var serving, asking sync.WaitGroup
	server := b.Client()
	serving.Go(func() { serve(ctx, t, server, "work") })
	for i := range 3 {
		c := b.Client()
		for j := range 10 {
			asking.Go(func() {
				body := fmt.Sprintf("client %d question %d", i, j)
				reply, err := c.Request(ctx, "work", &client.Message{Body: []byte(body)})
				if err != nil {
					t.Error(err)
				} else if got := string(reply.Body); got != strings.ToUpper(body) {
					t.Errorf("asked %q, got %q", body, got)
				}
			})
		}
	}
	asking.Wait()
	stop()
	serving.Wait()
}

func TestRequestExpiresWithItsCaller(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx, give := context.WithTimeoutCause(deadline(t), time.Hour, nil)
	asked := make(chan error, 1)
	go func() { // received from below
		_, err := b.Client().Request(ctx, "work", &client.Message{Body: []byte("anybody?")})
		asked <- err
	}()
	r, err := b.Client().OpenReceiver(ctx, "work", nil)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := r.Receive(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if end, _ := ctx.Deadline(); ms[0].TTL <= 0 || ms[0].TTL > time.Until(end)+time.Minute {
		t.Errorf("the request lives for %v, its caller waits for %v", ms[0].TTL, time.Until(end))
	}
	give()
	if err := <-asked; err == nil {
		t.Error("a request without a reply succeeded")
	}
}

func TestLateReplyIsDropped(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx := deadline(t)
	c, server := b.Client(), b.Client()
	r, err := server.OpenReceiver(ctx, "work", nil)
	if err != nil {
		t.Fatal(err)
	}
	impatient, leave := context.WithCancel(ctx)
	asked := make(chan error, 1)
	go func() { // received from below
		_, err := c.Request(impatient, "work", &client.Message{Body: []byte("first")})
		asked <- err
	}()
	late, err := r.Receive(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if err := <-asked; err == nil {
		t.Fatal("the request succeeded without a reply")
	}
	if err := server.Reply(ctx, late[0], &client.Message{Body: []byte("too late")}); err != nil {
		t.Fatal(err)
	}
	if err := r.Complete(ctx, late...); err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { serve(serving, t, server, "work") })
	reply, err := c.Request(ctx, "work", &client.Message{Body: []byte("second")})
	if err != nil || string(reply.Body) != "SECOND" {
		t.Errorf("got %v, %v, want the reply to the second request", reply, err)
	}
	stop()
	done.Wait()
}

// The way that works without temporary nodes: the reply goes to a session of a
// queue, and the receiver of that session gets it.
func TestReplyToASession(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, ctx := b.Client(), deadline(t)
	q := open(t, c, "work", nil)
	mine, err := c.OpenSession(ctx, "replies", "me", nil)
	must(t, err)
	q.send(client.Message{ID: "q1", Body: []byte("ping"), ReplyTo: "replies", ReplyToSession: "me"})
	request := q.take(1)[0]
	must(t, c.Reply(ctx, request, &client.Message{Body: []byte("pong")}))
	must(t, q.Complete(ctx, request))
	reply := take(t, ctx, mine.Receiver, 1)[0]
	if reply.CorrelationID != "q1" || string(reply.Body) != "pong" {
		t.Errorf("reply %q to %q, want \"pong\" to \"q1\"", reply.Body, reply.CorrelationID)
	}
}

func TestReplyInheritsPriority(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, ctx := b.Client(), deadline(t)
	work, replies := open(t, c, "work", nil), open(t, c, "orders", nil)
	work.send(
		client.Message{ID: "q1", Body: []byte("slow"), ReplyTo: "orders", Priority: client.Low},
		client.Message{ID: "q2", Body: []byte("fast"), ReplyTo: "orders", Priority: client.Critical},
	)
	asked := work.take(2)
	replies.say("other")
	must(t, c.Reply(ctx, asked[1], &client.Message{Body: asked[1].Body}))
	must(t, c.Reply(ctx, asked[0], &client.Message{Body: asked[0].Body}))
	must(t, c.Reply(ctx, asked[0], &client.Message{Body: []byte("own"), Priority: client.Background}))
	var got []string
	for _, m := range replies.take(4) {
		got = append(got, string(m.Body))
		if m.Enqueued.Before(asked[1].Enqueued) {
			t.Errorf("%s was enqueued at %v, before its request", m.Body, m.Enqueued)
		}
	}
	if want := "fast other slow own"; strings.Join(got, " ") != want {
		t.Errorf("replies %q, want %q", got, want)
	}
}

func TestReplyNeedsAnAddress(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "work", nil)
	q.say("no answer wanted")
	wantError(t, "reply", b.Client().Reply(q.ctx, q.take(1)[0], &client.Message{}), client.ErrNoReplyTo)
}

// Two requests of one ID could not tell their replies apart.
func TestSecondRequestOfAnIDIsRefused(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx := deadline(t)
	c := b.Client()
	first := make(chan error, 1)
	go func() { // received below
		_, err := c.Request(ctx, "work", &client.Message{ID: "same", Body: []byte("q")})
		first <- err
	}()
	q := open(t, b.Client(), "work", nil)
	m := q.take(1)[0]
	_, err := c.Request(ctx, "work", &client.Message{ID: "same", Body: []byte("q")})
	wantError(t, "a second request of the ID", err, client.ErrInvalid)
	must(t, b.Client().Reply(ctx, m, &client.Message{}))
	must(t, <-first)
}
