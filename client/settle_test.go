// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

func TestAbandonCountsAndReleaseDoesNot(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "strict", nil)
	q.say("a")
	for range 5 {
		m := q.take(1)[0]
		if m.DeliveryCount != 0 {
			t.Fatalf("after releasing the count is %d, want 0", m.DeliveryCount)
		}
		must(t, q.Release(q.ctx, m, nil))
	}
	must(t, q.Abandon(q.ctx, q.take(1)[0], map[string]any{"try": "again"}))
	m := q.take(1)[0]
	if m.DeliveryCount != 1 || m.Properties["try"] != "again" {
		t.Errorf("after abandoning: count %d, properties %v", m.DeliveryCount, m.Properties)
	}
	must(t, q.Abandon(q.ctx, m, nil)) // the second failure is one too many
	dead := open(t, b.Client(), "orders", nil)
	r, err := b.Client().OpenReceiver(dead.ctx, client.DeadLetterQueue("strict"), nil)
	must(t, err)
	letter := take(t, dead.ctx, r, 1)[0]
	if letter.DeadLetterReason != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letter for %q", letter.DeadLetterReason)
	}
	must(t, r.Complete(dead.ctx, letter))
}

// A release may carry how far the work got. It counts as no failure, also when the
// connection that brought the message is gone, and survives a crash of the broker.
func TestReleaseCarriesProperties(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	for _, queue := range []struct {
		name string
		lost bool
	}{{"strict", false}, {"strict", true}, {"sessions", false}} { // a session ends with its connection
		t.Run(fmt.Sprintf("%s, connection lost %t", queue.name, queue.lost), func(t *testing.T) {
			ctx := deadline(t)
			s, err := c.OpenSender(ctx, queue.name, nil)
			must(t, err)
			must(t, s.Send(ctx, &client.Message{Session: "s", Properties: map[string]any{"kept": "yes"}}))
			r := receiverOf(t, ctx, c, queue.name)
			for i := range int64(5) { // more than the queue allows failures
				m := take(t, ctx, r, 1)[0]
				if m.DeliveryCount != 0 || i > 0 && m.Properties["done"] != i-1 || m.Properties["kept"] != "yes" || len(m.Properties) > 2 {
					t.Fatalf("delivery %d: count %d, properties %v", i, m.DeliveryCount, m.Properties)
				}
				if queue.lost {
					w.cut()
				}
				must(t, r.Release(ctx, m, map[string]any{"done": i}))
			}
			b.Crash()
			m := take(t, ctx, r, 1)[0]
			if m.DeliveryCount != 0 || m.Properties["done"] != int64(4) {
				t.Errorf("after a crash: count %d, properties %v", m.DeliveryCount, m.Properties)
			}
			must(t, r.Complete(ctx, m))
			must(t, r.Close())
		})
	}
}

// A receiver of several queues releases a message at the queue it came from, also what it
// polled and what was deferred.
func TestReleaseGoesToTheSource(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, w := wired(t, b)
	first := open(t, c, "orders", &client.ReceiverOptions{Sources: []string{"strict"}})
	second := open(t, c, "strict", nil)
	second.say("a")
	for i := range int64(4) {
		ms, err := first.Poll(first.ctx, 1)
		must(t, err)
		if len(ms) != 1 || ms[0].Source != "strict" || ms[0].DeliveryCount != 0 {
			t.Fatalf("polled %v", ms)
		}
		if i%2 == 1 {
			w.cut()
		}
		must(t, first.Release(first.ctx, ms[0], map[string]any{"done": i}))
	}
	m := second.take(1)[0]
	must(t, second.Defer(second.ctx, m, nil)) // counts once
	for range 3 {
		ms, err := second.ReceiveDeferred(second.ctx, m.SeqNo)
		must(t, err)
		if ms[0].DeliveryCount != 1 || ms[0].Properties["done"] != int64(3) {
			t.Fatalf("deferred: count %d, properties %v", ms[0].DeliveryCount, ms[0].Properties)
		}
		must(t, second.Release(second.ctx, ms[0], map[string]any{"again": true}))
	}
}

// receiverOf opens a receiver, or the session "s" of a queue that requires sessions.
func receiverOf(t *testing.T, ctx context.Context, c *client.Client, name string) *client.Receiver {
	t.Helper()
	if name != "sessions" {
		r, err := c.OpenReceiver(ctx, name, nil)
		must(t, err)
		return r
	}
	s, err := c.OpenSession(ctx, name, "s", nil)
	must(t, err)
	return s.Receiver
}

func TestDeadLetterSaysWhy(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	q := open(t, c, "orders", nil)
	q.say("bad")
	must(t, q.DeadLetter(q.ctx, q.take(1)[0], "Unreadable", "no such format"))
	q.none()
	r, err := c.OpenReceiver(q.ctx, client.DeadLetterQueue("orders"), nil)
	must(t, err)
	m := take(t, q.ctx, r, 1)[0]
	if m.DeadLetterReason != "Unreadable" || m.DeadLetterDescription != "no such format" {
		t.Errorf("dead letter for %q: %q", m.DeadLetterReason, m.DeadLetterDescription)
	}
	// Redrive: what was received can be sent as it is.
	must(t, q.Send(q.ctx, &m.Message))
	must(t, r.Complete(q.ctx, m))
	wantBodies(t, q.take(1), "bad")
}

