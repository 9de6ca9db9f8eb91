// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

// one receives a message, which must be there.
func (q *queue) one() *client.Received {
	q.t.Helper()
	ms, err := q.Receive(q.ctx, 1)
	if err != nil || len(ms) != 1 {
		q.t.Fatalf("received %d, %v", len(ms), err)
	}
	return ms[0]
}

// nothing checks that no message can be had.
func (q *queue) nothing(why string) {
	q.t.Helper()
	if ms, err := q.Poll(q.ctx, 1); err != nil || len(ms) > 0 {
		q.t.Fatalf("%s: received %d, %v; want nothing", why, len(ms), err)
	}
}

func TestRetryWaitsInTheBroker(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders, maxDeliveryCount: 2}]")
	q := open(t, b.Client(), "orders", nil)
	if err := q.Send(q.ctx, &client.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if err := q.Retry(q.ctx, q.one(), time.Hour, map[string]any{"why": "down"}); err != nil {
		t.Fatal(err)
	}
	q.nothing("before its time")
	b.Crash()
	q.nothing("before its time, after a crash")
	peeked, err := q.Peek(q.ctx, 0, 1)
	if err != nil || len(peeked) != 1 {
		t.Fatalf("peeked %d, %v", len(peeked), err)
	}
	if p := peeked[0]; time.Until(p.RetryAt) < 59*time.Minute || p.DeliveryCount != 1 || p.Properties["why"] != "down" || p.State != client.Active {
		t.Errorf("peeked %+v, retry at %v; want it to wait for an hour", p, p.RetryAt)
	}
	if err := q.Send(q.ctx, &client.Message{Body: []byte("b")}); err != nil {
		t.Fatal(err)
	}
	m := q.one()
	if string(m.Body) != "b" {
		t.Fatalf("received %q, want what is behind the one that waits", m.Body)
	}
	if err := q.Retry(q.ctx, m, 20*time.Millisecond, nil); err != nil {
		t.Fatal(err)
	}
	if m = q.one(); string(m.Body) != "b" || m.DeliveryCount != 1 {
		t.Errorf("received %q after %d failures, want b after one", m.Body, m.DeliveryCount)
	}
}

func TestBadTimesOfRetryAreRefused(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	q := open(t, b.Client(), "orders", nil)
	if err := q.Send(q.ctx, &client.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	m := q.one()
	if err := q.Retry(q.ctx, m, 10*366*24*time.Hour, nil); err == nil || !strings.Contains(err.Error(), "milliseconds from 0 to") {
		t.Errorf("a retry in ten years: %v, want what is allowed", err)
	}
	if err := q.Retry(q.ctx, m, -time.Hour, nil); err != nil {
		t.Errorf("a retry in the past: %v, want it at once", err)
	}
	if m := q.one(); m.DeliveryCount != 1 {
		t.Errorf("failed %d times, want once", m.DeliveryCount)
	}
}

// Any AMQP client can say when a message comes again.
func TestRetryByAPlainClient(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders}]")
	q := open(t, b.Client(), "orders", nil)
	conn, err := amqp.Dial(q.ctx, "amqp://127.0.0.1:"+b.Port(), &amqp.ConnOptions{SASLType: amqp.SASLTypePlain("RootManageSharedAccessKey", "SAS_KEY_VALUE")})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.NewSession(q.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.NewReceiver(q.ctx, "orders", &amqp.ReceiverOptions{SettlementMode: amqp.ReceiverSettleModeSecond.Ptr()}) // waits for the answer
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Send(q.ctx, &client.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	m, err := r.Receive(q.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = r.ModifyMessage(q.ctx, m, &amqp.ModifyMessageOptions{Annotations: amqp.Annotations{"triagemq:retry-after": uint32(3600_000)}})
	if err != nil {
		t.Fatal(err)
	}
	peeked, err := q.Peek(q.ctx, 0, 1)
	if err != nil || len(peeked) != 1 || time.Until(peeked[0].RetryAt) < 59*time.Minute {
		t.Fatalf("peeked %+v, %v; want a message that waits for an hour", peeked, err)
	}
	if _, ok := peeked[0].Properties["triagemq:retry-after"]; ok {
		t.Error("the time of retry is a property of the message")
	}
}

func TestRenewedLockSurvivesACrash(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders, lockDuration: 5m}]")
	q := open(t, b.Client(), "orders", nil)
	for _, body := range []string{"long", "short"} {
		if err := q.Send(q.ctx, &client.Message{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	long, short := q.one(), q.one()
	if err := q.RenewLock(q.ctx, long); err != nil {
		t.Fatal(err)
	}
	b.Crash()
	if m := q.one(); string(m.Body) != "short" {
		t.Fatalf("received %q, want the message whose lock was never renewed", m.Body)
	}
	q.nothing("while the renewed lock holds")
	if err := q.RenewLock(q.ctx, long); err != nil {
		t.Errorf("renew after the crash: %v", err)
	}
	if err := q.Complete(q.ctx, long); err != nil {
		t.Errorf("complete after the crash: %v", err)
	}
	if err := q.Complete(q.ctx, short); !errors.Is(err, client.ErrLockLost) {
		t.Errorf("complete with a lock that was never renewed: %v, want %v", err, client.ErrLockLost)
	}
}

func TestDurableLocksSurviveACrashFromTheBeginning(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders, lockDuration: 5m}]")
	q := open(t, b.Client(), "orders", &client.ReceiverOptions{DurableLocks: true})
	if err := q.Send(q.ctx, &client.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	m := q.one()
	b.Crash()
	q.nothing("while it is locked")
	if err := q.Release(q.ctx, m, nil); err != nil {
		t.Fatal(err)
	}
	b.Crash()
	if m = q.one(); m.DeliveryCount != 0 {
		t.Errorf("failed %d times, want none", m.DeliveryCount)
	}
}

func TestSavedStateSurvivesACrash(t *testing.T) {
	b := triagetest.Start(t, "queues: [{name: orders, lockDuration: 5m}]")
	q := open(t, b.Client(), "orders", nil)
	if err := q.Send(q.ctx, &client.Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	m := q.one()
	for _, state := range []string{"step 1", "step 2"} {
		if _, err := q.SaveState(q.ctx, m, []byte(state)); err != nil {
			t.Fatal(err)
		}
	}
	b.Crash()
	q.nothing("while the lock that was saved with holds")
	if _, err := q.SaveState(q.ctx, m, make([]byte, 64<<10+1)); err == nil || !strings.Contains(err.Error(), "65536") {
		t.Errorf("a state that is too large: %v, want the limit", err)
	}
	if err := q.Abandon(q.ctx, m, map[string]any{"color": "red"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.SaveState(q.ctx, m, []byte("late")); !errors.Is(err, client.ErrLockLost) {
		t.Errorf("saved without the lock: %v", err)
	}
	m = q.one()
	if state, _ := m.Properties["triagemq-state"].([]byte); string(state) != "step 2" || m.Properties["color"] != "red" {
		t.Errorf("received with %v, want the last state and the color", m.Properties)
	}
	if err := q.DeadLetter(q.ctx, m, "no", ""); err != nil {
		t.Fatal(err)
	}
	dead, err := b.Client().OpenReceiver(q.ctx, client.DeadLetterQueue("orders"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ms, err := dead.Receive(q.ctx, 1)
	if err != nil || len(ms) != 1 || ms[0].Properties["triagemq-state"] != nil {
		t.Errorf("received %d dead letters, %v, with state %v; want one without", len(ms), err, ms[0].Properties["triagemq-state"])
	}
}
