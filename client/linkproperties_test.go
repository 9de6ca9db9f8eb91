// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

const ranked = `
queues:
  - {name: first}
  - {name: second}
  - name: plans
    policy:
      classes:
        - {name: paid, level: 8, when: "plan = 'paid'"}
        - {name: free, level: 0, rate: 2/h}
topics:
  - name: events
    subscriptions:
      - {name: all}
`

func TestReceiverOfPriorities(t *testing.T) {
	c := triagetest.Start(t, ranked).Client()
	for _, tt := range []struct {
		name string
		o    client.ReceiverOptions
		want string
	}{
		{"levels", client.ReceiverOptions{MinPriority: client.Level(5), MaxPriority: client.Level(6)}, "five"},
		{"names", client.ReceiverOptions{MinPriority: client.High}, "nine seven"},
		{"nothing but the lowest", client.ReceiverOptions{MaxPriority: client.Background}, "zero"},
	} {
		q := open(t, c, "first", &tt.o)
		q.send(
			client.Message{Body: []byte("zero"), Priority: client.Background},
			client.Message{Body: []byte("five"), Priority: client.Level(5)},
			client.Message{Body: []byte("seven"), Priority: client.High},
			client.Message{Body: []byte("nine"), Priority: client.Critical},
		)
		got := bodies(q.take(len(strings.Fields(tt.want))))
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		rest := open(t, c, "first", &client.ReceiverOptions{Mode: client.ReceiveAndDelete})
		rest.take(4 - len(strings.Fields(tt.want)))
	}
}

func TestReceiverOfAClassOfThePolicy(t *testing.T) {
	c := triagetest.Start(t, ranked).Client()
	q := open(t, c, "plans", &client.ReceiverOptions{MaxPriority: "free"})
	q.send(client.Message{Body: []byte("p"), Properties: map[string]any{"plan": "paid"}}, client.Message{Body: []byte("f")})
	if got := bodies(q.take(1)); got != "f" {
		t.Errorf("got %q, want f", got)
	}
	if _, err := c.OpenReceiver(q.ctx, "plans", &client.ReceiverOptions{MinPriority: "nobody"}); !errors.Is(err, client.ErrInvalid) {
		t.Errorf("an unknown class: %v, want %v", err, client.ErrInvalid)
	}
}

func TestReceiverOfSeveralQueues(t *testing.T) {
	c := triagetest.Start(t, ranked).Client()
	all := client.Subscription("events", "all")
	first, second := open(t, c, "first", nil), open(t, c, "second", nil)
	events, err := c.OpenSender(first.ctx, "events", nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := c.OpenReceiver(first.ctx, "first", &client.ReceiverOptions{Sources: []string{"second", all}})
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Send(first.ctx, &client.Message{Body: []byte("e")}); err != nil {
		t.Fatal(err)
	}
	second.say("s")
	first.say("f")
	ms := take(t, first.ctx, set, 3)
	for i, want := range []string{"first", "second", all} {
		if ms[i].Source != want || string(ms[i].Body) != want[:1] {
			t.Errorf("message %d: %q of %q, want one of %q", i, ms[i].Body, ms[i].Source, want)
		}
	}
	// Each is settled, and its lock renewed, where it came from.
	for _, m := range ms {
		if err := set.RenewLock(first.ctx, m); err != nil {
			t.Errorf("renew the message of %s: %v", m.Source, err)
		}
		if err := set.Complete(first.ctx, m); err != nil {
			t.Errorf("complete the message of %s: %v", m.Source, err)
		}
	}
	// A wait at all of them is ended by any of them.
	got := make(chan string, 1)
	go func() {
		ms, err := set.Receive(first.ctx, 1)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(ms[0].Body)
	}()
	second.say("later")
	if body := <-got; body != "later" {
		t.Errorf("got %q, want later", body)
	}
}

func TestSenderIsToldWhichClassIsBusy(t *testing.T) {
	c := triagetest.Start(t, ranked).Client()
	q := open(t, c, "plans", nil)
	q.say("1", "2")
	err := q.Send(q.ctx, &client.Message{Body: []byte("3")})
	busy, ok := errors.AsType[*client.BusyError](err)
	if !ok || busy.Class != "free" || busy.RetryAfter < 20*time.Minute || !errors.Is(err, client.ErrBusy) {
		t.Errorf("the third in an hour: %v, want class free to be busy for half an hour", err)
	}
	q.send(client.Message{Body: []byte("p"), Properties: map[string]any{"plan": "paid"}})
}
