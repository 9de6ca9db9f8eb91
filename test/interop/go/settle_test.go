// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestRenewKeepsTheLock(t *testing.T) {
	t.Parallel()
	q := open(t, "renewing")
	q.send("a")
	m := q.one()
	before := *m.LockedUntil
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for range 2 { // beyond the lock's own 5 s
		<-tick.C
		if err := q.RenewMessageLock(q.ctx, m, nil); err != nil {
			t.Fatalf("renew: %v", err)
		}
		if !m.LockedUntil.After(before) {
			t.Fatalf("locked until %v, want later than %v", m.LockedUntil, before)
		}
		before = *m.LockedUntil
	}
	q.complete(m)
	q.empty()
}

func TestAbandonWithProperties(t *testing.T) {
	t.Parallel()
	q := open(t, "abandoning")
	q.sendMessage(&azservicebus.Message{Body: []byte("a"), ApplicationProperties: map[string]any{"kept": "yes", "changed": "old"}})
	q.send("b")
	m := q.one()
	err := q.AbandonMessage(q.ctx, m, &azservicebus.AbandonMessageOptions{PropertiesToModify: map[string]any{"changed": "new", "added": int64(1)}})
	if err != nil {
		t.Fatal(err)
	}
	m = q.one()
	if got, want := fmt.Sprint(string(m.Body), m.DeliveryCount, m.ApplicationProperties), "a2 map[added:1 changed:new kept:yes]"; got != want {
		t.Errorf("redelivered %s, want %s", got, want)
	}
	q.complete(m)
	q.complete(q.one())
}

func TestTooManyFailedDeliveriesMakeADeadLetter(t *testing.T) {
	t.Parallel()
	q := open(t, "abandoning-much")
	q.send("poison")
	for i := range 3 {
		m := q.one()
		if int(m.DeliveryCount) != i+1 {
			t.Errorf("delivery %d has count %d", i+1, m.DeliveryCount)
		}
		if err := q.AbandonMessage(q.ctx, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	m := take(t, q.ctx, q.deadLetters(), 1)[0]
	if m.DeadLetterReason == nil || *m.DeadLetterReason != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letter for %v, want MaxDeliveryCountExceeded", m.DeadLetterReason)
	}
	q.complete(m)
	q.empty()
}

func TestDeferAndReceiveDeferred(t *testing.T) {
	t.Parallel()
	q := open(t, "deferring")
	q.send("a", "b")
	m := q.one()
	number := *m.SequenceNumber
	err := q.DeferMessage(q.ctx, m, &azservicebus.DeferMessageOptions{PropertiesToModify: map[string]any{"why": "later"}})
	if err != nil {
		t.Fatal(err)
	}
	q.complete(q.one()) // b: the deferred one is not delivered
	q.empty()
	seen, err := q.PeekMessages(q.ctx, 1, nil)
	if err != nil || len(seen) != 1 || seen[0].State != azservicebus.MessageStateDeferred {
		t.Fatalf("peek: %q, %v, want one deferred message", bodies(seen), err)
	}
	ms, err := q.ReceiveDeferredMessages(q.ctx, []int64{number}, nil)
	if err != nil || len(ms) != 1 {
		t.Fatalf("receive deferred: %q, %v", bodies(ms), err)
	}
	if string(ms[0].Body) != "a" || ms[0].ApplicationProperties["why"] != "later" {
		t.Errorf("deferred message %q %v, want a with why=later", ms[0].Body, ms[0].ApplicationProperties)
	}
	if err := q.RenewMessageLock(q.ctx, ms[0], nil); err != nil {
		t.Errorf("renew the lock of a deferred message: %v", err)
	}
	q.complete(ms[0])
	if rest, err := q.ReceiveDeferredMessages(q.ctx, []int64{number}, nil); err == nil && len(rest) != 0 {
		t.Errorf("received %q again after completing it", bodies(rest))
	}
}

func TestDeadLetterWithReason(t *testing.T) {
	t.Parallel()
	q := open(t, "dead-letters")
	q.send("bad")
	err := q.DeadLetterMessage(q.ctx, q.one(), &azservicebus.DeadLetterOptions{
		Reason: new("Unreadable"), ErrorDescription: new("no such format"), PropertiesToModify: map[string]any{"by": "test"},
	})
	if err != nil {
		t.Fatal(err)
	}
	q.empty()
	dead := q.deadLetters()
	m := take(t, q.ctx, dead, 1)[0]
	if string(m.Body) != "bad" || *m.DeadLetterReason != "Unreadable" || *m.DeadLetterErrorDescription != "no such format" || m.ApplicationProperties["by"] != "test" {
		t.Errorf("dead letter %q: %v, %v, %v", m.Body, *m.DeadLetterReason, *m.DeadLetterErrorDescription, m.ApplicationProperties)
	}
	// Abandoning inside a dead letter queue does not count.
	count := m.DeliveryCount
	if err := dead.AbandonMessage(q.ctx, m, nil); err != nil {
		t.Fatal(err)
	}
	m = take(t, q.ctx, dead, 1)[0]
	if m.DeliveryCount != count {
		t.Errorf("delivery count changed from %d to %d in the dead letter queue", count, m.DeliveryCount)
	}
	// And the way back: receive, resend, complete.
	q.sendMessage(m.Message())
	if err := dead.CompleteMessage(q.ctx, m, nil); err != nil {
		t.Fatal(err)
	}
	q.complete(q.one())
}

func TestLockThatRanOutIsLost(t *testing.T) {
	t.Parallel()
	q := open(t, "lock-lost")
	q.send("a")
	first := q.one()
	other := openOn(t, connect(t, shared.Connection()), q.name)
	second := other.one() // comes when the first lock has run out
	if second.DeliveryCount != 2 {
		t.Errorf("second delivery has count %d, want 2", second.DeliveryCount)
	}
	wantCode(t, "complete with the old lock", q.CompleteMessage(q.ctx, first, nil), azservicebus.CodeLockLost)
	wantCode(t, "renew the old lock", q.RenewMessageLock(q.ctx, first, nil), azservicebus.CodeLockLost)
	other.complete(second)
}

// Locks belong to the queue: another connection may settle what this one took.
func TestSettleOnAnotherConnection(t *testing.T) {
	t.Parallel()
	q := open(t, "settled-elsewhere")
	q.send("a")
	m := q.one()
	if err := q.Receiver.Close(q.ctx); err != nil {
		t.Fatal(err)
	}
	other := openOn(t, connect(t, shared.Connection()), q.name)
	if err := other.RenewMessageLock(q.ctx, m, nil); err != nil {
		t.Errorf("renew elsewhere: %v", err)
	}
	other.complete(m)
	other.empty()
	wantCode(t, "complete twice", other.CompleteMessage(q.ctx, m, nil), azservicebus.CodeLockLost)
}
