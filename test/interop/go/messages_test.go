// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestSendAndReceiveWithPeekLock(t *testing.T) {
	t.Parallel()
	q := open(t, "modes")
	q.sendMessage(&azservicebus.Message{
		Body: []byte("hello"), MessageID: new("m1"), Subject: new("greeting"), ContentType: new("text/plain"),
		CorrelationID: new("c1"), ReplyTo: new("answers"), ReplyToSessionID: new("s9"), To: new("you"),
		ApplicationProperties: map[string]any{"tenant": "contoso", "size": int64(7), "vip": true},
		TimeToLive:            ptr(time.Hour),
	})
	m := q.one()
	if got, want := fmt.Sprint(string(m.Body), m.MessageID, *m.Subject, *m.ContentType, *m.CorrelationID, *m.ReplyTo, *m.ReplyToSessionID, *m.To),
		fmt.Sprint("hello", "m1", "greeting", "text/plain", "c1", "answers", "s9", "you"); got != want {
		t.Errorf("message arrived as %q, want %q", got, want)
	}
	if got, want := fmt.Sprint(m.ApplicationProperties), "map[size:7 tenant:contoso vip:true]"; got != want {
		t.Errorf("properties arrived as %s, want %s", got, want)
	}
	if m.TimeToLive == nil || *m.TimeToLive != time.Hour || m.ExpiresAt == nil {
		t.Errorf("time to live %v until %v, want 1h and an expiry", m.TimeToLive, m.ExpiresAt)
	}
	if m.DeliveryCount != 1 || m.LockToken == [16]byte{} || m.LockedUntil == nil || m.EnqueuedTime == nil || *m.SequenceNumber < 1 {
		t.Errorf("delivery count %d, lock %x until %v, enqueued %v, number %d", m.DeliveryCount, m.LockToken, m.LockedUntil, m.EnqueuedTime, *m.SequenceNumber)
	}
	q.complete(m)
	q.empty()
}

