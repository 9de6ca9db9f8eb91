// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// wire dials and remembers what it dialled, to cut it.
type wire struct {
	mu      sync.Mutex
	conns   []net.Conn // guarded by mu
	refuses bool       // guarded by mu
	refused int        // guarded by mu; how often
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses {
		conn.Close()
		w.refused++
		return nil, syscall.ECONNREFUSED
	}
	w.conns = append(w.conns, conn)
	return conn, nil
}

// refuse lets no new connection through.
func (w *wire) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = true
}

// admit ends refuse.
func (w *wire) admit() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = false
}

// waitRefused waits until so many connections were refused.
func (w *wire) waitRefused(t *testing.T, times int) {
	t.Helper()
	for ctx := deadline(t); ; {
		w.mu.Lock()
		enough := w.refused >= times
		w.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal("too few attempts to connect")
		case <-time.After(time.Millisecond):
		}
	}
}

// cut ends every connection, as a lost network would.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// wired returns a client whose connections can be cut.
func wired(t *testing.T, b *triagetest.Broker) (*client.Client, *wire) {
	t.Helper()
	w := new(wire)
	c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{DialContext: w.dial})
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c, w
}

// Locks belong to the queue, not to the connection that took them.
func TestSettleAfterTheConnectionIsLost(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	q := open(t, c, "orders", nil)
	q.say("complete", "abandon", "defer", "kill", "renew")
	ms := q.take(5)
	w.cut()
	must(t, q.Complete(q.ctx, ms[0]))
	must(t, q.Abandon(q.ctx, ms[1], map[string]any{"try": "again"}))
	must(t, q.Defer(q.ctx, ms[2], nil))
	must(t, q.DeadLetter(q.ctx, ms[3], "Lost", "and found"))
	must(t, q.RenewLock(q.ctx, ms[4]))
	again := q.take(1)
	wantBodies(t, again, "abandon")
	if again[0].Properties["try"] != "again" {
		t.Errorf("properties %v", again[0].Properties)
	}
	deferred, err := q.ReceiveDeferred(q.ctx, ms[2].SeqNo)
	must(t, err)
	wantBodies(t, deferred, "defer")
	r, err := c.OpenReceiver(q.ctx, client.DeadLetterQueue("orders"), nil)
	must(t, err)
	dead := take(t, q.ctx, r, 1)
	if dead[0].DeadLetterReason != "Lost" {
		t.Errorf("dead letter for %q, want Lost", dead[0].DeadLetterReason)
	}
}

func TestWaitingReceiverComesBack(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	q := open(t, c, "orders", nil)
	got := make(chan string, 1)
	go func() { // ends with the receive below
		ms, err := q.Receive(q.ctx, 1)
		got <- fmt.Sprint(bodies(ms), " ", err)
	}()
	for range 3 {
		w.cut()
	}
	sender := open(t, b.Client(), "orders", nil).Sender
	must(t, sender.Send(q.ctx, &client.Message{Body: []byte("awaited")}))
	if s := <-got; s != "awaited <nil>" {
		t.Errorf("the waiting receiver got %s", s)
	}
}

// Senders and receivers go on through crashes of the broker. Every message that
// was acknowledged arrives; duplicates are allowed, gaps are not.
func TestCrashesLoseNothingAcknowledged(t *testing.T) {
	const senders, each, crashes = 3, 60, 3
	b := triagetest.Start(t, entities)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := b.Client()
	r, err := b.Client().OpenReceiver(ctx, "orders", nil)
	must(t, err)

	var sending sync.WaitGroup
	sent := make(chan struct{}, senders*each) // one for each acknowledged message
	for s := range senders {
		sender, err := c.OpenSender(ctx, "orders", nil)
		must(t, err)
		sending.Go(func() {
			for i := range each {
				if err := sender.Send(ctx, &client.Message{Body: fmt.Appendf(nil, "%d/%d", s, i)}); err != nil {
					t.Errorf("sender %d: %v", s, err)
					return
				}
				sent <- struct{}{}
			}
		})
	}
	var crashing sync.WaitGroup
	crashing.Go(func() {
		for i := range senders * each {
			<-sent
			if i%(senders*each/(crashes+1)) == 30 {
				b.Crash()
			}
		}
	})

	next := make([]int, senders)
	for missing := senders * each; missing > 0; {
		ms, err := r.Receive(ctx, 10)
		must(t, err)
		for _, m := range ms {
			var s, i int
			if _, err := fmt.Sscanf(string(m.Body), "%d/%d", &s, &i); err != nil {
				t.Fatal(err)
			}
			if i > next[s] {
				t.Fatalf("sender %d: message %d came before %d", s, i, next[s])
			}
			if i == next[s] {
				next[s]++
				missing--
			}
			// A lock that a crash dropped is lost; the message comes again.
			_ = r.Complete(ctx, m)
		}
	}
	sending.Wait()
	crashing.Wait()
}

func TestSessionIsTakenUpAgain(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	ctx := deadline(t)
	sender, err := b.Client().OpenSender(ctx, "sessions", nil)
	must(t, err)
	must(t, sender.Send(ctx, &client.Message{Session: "mine", Body: []byte("a")}))
	session, err := c.NextSession(ctx, "sessions", nil)
	must(t, err)
	// Another session would now be the next one, and the better one.
	must(t, sender.Send(ctx, &client.Message{Session: "other", Body: []byte("b"), Priority: client.Critical}))
	w.cut()
	ms := take(t, ctx, session.Receiver, 1)
	wantBodies(t, ms, "a")
	if session.ID() != "mine" {
		t.Errorf("the session is now %q", session.ID())
	}
	must(t, session.Complete(ctx, ms...))
}

func TestRequestIsAskedAgain(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	q := open(t, b.Client(), "work", nil)
	got := make(chan string, 1)
	go func() { // ends with the receive below
		reply, err := c.Request(q.ctx, "work", &client.Message{ID: "q", Body: []byte("ping")})
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(reply.Body)
	}()
	first := q.take(1)[0]
	w.cut() // the reply has nowhere to go
	second := q.take(1)[0]
	if first.ID != "q" || second.ID != "q" || first.ReplyTo == second.ReplyTo {
		t.Errorf("asked as %q for %q, then as %q for %q", first.ID, first.ReplyTo, second.ID, second.ReplyTo)
	}
	must(t, b.Client().Reply(q.ctx, second, &client.Message{Body: []byte("pong")}))
	if s := <-got; s != "pong" {
		t.Errorf("reply %s, want pong", s)
	}
}
