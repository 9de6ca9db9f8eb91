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

func TestOptionsThatDoNotCombineAreRefused(t *testing.T) {
	c := triagetest.Start(t, entities).Client()
	ctx := deadline(t)
	plain := func(o *client.ReceiverOptions) error {
		_, err := c.OpenReceiver(ctx, "orders", o)
		return err
	}
	session := func(o *client.ReceiverOptions) error {
		_, err := c.OpenSession(ctx, "sessions", "s", o)
		return err
	}
	next := func(o *client.ReceiverOptions) error {
		_, err := c.NextSession(ctx, "sessions", o)
		return err
	}
	for _, tt := range []struct {
		open func(*client.ReceiverOptions) error
		o    client.ReceiverOptions
		want string // in the text
	}{
		{plain, client.ReceiverOptions{Prefetch: 1, Mode: client.ReceiveAndDelete}, "Prefetch does not combine with ReceiveAndDelete"},
		{plain, client.ReceiverOptions{Prefetch: 1, Sources: []string{"work"}}, "Prefetch does not combine with Sources"},
		{session, client.ReceiverOptions{Prefetch: 1}, "Prefetch does not combine with OpenSession"},
		{next, client.ReceiverOptions{Prefetch: 1}, "Prefetch does not combine with NextSession"},
		{plain, client.ReceiverOptions{Sources: []string{"work"}, Mode: client.ReceiveAndDelete}, "Sources does not combine with ReceiveAndDelete"},
		{session, client.ReceiverOptions{Sources: []string{"work"}}, "Sources does not combine with OpenSession"},
		{plain, client.ReceiverOptions{SourceSelection: client.ByLevel}, "SourceSelection does not combine with a single source"},
		{plain, client.ReceiverOptions{Prefetch: -1}, "Prefetch is negative"},
		{plain, client.ReceiverOptions{Mode: 7}, "no Mode 7"},
		{plain, client.ReceiverOptions{SourceSelection: 7, Sources: []string{"work"}}, "no SourceSelection 7"},
	} {
		err := tt.open(&tt.o)
		if !errors.Is(err, client.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %v with %q", tt.o, err, client.ErrInvalid, tt.want)
		}
	}
}

func TestReceivedTellsWhatTheBrokerKnows(t *testing.T) {
	b := triagetest.Start(t, `
queues:
  - name: plans
    policy:
      classes:
        - {name: paid, level: 8, when: "plan = 'paid'", objective: {wait: 3s}}
        - {name: free, level: 1}
`)
	q := open(t, b.Client(), "plans", &client.ReceiverOptions{TellLevel: true})
	if !q.Extensions() {
		t.Error("our own broker does not know its own extensions")
	}
	q.send(client.Message{Body: []byte("p"), Properties: map[string]any{"plan": "paid"}}, client.Message{Body: []byte("f")})
	ms := q.take(2)
	wantBodies(t, ms, "p f")
	for i, want := range []struct {
		class     string
		level     uint8
		objective time.Duration
	}{{"paid", 8, 3 * time.Second}, {"free", 1, 0}} {
		m := ms[i]
		if m.Class != want.class || m.Level == nil || *m.Level != want.level || m.Objective != want.objective {
			t.Errorf("class %q, level %v, objective %v; want %+v", m.Class, m.Level, m.Objective, want)
		}
		if left := m.LockRemaining(); left <= 0 || left > time.Minute {
			t.Errorf("the lock lasts for %v, want up to a minute", left)
		}
	}
	if left := (&client.Received{}).LockRemaining(); left != 0 {
		t.Errorf("what is not locked is locked for %v", left)
	}
	if left := (&client.Received{LockedUntil: time.Unix(1, 0)}).LockRemaining(); left != 0 {
		t.Errorf("a lock of the past lasts for %v", left)
	}
}