func TestSendAndReceiveAndDelete(t *testing.T) {
	t.Parallel()
	q := open(t, "deleting")
	q.send("a", "b", "c")
	r, err := q.NewReceiverForQueue(q.name, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	if err != nil {
		t.Fatal(err)
	}
	if got := bodies(take(t, q.ctx, r, 3)); got != "a b c" {
		t.Errorf("received %q, want \"a b c\"", got)
	}
	q.empty()
}

func TestBatches(t *testing.T) {
	t.Parallel()
	q := open(t, "batches")
	batch, err := q.NewMessageBatch(q.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		m := &azservicebus.Message{Body: fmt.Appendf(nil, "%03d", i), ApplicationProperties: map[string]any{"i": int64(i)}}
		if err := batch.AddMessage(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.SendMessageBatch(q.ctx, batch, nil); err != nil {
		t.Fatal(err)
	}
	ms := q.receive(100)
	for i, m := range ms {
		if want := fmt.Sprintf("%03d", i); string(m.Body) != want || m.ApplicationProperties["i"] != int64(i) {
			t.Fatalf("message %d arrived as %q %v, want %q", i, m.Body, m.ApplicationProperties, want)
		}
	}
	q.complete(ms...)
	q.empty()
}

// The SDK releases messages that arrive between two calls; that must neither
// count as a failed delivery nor change the order.
func TestUnusedCreditDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	q := open(t, "draining")
	for range 5 {
		q.empty() // leaves credit behind
	}
	q.send("a", "b", "c", "d")
	ms := q.receive(4)
	if got := bodies(ms); got != "a b c d" {
		t.Errorf("received %q, want \"a b c d\"", got)
	}
	for _, m := range ms {
		if m.DeliveryCount != 1 {
			t.Errorf("%q has delivery count %d, want 1", m.Body, m.DeliveryCount)
		}
	}
	q.complete(ms...)
}

func TestPeek(t *testing.T) {
	t.Parallel()
	q := open(t, "peeking")
	q.send("a", "b", "c", "d")
	first, err := q.PeekMessages(q.ctx, 3, nil)
	if err != nil || bodies(first) != "a b c" {
		t.Fatalf("peek: %q, %v, want \"a b c\"", bodies(first), err)
	}
	next, err := q.PeekMessages(q.ctx, 3, nil)
	if err != nil || bodies(next) != "d" {
		t.Fatalf("peek on: %q, %v, want \"d\"", bodies(next), err)
	}
	none, err := q.PeekMessages(q.ctx, 3, nil)
	if err != nil || len(none) != 0 {
		t.Fatalf("peek past the end: %q, %v, want nothing", bodies(none), err)
	}
	again, err := q.PeekMessages(q.ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: first[1].SequenceNumber})
	if err != nil || bodies(again) != "b" {
		t.Fatalf("peek from a number: %q, %v, want \"b\"", bodies(again), err)
	}
	if again[0].State != azservicebus.MessageStateActive {
		t.Errorf("state %v, want active", again[0].State)
	}
	q.complete(q.receive(4)...) // peeking took nothing
}

func TestScheduleAndCancel(t *testing.T) {
	t.Parallel()
	q := open(t, "scheduling")
	soon, late := time.Now().Add(2*time.Second).Truncate(time.Millisecond), time.Now().Add(time.Hour)
	kept, err := q.ScheduleMessages(q.ctx, []*azservicebus.Message{{Body: []byte("soon")}}, soon, nil)
	if err != nil || len(kept) != 1 {
		t.Fatalf("schedule: %v, %v", kept, err)
	}
	dropped, err := q.ScheduleMessages(q.ctx, []*azservicebus.Message{{Body: []byte("x")}, {Body: []byte("y")}}, late, nil)
	if err != nil || len(dropped) != 2 {
		t.Fatalf("schedule two: %v, %v", dropped, err)
	}
	seen, err := q.PeekMessages(q.ctx, 10, nil)
	if err != nil || len(seen) != 3 || seen[0].State != azservicebus.MessageStateScheduled {
		t.Fatalf("peek: %q, %v, want three scheduled messages", bodies(seen), err)
	}
	if err := q.CancelScheduledMessages(q.ctx, dropped, nil); err != nil {
		t.Fatalf("cancel: %v", err)
	}
	m := q.one()
	if string(m.Body) != "soon" || time.Now().Before(soon) {
		t.Errorf("received %q at %v, want \"soon\" not before %v", m.Body, time.Now(), soon)
	}
	if m.ScheduledEnqueueTime == nil || m.ScheduledEnqueueTime.UnixMilli() != soon.UnixMilli() {
		t.Errorf("scheduled for %v, want %v", m.ScheduledEnqueueTime, soon)
	}
	q.complete(m)
	q.sendMessage(&azservicebus.Message{Body: []byte("field"), ScheduledEnqueueTime: new(time.Now().Add(time.Second))})
	q.empty()
	q.complete(q.one())
	q.empty()
}

func TestDuplicateDetection(t *testing.T) {
	t.Parallel()
	q := open(t, "duplicates")
	run := rand.Text() // duplicate detection has the ids of earlier runs
	for _, id := range []string{"1", "2", "1", "1", "3", "2"} {
		q.sendMessage(&azservicebus.Message{Body: []byte(id), MessageID: new(run + id)})
	}
	ms := q.receive(3)
	if got := bodies(ms); got != "1 2 3" {
		t.Errorf("received %q, want \"1 2 3\"", got)
	}
	q.complete(ms...)
	q.empty()
}

func TestAutoForwarding(t *testing.T) {
	t.Parallel()
	c := connect(t, shared.Connection())
	target := openOn(t, c, "forward-target")
	s, err := c.NewSender("forward-source", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a", "b"} {
		if err := s.SendMessage(target.ctx, &azservicebus.Message{Body: []byte(body)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	ms := target.receive(2)
	if got := bodies(ms); got != "a b" {
		t.Errorf("received %q, want \"a b\"", got)
	}
	target.complete(ms...)
}

func TestExpiredMessagesBecomeDeadLetters(t *testing.T) {
	t.Parallel()
	q := open(t, "expiring")
	q.sendMessage(&azservicebus.Message{Body: []byte("late"), TimeToLive: ptr(time.Second)})
	m := take(t, q.ctx, q.deadLetters(), 1)[0]
	if string(m.Body) != "late" || m.DeadLetterReason == nil || *m.DeadLetterReason != "TTLExpiredException" {
		t.Errorf("dead letter %q for %v, want \"late\" for TTLExpiredException", m.Body, m.DeadLetterReason)
	}
	q.complete(m)
}

func TestOversizedMessageIsRefused(t *testing.T) {
	t.Parallel()
	q := open(t, "oversize")
	batch, err := q.NewMessageBatch(q.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	huge := &azservicebus.Message{Body: []byte(strings.Repeat("x", 1<<20))}
	if err := batch.AddMessage(huge, nil); !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("add to batch: %v, want %v", err, azservicebus.ErrMessageTooLarge)
	}
	if err := q.SendMessage(q.ctx, huge, nil); !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("send: %v, want %v", err, azservicebus.ErrMessageTooLarge)
	}
	q.send("small") // the sender still works
	q.complete(q.one())
	big := strings.Repeat("y", 200<<10) // several frames
	q.send(big)
	m := q.one()
	if string(m.Body) != big {
		t.Errorf("a body of %d bytes was received with %d", len(big), len(m.Body))
	}
	q.complete(m)
}

func TestAddressesWithSlashesAndOtherCase(t *testing.T) {
	t.Parallel()
	q := open(t, "Site/NESTED")
	q.send("a")
	q.complete(q.one())
}

// Each message is delivered to exactly one of many consumers.
func TestCompetingConsumers(t *testing.T) {
	t.Parallel()
	const messages, consumers = 200, 5
	q := open(t, "competing")
	batch, err := q.NewMessageBatch(q.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if err := batch.AddMessage(&azservicebus.Message{Body: fmt.Append(nil, i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.SendMessageBatch(q.ctx, batch, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(q.ctx)
	defer stop()
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for range consumers {
		r, err := q.NewReceiverForQueue(q.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for {
				ms, err := r.ReceiveMessages(ctx, 7, nil)
				if err != nil {
					return
				}
				for _, m := range ms {
					if err := r.CompleteMessage(q.ctx, m, nil); err != nil {
						t.Errorf("complete %q: %v", m.Body, err)
					}
					mu.Lock()
					seen[string(m.Body)]++
					if len(seen) == messages {
						stop()
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if len(seen) != messages {
		t.Errorf("%d of %d messages were consumed", len(seen), messages)
	}
	for body, n := range seen {
		if n != 1 {
			t.Errorf("message %s was consumed %d times", body, n)
		}
	}
}