func TestDeferredMessageComesBackByNumber(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	q.say("later", "now")
	m := q.take(1)[0]
	must(t, q.Defer(q.ctx, m, map[string]any{"why": "busy"}))
	now := q.take(1)
	wantBodies(t, now, "now")
	must(t, q.Complete(q.ctx, now...))
	q.none()
	ms, err := q.ReceiveDeferred(q.ctx, m.SeqNo)
	must(t, err)
	wantBodies(t, ms, "later")
	if ms[0].Properties["why"] != "busy" {
		t.Errorf("properties %v, want why=busy", ms[0].Properties)
	}
	must(t, q.RenewLock(q.ctx, ms[0]))
	must(t, q.Complete(q.ctx, ms[0]))
	_, err = q.ReceiveDeferred(q.ctx, m.SeqNo)
	wantError(t, "receive it again", err, client.ErrMessageNotFound)
}

func TestRenewMovesTheLock(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	q.say("a")
	m := q.take(1)[0]
	before := m.LockedUntil
	must(t, q.RenewLock(q.ctx, m))
	if m.LockedUntil.Before(before) {
		t.Errorf("renewed from %v to %v", before, m.LockedUntil)
	}
	must(t, q.Complete(q.ctx, m))
	wantError(t, "renew what is settled", q.RenewLock(q.ctx, m), client.ErrLockLost)
}

// With TellLevel a peek tells which messages are locked, and how they are ordered.
func TestPeekTellsLevelsAndLocks(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", &client.ReceiverOptions{TellLevel: true})
	q.say("locked", "ready")
	locked := q.take(1)[0]
	must(t, q.Send(q.ctx, &client.Message{Body: []byte("urgent"), Priority: client.High}))
	ms, err := q.Peek(q.ctx, 0, 10)
	must(t, err)
	wantBodies(t, ms, "locked ready urgent")
	for i, want := range []uint8{4, 4, 7} {
		if ms[i].Level == nil || *ms[i].Level != want {
			t.Errorf("message %d has the level %v, want %d", i, ms[i].Level, want)
		}
		if isLocked := !ms[i].LockedUntil.IsZero(); isLocked != (i == 0) {
			t.Errorf("message %d is locked until %v", i, ms[i].LockedUntil)
		}
	}
	must(t, q.Complete(q.ctx, locked))
}

func TestPeekSeesEverythingAndTakesNothing(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	q.say("deferred", "locked", "ready")
	must(t, q.Defer(q.ctx, q.take(1)[0], nil))
	locked := q.take(1)[0]
	_, err := q.Schedule(q.ctx, time.Now().Add(time.Hour), &client.Message{Body: []byte("scheduled")})
	must(t, err)
	ms, err := q.Peek(q.ctx, 0, 10)
	must(t, err)
	wantBodies(t, ms, "deferred locked ready scheduled")
	var states []string
	for _, m := range ms {
		states = append(states, m.State.String())
	}
	for i, want := range []string{"deferred", "active", "active", "scheduled"} {
		if states[i] != want {
			t.Errorf("states %q, want %q at %d", states, want, i)
		}
	}
	rest, err := q.Peek(q.ctx, ms[2].SeqNo, 1)
	must(t, err)
	wantBodies(t, rest, "ready")
	wantError(t, "complete a peeked message", q.Complete(q.ctx, rest[0]), client.ErrLockLost)
	must(t, q.Complete(q.ctx, locked))
}

func TestScheduleAndCancel(t *testing.T) {
	b := triagetest.Start(t, entities)
	q := open(t, b.Client(), "orders", nil)
	late, err := q.Schedule(q.ctx, time.Now().Add(time.Hour), &client.Message{}, &client.Message{})
	must(t, err)
	if len(late) != 2 {
		t.Fatalf("numbers %v, want two", late)
	}
	soon := time.Now().Add(300 * time.Millisecond).Truncate(time.Millisecond) // as the wire does
	_, err = q.Schedule(q.ctx, soon, &client.Message{Body: []byte("soon")})
	must(t, err)
	must(t, q.CancelScheduled(q.ctx, late...))
	wantError(t, "cancel twice", q.CancelScheduled(q.ctx, late[0]), client.ErrMessageNotFound)
	m := q.take(1)[0]
	if string(m.Body) != "soon" || time.Now().Before(soon) {
		t.Errorf("received %q at %v, want \"soon\" not before %v", m.Body, time.Now(), soon)
	}
	must(t, q.Complete(q.ctx, m))
	q.none()
}

// A refused settlement leaves the lock as it was: what is done with the message next
// reaches the broker.
func TestMessageCanBeSettledAfterARefusal(t *testing.T) {
	b := triagetest.Start(t, entities)
	c := b.Client()
	q := open(t, c, "orders", nil)
	q.say("bad")
	must(t, q.DeadLetter(q.ctx, q.take(1)[0], "Unreadable", ""))
	r, err := c.OpenReceiver(q.ctx, client.DeadLetterQueue("orders"), nil)
	must(t, err)
	m := take(t, q.ctx, r, 1)[0]
	wantError(t, "dead-letter a dead letter", r.DeadLetter(q.ctx, m, "Unreadable", ""), client.ErrNotAllowed)
	must(t, r.Complete(q.ctx, m))
	left, err := r.Peek(q.ctx, 0, 10)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("%d messages are left of the one that was completed", len(left))
	}
}
