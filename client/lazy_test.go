// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// A service may start before its broker.
func TestClientWaitsForItsBroker(t *testing.T) {
	b := triagetest.Start(t, entities)
	w := new(wire)
	w.refuse()
	c, err := client.New(b.ConnectionString(), &client.Options{DialContext: w.dial})
	must(t, err)
	defer c.Close()
	ctx := deadline(t)
	opened := make(chan error, 1)
	go func() { // ends when the broker lets it in
		s, err := c.OpenSender(ctx, "orders", nil)
		if err == nil {
			err = s.Send(ctx, &client.Message{Body: []byte("early")})
		}
		opened <- err
	}()
	w.waitRefused(t, 3)
	w.admit()
	must(t, <-opened)
	wantBodies(t, open(t, b.Client(), "orders", nil).take(1), "early")
}

func TestNewReadsTheAddressOnly(t *testing.T) {
	_, err := client.New("no address", nil)
	wantError(t, "an address without a scheme", err, client.ErrAddress)
	c, err := client.New("amqp://no-such-host.invalid", &client.Options{RetryTimeout: -1})
	must(t, err)
	if _, err := c.OpenReceiver(deadline(t), "orders", nil); err == nil {
		t.Error("opened a receiver of nothing")
	}
	must(t, c.Close())
	_, err = c.OpenReceiver(deadline(t), "orders", nil)
	wantError(t, "open a receiver on a closed client", err, client.ErrClosed)
}

// A peer that takes a connection and says nothing holds nobody up who closes.
func TestCloseEndsADialInProgress(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	c, err := client.New("amqp://"+silent.Addr().String(), nil)
	must(t, err)
	ctx := deadline(t)
	ended := make(chan error, 1)
	go func() { // ends with Close
		_, err := c.OpenSender(ctx, "orders", nil)
		ended <- err
	}()
	peer, err := silent.Accept()
	must(t, err)
	defer peer.Close()
	must(t, c.Close())
	wantError(t, "open while the client is closed", <-ended, client.ErrClosed)
	if ctx.Err() != nil {
		t.Error("it took until the deadline")
	}
}

func TestPollReturnsWhatThereIs(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	ms, err := q.Poll(q.ctx, 5)
	must(t, err)
	wantBodies(t, ms, "")
	q.send(client.Message{Body: []byte("low"), Priority: client.Low},
		client.Message{Body: []byte("high"), Priority: client.High},
		client.Message{Body: []byte("normal")})
	ms, err = q.Poll(q.ctx, 2)
	must(t, err)
	wantBodies(t, ms, "high normal")
	ms, err = q.Poll(q.ctx, 2)
	must(t, err)
	wantBodies(t, ms, "low")
	ended, cancel := context.WithCancel(q.ctx)
	cancel()
	_, err = q.Poll(ended, 1)
	wantError(t, "poll with a context that has ended", err, context.Canceled)
}

// A message that was acknowledged before a poll is found by it, each time, however much
// of the credit was not used before.
func TestPollMissesNothing(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	first := open(t, c, "orders", &client.ReceiverOptions{Sources: []string{"work"}})
	second := open(t, c, "work", nil)
	for i := range 100 {
		want := fmt.Sprint(i)
		first.say(want)
		if i%3 == 0 {
			second.say("more")
			want += " more"
		}
		if i%40 == 39 {
			w.cut()
		}
		ms, err := first.Poll(first.ctx, 1+i%7)
		must(t, err)
		if 1+i%7 == 1 && i%3 == 0 {
			more, err := first.Poll(first.ctx, 5)
			must(t, err)
			ms = append(ms, more...)
		}
		wantBodies(t, ms, want)
		must(t, first.Complete(first.ctx, ms...))
	}
	must(t, first.Receiver.Close())
	_, err := first.Poll(first.ctx, 1)
	wantError(t, "poll a closed receiver", err, client.ErrClosed)
}

func TestPollOfASessionAndOfWhatIsPrefetched(t *testing.T) {
	b := triagetest.Start(t, entities)
	ctx := deadline(t)
	s, err := b.Client().OpenSender(ctx, "sessions", nil)
	must(t, err)
	session, err := b.Client().OpenSession(ctx, "sessions", "s", nil)
	must(t, err)
	q := open(t, b.Client(), "orders", &client.ReceiverOptions{Prefetch: 10})
	for _, r := range []*client.Receiver{session.Receiver, q.Receiver} {
		ms, err := r.Poll(ctx, 5)
		must(t, err)
		wantBodies(t, ms, "")
	}
	must(t, s.Send(ctx, &client.Message{Session: "s", Body: []byte("a")}))
	q.say("a")
	for _, r := range []*client.Receiver{session.Receiver, q.Receiver} {
		var ms []*client.Received
		for len(ms) == 0 && ctx.Err() == nil {
			ms, err = r.Poll(ctx, 5)
			must(t, err)
		}
		wantBodies(t, ms, "a")
	}
}

func TestSenderFillsInWhatItsOptionsSay(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	ctx := deadline(t)
	s, err := c.OpenSender(ctx, "orders", &client.SenderOptions{Priority: client.High, TTL: time.Hour})
	must(t, err)
	own := &client.Message{Body: []byte("own"), Priority: client.Low, TTL: time.Minute}
	none := &client.Message{Body: []byte("none")}
	must(t, s.Send(ctx, own))
	must(t, s.SendBatch(ctx, []*client.Message{none}))
	if none.Priority != "" || none.ID != "" {
		t.Errorf("the caller's message became %+v", none)
	}
	ms := open(t, c, "orders", nil).take(2)
	wantBodies(t, ms, "none own")
	if ms[0].Priority != client.High || ms[0].TTL != time.Hour {
		t.Errorf("without: priority %q, TTL %v", ms[0].Priority, ms[0].TTL)
	}
	if ms[1].Priority != client.Low || ms[1].TTL != time.Minute {
		t.Errorf("with its own: priority %q, TTL %v", ms[1].Priority, ms[1].TTL)
	}
	_, err = c.OpenSender(ctx, "orders", &client.SenderOptions{Priority: "urgent"})
	wantError(t, "an unknown priority", err, client.ErrInvalid)
}
