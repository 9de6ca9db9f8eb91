// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/Azure/go-amqp"
)

// dial connects go-amqp, an implementation that is not ours, to a queueApp over
// loopback.
func dial(t *testing.T, opts *amqp.ConnOptions) *amqp.Conn {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		app := newQueueApp()
		err = NewConn(nc, Config{}).Serve(ctx, app)
		if cause := <-app.closed; err == nil && cause != nil {
			t.Errorf("Serve returned nil, but Closed was told %v", cause)
		}
	})
	t.Cleanup(func() {
		ln.Close()
		cancel(errors.New("test is over"))
		wg.Wait()
	})
	conn, err := amqp.Dial(t.Context(), "amqp://"+ln.Addr().String(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func session(t *testing.T, c *amqp.Conn) *amqp.Session {
	t.Helper()
	s, err := c.NewSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sender(t *testing.T, s *amqp.Session, address string) *amqp.Sender {
	t.Helper()
	snd, err := s.NewSender(t.Context(), address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return snd
}

func receiver(t *testing.T, s *amqp.Session, address string, opts *amqp.ReceiverOptions) *amqp.Receiver {
	t.Helper()
	rcv, err := s.NewReceiver(t.Context(), address, opts)
	if err != nil {
		t.Fatal(err)
	}
	return rcv
}

func TestClientSendsAndReceives(t *testing.T) {
	conn := dial(t, nil)
	snd := sender(t, session(t, conn), "jobs")
	modes := []*amqp.ReceiverOptions{
		{Credit: 10},
		{Credit: 10, SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()},
		{Credit: 10, RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr()},
	}
	for i, opts := range modes {
		rcv := receiver(t, session(t, conn), "jobs", opts)
		for n := range 250 {
			want := fmt.Sprintf("mode %d message %d", i, n)
			if err := snd.Send(t.Context(), amqp.NewMessage([]byte(want)), nil); err != nil {
				t.Fatal(err)
			}
			msg, err := rcv.Receive(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(msg.GetData()); got != want {
				t.Fatalf("received %q, want %q", got, want)
			}
			if err := rcv.AcceptMessage(t.Context(), msg); err != nil {
				t.Fatal(err)
			}
		}
		if err := rcv.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientSendsMessageOfManyFrames(t *testing.T) {
	for _, frameSize := range []uint32{512, 65536} {
		conn := dial(t, &amqp.ConnOptions{MaxFrameSize: frameSize})
		s := session(t, conn)
		body := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
		if frameSize == 512 {
			body = body[:300<<10]
		}
		snd := sender(t, s, "large")
		if err := snd.Send(t.Context(), amqp.NewMessage(body), nil); err != nil {
			t.Fatal(err)
		}
		rcv := receiver(t, s, "large", nil)
		msg, err := rcv.Receive(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(msg.GetData(), body) {
			t.Fatalf("frames of %d: body of %d bytes came back as %d others", frameSize, len(body), len(msg.GetData()))
		}
	}
}

func TestClientGetsErrorForMessageThatIsTooLarge(t *testing.T) {
	conn := dial(t, nil)
	snd := sender(t, session(t, conn), "large")
	err := snd.Send(t.Context(), amqp.NewMessage(make([]byte, 5<<20)), nil)
	var amqpErr *amqp.Error
	if !errors.As(err, &amqpErr) || amqpErr.Condition != amqp.ErrCondMessageSizeExceeded {
		t.Fatalf("sending 5 MiB over a link of 4 MiB: %v, want %s", err, amqp.ErrCondMessageSizeExceeded)
	}
}

func TestClientDrains(t *testing.T) {
	conn := dial(t, nil)
	s := session(t, conn)
	rcv := receiver(t, s, "jobs", &amqp.ReceiverOptions{Credit: -1})
	if err := rcv.IssueCredit(7); err != nil {
		t.Fatal(err)
	}
	snd := sender(t, s, "jobs")
	if err := snd.Send(t.Context(), amqp.NewMessage([]byte("one")), nil); err != nil {
		t.Fatal(err)
	}
	if err := rcv.DrainCredit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if msg := rcv.Prefetched(); msg == nil || string(msg.GetData()) != "one" {
		t.Fatalf("after the drain %v is there, want message one", msg)
	}
	// Drained credit is gone: this one stays where it is until there is more.
	if err := snd.Send(t.Context(), amqp.NewMessage([]byte("two")), nil); err != nil {
		t.Fatal(err)
	}
	if err := rcv.IssueCredit(1); err != nil {
		t.Fatal(err)
	}
	msg, err := rcv.Receive(t.Context(), nil)
	if err != nil || string(msg.GetData()) != "two" {
		t.Fatalf("received %v, %v, want message two", msg, err)
	}
}

// A client that cannot grant and drain at once learns of the end of a drain that it did
// not ask for. Its own count of deliveries stays right.
func TestClientPolls(t *testing.T) {
	conn := dial(t, nil)
	s := session(t, conn)
	over := make(chan struct{}, 1)
	rcv := receiver(t, s, pollAddress, &amqp.ReceiverOptions{
		Credit:                -1,
		OnLinkStateProperties: func(p map[string]any) { over <- struct{}{} },
	})
	snd := sender(t, s, pollAddress)
	for _, there := range []int{0, 1, 3, 0, 5, 2} {
		for range there {
			if err := snd.Send(t.Context(), amqp.NewMessage([]byte("x")), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := rcv.IssueCredit(5); err != nil {
			t.Fatal(err)
		}
		<-over
		got := 0
		for rcv.Prefetched() != nil {
			got++
		}
		if got != there {
			t.Fatalf("received %d, want %d", got, there)
		}
	}
}

func TestClientReleasesAndGetsItAgain(t *testing.T) {
	conn := dial(t, nil)
	s := session(t, conn)
	if err := sender(t, s, "jobs").Send(t.Context(), amqp.NewMessage([]byte("x")), nil); err != nil {
		t.Fatal(err)
	}
	rcv := receiver(t, s, "jobs", &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()})
	for range 3 {
		msg, err := rcv.Receive(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := rcv.ReleaseMessage(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClientIsRefused(t *testing.T) {
	conn := dial(t, nil)
	s := session(t, conn)
	_, err := s.NewReceiver(t.Context(), "missing", nil)
	var amqpErr *amqp.Error
	if !errors.As(err, &amqpErr) || amqpErr.Condition != amqp.ErrCondNotFound {
		t.Fatalf("receiver of a queue that is not there: %v, want %s", err, amqp.ErrCondNotFound)
	}
	if _, err := s.NewSender(t.Context(), "missing", nil); !errors.As(err, &amqpErr) || amqpErr.Condition != amqp.ErrCondNotFound {
		t.Fatalf("sender to a queue that is not there: %v, want %s", err, amqp.ErrCondNotFound)
	}
	sender(t, s, "jobs") // the session goes on
}

func TestClientLogsInWithPassword(t *testing.T) {
	dial(t, &amqp.ConnOptions{SASLType: amqp.SASLTypePlain("guest", "secret")})
}

func TestClientHasManyLinksAndSessions(t *testing.T) {
	conn := dial(t, nil)
	for i := range 60 {
		s := session(t, conn)
		for j := range 5 {
			address := fmt.Sprintf("queue-%d-%d", i, j)
			snd, rcv := sender(t, s, address), receiver(t, s, address, nil)
			if err := snd.Send(t.Context(), amqp.NewMessage([]byte(address)), nil); err != nil {
				t.Fatal(err)
			}
			msg, err := rcv.Receive(t.Context(), nil)
			if err != nil || string(msg.GetData()) != address {
				t.Fatalf("on %s: received %v, %v", address, msg, err)
			}
			if j%2 == 0 {
				if err := snd.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if i%3 == 0 {
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestClientsSendAtTheSameTime(t *testing.T) {
	const senders, each = 8, 300
	conn := dial(t, nil)
	var wg sync.WaitGroup
	for range senders {
		snd := sender(t, session(t, conn), "jobs")
		wg.Go(func() {
			for range each {
				if err := snd.Send(t.Context(), amqp.NewMessage(make([]byte, 100)), nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rcv := receiver(t, session(t, conn), "jobs", &amqp.ReceiverOptions{Credit: 50})
	for n := range senders * each {
		msg, err := rcv.Receive(t.Context(), nil)
		if err != nil {
			t.Fatalf("message %d: %v", n, err)
		}
		if err := rcv.AcceptMessage(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}