// An error says what the broker said, and on which entity.
func TestErrorKeepsTheCondition(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	q := open(t, c, "orders", nil)
	q.say("a")
	m := q.take(1)[0]
	must(t, q.Complete(q.ctx, m))
	w.cut()
	_, missing := c.OpenSender(q.ctx, "nowhere", nil)
	_, free := c.OpenSession(q.ctx, "orders", "x", nil)
	for _, tt := range []struct {
		what         string
		err          error
		kind         error
		code, entity string
	}{
		{"a queue that is missing", missing, client.ErrNotFound, "amqp:not-found", "nowhere"},
		{"a lock that is lost, by its token", q.RenewLock(q.ctx, m), client.ErrLockLost, "com.microsoft:message-lock-lost", "orders"},
		{"a plain queue with a session", free, client.ErrNotAllowed, "amqp:not-allowed", "orders"},
	} {
		var said *client.Error
		if !errors.Is(tt.err, tt.kind) || !errors.As(tt.err, &said) {
			t.Errorf("%s: %v, want %v and a client.Error", tt.what, tt.err, tt.kind)
			continue
		}
		if said.Code != tt.code || said.Entity != tt.entity || said.Description == "" {
			t.Errorf("%s: %+v, want code %s of %s and a text", tt.what, said, tt.code, tt.entity)
		}
	}
}

func TestBusyErrorSaysWhen(t *testing.T) {
	b := triagetest.Start(t, `
queues:
  - name: plans
    policy:
      classes:
        - {name: free, level: 1, rate: 1/h}
`)
	c, err := client.Dial(deadline(t), b.ConnectionString(), &client.Options{RetryTimeout: time.Millisecond})
	must(t, err)
	defer c.Close()
	q := open(t, c, "plans", nil)
	for range 1000 {
		if err = q.Send(q.ctx, &client.Message{}); err != nil {
			break
		}
	}
	var busy *client.BusyError
	var said *client.Error
	if !errors.Is(err, client.ErrBusy) || !errors.As(err, &busy) || !errors.As(err, &said) {
		t.Fatalf("%v, want a BusyError and an Error", err)
	}
	if busy.Class != "free" || busy.RetryAfter <= 0 || said.Code != "com.microsoft:server-busy" || said.Entity != "plans" {
		t.Errorf("%+v, %+v", busy, said)
	}
}

// A reply without a priority is as urgent as its request; level 4 is one.
func TestReplyOfLevelFourDoesNotInherit(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	q := open(t, c, "work", &client.ReceiverOptions{TellLevel: true})
	back := open(t, c, "orders", &client.ReceiverOptions{TellLevel: true})
	q.send(client.Message{ID: "1", Priority: client.Critical, ReplyTo: "orders"})
	m := q.take(1)[0]
	must(t, c.Reply(q.ctx, m, &client.Message{Body: []byte("inherits")}))
	must(t, c.Reply(q.ctx, m, &client.Message{Body: []byte("own"), Priority: client.Level(4)}))
	ms := back.take(2)
	wantBodies(t, ms, "inherits own")
	if *ms[0].Level != 9 || *ms[1].Level != 4 {
		t.Errorf("levels %d and %d, want 9 and 4", *ms[0].Level, *ms[1].Level)
	}
}

func TestSessionOfPriorities(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	ctx := deadline(t)
	s, err := c.OpenSender(ctx, "sessions", nil)
	must(t, err)
	must(t, s.Send(ctx, &client.Message{Session: "a", Body: []byte("low"), Priority: client.Low}))
	must(t, s.Send(ctx, &client.Message{Session: "b", Body: []byte("high"), Priority: client.High}))
	session, err := c.NextSession(ctx, "sessions", &client.ReceiverOptions{MaxPriority: client.Low})
	must(t, err)
	if session.ID() != "a" {
		t.Errorf("got session %q, want the one with a low message", session.ID())
	}
	wantBodies(t, take(t, ctx, session.Receiver, 1), "low")
}
