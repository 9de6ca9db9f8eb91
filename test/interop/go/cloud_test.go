// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"
)

// deferred receives one deferred message by its number.
func (q *queue) deferred(number int64) *azservicebus.ReceivedMessage {
	q.t.Helper()
	ms, err := q.ReceiveDeferredMessages(q.ctx, []int64{number}, nil)
	if err != nil || len(ms) != 1 {
		q.t.Fatalf("receive deferred message %d: %q, %v", number, bodies(ms), err)
	}
	return ms[0]
}

func (q *queue) deferOne() int64 {
	q.t.Helper()
	m := q.one()
	if err := q.DeferMessage(q.ctx, m, nil); err != nil {
		q.t.Fatal(err)
	}
	return *m.SequenceNumber
}

// Deferring counts as a delivery, and so does abandoning the message after that,
// which leaves it deferred. (The SDK adds one to the count on the wire.)
func TestDeferringCountsAsADelivery(t *testing.T) {
	t.Parallel()
	q := open(t, "deferring-counts")
	q.send("a")
	number := q.deferOne()
	m := q.deferred(number)
	if m.DeliveryCount != 2 {
		t.Errorf("after it was deferred the delivery count is %d, want 2", m.DeliveryCount)
	}
	q.peeked(azservicebus.MessageStateDeferred) // while it is locked
	if err := q.AbandonMessage(q.ctx, m, nil); err != nil {
		t.Fatal(err)
	}
	q.peeked(azservicebus.MessageStateDeferred)
	q.empty()
	rt, err := administer(t, shared.SecureConnection()).GetQueueRuntimeProperties(q.ctx, q.name, nil)
	if err != nil || rt.ActiveMessageCount != 1 || rt.TotalMessageCount != 1 {
		t.Errorf("counts %+v, %v, want one active message", rt, err)
	}
	if m = q.deferred(number); m.DeliveryCount != 3 {
		t.Errorf("after it was abandoned the delivery count is %d, want 3", m.DeliveryCount)
	}
	if err := q.DeferMessage(q.ctx, m, nil); err != nil {
		t.Fatal(err)
	}
	if m = q.deferred(number); m.DeliveryCount != 4 {
		t.Errorf("after it was deferred again the delivery count is %d, want 4", m.DeliveryCount)
	}
	q.complete(m)
}

// peeked checks the state of the only message.
func (q *queue) peeked(want azservicebus.MessageState) {
	q.t.Helper()
	ms, err := q.PeekMessages(q.ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: ptr(int64(1))})
	if err != nil || len(ms) != 1 || ms[0].State != want {
		q.t.Fatalf("peek: %d messages, %v, want one in state %d; got %+v", len(ms), err, want, ms)
	}
}

// The last delivery that a message may have ends among the dead letters, also if
// it ends by deferring.
func TestDeferringOnceTooOftenMakesADeadLetter(t *testing.T) {
	t.Parallel()
	q := open(t, "deferring-once")
	q.send("a")
	q.deferOne()
	m := take(t, q.ctx, q.deadLetters(), 1)[0]
	if m.DeadLetterReason == nil || *m.DeadLetterReason != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letter for %v, want MaxDeliveryCountExceeded", m.DeadLetterReason)
	}
	q.complete(m)
}

// A deferred message that has expired is not delivered on request, but dropped
// or dead-lettered.
func TestExpiredDeferredMessages(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]bool{"deferred-expiring": true, "deferred-dropped": false} {
		q := open(t, name)
		q.sendMessage(&azservicebus.Message{Body: []byte("late"), TimeToLive: ptr(500 * time.Millisecond)})
		number := q.deferOne()
		<-time.After(700 * time.Millisecond)
		if ms, err := q.ReceiveDeferredMessages(q.ctx, []int64{number}, nil); err == nil && len(ms) > 0 {
			t.Errorf("%s: received %q, which has expired", name, bodies(ms))
			continue
		}
		if ms, err := q.PeekMessages(q.ctx, 1, nil); err != nil || len(ms) != 0 {
			t.Errorf("%s: peek shows %q, %v after it was requested", name, bodies(ms), err)
		}
		if dead {
			m := take(t, q.ctx, q.deadLetters(), 1)[0]
			if m.DeadLetterReason == nil || *m.DeadLetterReason != "TTLExpiredException" {
				t.Errorf("dead letter for %v, want TTLExpiredException", m.DeadLetterReason)
			}
		}
	}
}

// The effective time to live is shown: the entity's if the sender set none or a
// longer one.
func TestEffectiveTimeToLiveIsShown(t *testing.T) {
	t.Parallel()
	q := open(t, "short-lived")
	for _, c := range []struct {
		sent *time.Duration
		want time.Duration
	}{{nil, time.Hour}, {ptr(2 * time.Hour), time.Hour}, {ptr(1000 * time.Hour * 24 * 60), time.Hour}, {ptr(30 * time.Minute), 30 * time.Minute}} {
		q.sendMessage(&azservicebus.Message{Body: []byte("a"), TimeToLive: c.sent})
		seen, err := q.PeekMessages(q.ctx, 1, &azservicebus.PeekMessagesOptions{FromSequenceNumber: ptr(int64(1))})
		if err != nil || len(seen) != 1 {
			t.Fatalf("peek: %q, %v", bodies(seen), err)
		}
		m := q.one()
		for how, m := range map[string]*azservicebus.ReceivedMessage{"peeked": seen[0], "received": m} {
			if m.TimeToLive == nil || *m.TimeToLive != c.want {
				t.Errorf("sent with %v, %s with %v, want %v", text(c.sent), how, text(m.TimeToLive), c.want)
			}
			if m.ExpiresAt == nil || m.ExpiresAt.Sub(*m.EnqueuedTime) != c.want {
				t.Errorf("sent with %v, %s to expire at %v, want %v after %v", text(c.sent), how, text(m.ExpiresAt), c.want, text(m.EnqueuedTime))
			}
		}
		q.complete(m)
	}
	q = open(t, "long-lived")
	q.send("a")
	if m := q.one(); m.TimeToLive == nil || *m.TimeToLive != 0 { // which is how the SDK shows that there is none
		t.Errorf("without a limit the time to live is %v, want none", text(m.TimeToLive))
	}
}

func text[T any](p *T) string {
	if p == nil {
		return "none"
	}
	return fmt.Sprint(*p)
}

// Forwarding to an entity that does not exist is rejected, at creation and at a
// change.
func TestForwardingToNothingIsRefused(t *testing.T) {
	t.Parallel()
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	none := ptr("no-such-target")
	if _, err := c.CreateTopic(ctx, "forward-topic", nil); err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]admin.QueueProperties{"forwardTo": {ForwardTo: none}, "forwardDeadLetteredMessagesTo": {ForwardDeadLetteredMessagesTo: none}} {
		_, err := c.CreateQueue(ctx, "forward-nowhere", &admin.CreateQueueOptions{Properties: &p})
		wantStatus(t, "create a queue with "+what, err, http.StatusBadRequest, "no-such-target")
		sp := admin.SubscriptionProperties{ForwardTo: p.ForwardTo, ForwardDeadLetteredMessagesTo: p.ForwardDeadLetteredMessagesTo}
		_, err = c.CreateSubscription(ctx, "forward-topic", "nowhere", &admin.CreateSubscriptionOptions{Properties: &sp})
		wantStatus(t, "create a subscription with "+what, err, http.StatusBadRequest, "no-such-target")
	}
	q, err := c.CreateQueue(ctx, "forward-somewhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.ForwardTo = none
	_, err = c.UpdateQueue(ctx, "forward-somewhere", q.QueueProperties, nil)
	wantStatus(t, "update a queue with forwardTo", err, http.StatusBadRequest, "no-such-target")
	q.ForwardTo, q.ForwardDeadLetteredMessagesTo = nil, none
	_, err = c.UpdateQueue(ctx, "forward-somewhere", q.QueueProperties, nil)
	wantStatus(t, "update a queue with forwardDeadLetteredMessagesTo", err, http.StatusBadRequest, "no-such-target")
	s, err := c.CreateSubscription(ctx, "forward-topic", "somewhere", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.ForwardTo = none
	_, err = c.UpdateSubscription(ctx, "forward-topic", "somewhere", s.SubscriptionProperties, nil)
	wantStatus(t, "update a subscription with forwardTo", err, http.StatusBadRequest, "no-such-target")
	s.ForwardTo, s.ForwardDeadLetteredMessagesTo = nil, none
	_, err = c.UpdateSubscription(ctx, "forward-topic", "somewhere", s.SubscriptionProperties, nil)
	wantStatus(t, "update a subscription with forwardDeadLetteredMessagesTo", err, http.StatusBadRequest, "no-such-target")
}

// A forwarded message shows its first sequence number.
func TestForwardedMessagesShowTheirFirstNumber(t *testing.T) {
	t.Parallel()
	last := open(t, "forward-last")
	first := open(t, "forward-first")
	first.send("a", "b")
	for i, m := range last.receive(2) {
		if m.EnqueuedSequenceNumber == nil || *m.EnqueuedSequenceNumber != int64(i+1) {
			t.Errorf("message %d was enqueued first as %v, want %d", i, text(m.EnqueuedSequenceNumber), i+1)
		}
		last.complete(m)
	}
	last.send("other") // moves the numbers of the two queues apart
	last.complete(last.one())
	first.send("c")
	m := last.one()
	if m.EnqueuedSequenceNumber == nil || *m.EnqueuedSequenceNumber != 3 || *m.SequenceNumber != 4 {
		t.Errorf("message is number %d, enqueued first as %v, want 4 and 3", *m.SequenceNumber, text(m.EnqueuedSequenceNumber))
	}
	last.complete(m)
}

// The statements of an action need nothing but white space between them.
func TestActionWithoutSemicolons(t *testing.T) {
	t.Parallel()
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "action-topic", nil); err != nil {
		t.Fatal(err)
	}
	_, err := c.CreateSubscription(ctx, "action-topic", "s", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		DefaultRule: &admin.RuleProperties{Name: "r", Filter: &admin.TrueFilter{}, Action: &admin.SQLAction{Expression: "SET a = 1 SET b = 'two'\nREMOVE c"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, shared.Connection())
	s, err := client.NewSender("action-topic", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SendMessage(ctx, &azservicebus.Message{ApplicationProperties: map[string]any{"c": "x", "d": "kept"}}, nil); err != nil {
		t.Fatal(err)
	}
	r, err := client.NewReceiverForSubscription("action-topic", "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := take(t, ctx, r, 1)[0]
	if got := fmt.Sprint(m.ApplicationProperties); got != "map[RuleName:r a:1 b:two d:kept]" {
		t.Errorf("properties %s, want map[RuleName:r a:1 b:two d:kept]", got)
	}
}

// A message that is dead-lettered without a reason gets no properties for it.
func TestDeadLetterWithoutReason(t *testing.T) {
	t.Parallel()
	q := open(t, "dead-letters-plain")
	for _, o := range []*azservicebus.DeadLetterOptions{nil, {}} {
		q.sendMessage(&azservicebus.Message{Body: []byte("bad"), ApplicationProperties: map[string]any{"kept": "yes"}})
		if err := q.DeadLetterMessage(q.ctx, q.one(), o); err != nil {
			t.Fatal(err)
		}
		m := take(t, q.ctx, q.deadLetters(), 1)[0]
		if got := fmt.Sprint(m.ApplicationProperties); got != "map[kept:yes]" || m.DeadLetterReason != nil || m.DeadLetterErrorDescription != nil {
			t.Errorf("properties %s, reason %v, description %v, want only kept:yes", got, text(m.DeadLetterReason), text(m.DeadLetterErrorDescription))
		}
		q.complete(m)
	}
}

// A queue or subscription that would never deliver a message is rejected.
func TestMaxDeliveryCountOfZeroIsRefused(t *testing.T) {
	t.Parallel()
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	_, err := c.CreateQueue(ctx, "no-deliveries", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{MaxDeliveryCount: ptr(int32(0))}})
	wantStatus(t, "a queue", err, http.StatusBadRequest, "axDeliveryCount")
	if _, err := c.CreateTopic(ctx, "no-deliveries-topic", nil); err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateSubscription(ctx, "no-deliveries-topic", "s", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{MaxDeliveryCount: ptr(int32(0))}})
	wantStatus(t, "a subscription", err, http.StatusBadRequest, "axDeliveryCount")
}

// packageName finds the name of a package of the broker where a text, or a part of
// one, begins.
var packageName = regexp.MustCompile(`(?m)(^|: |')(access|broker|codec|entity|filter|limits|message|policy|queue|servicebus|shard): `)

// Errors over AMQP and HTTP say nothing of the packages that they come from.
func TestErrorsNameNoPackages(t *testing.T) {
	t.Parallel()
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "errors-topic", nil); err != nil {
		t.Fatal(err)
	}
	_, badRule := c.CreateSubscription(ctx, "errors-topic", "s", &admin.CreateSubscriptionOptions{Properties: &admin.SubscriptionProperties{
		DefaultRule: &admin.RuleProperties{Name: "r", Filter: &admin.SQLFilter{Expression: "a ="}},
	}})
	_, badQueue := c.CreateQueue(ctx, "errors", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{LockDuration: ptr("PT1H")}})
	client := connect(t, shared.Connection())
	send := func(to string, m *azservicebus.Message) error {
		s, err := client.NewSender(to, nil)
		if err != nil {
			return err
		}
		return s.SendMessage(ctx, m, nil)
	}
	for what, err := range map[string]error{
		"a rule that is no SQL":            badRule,
		"a lock of an hour":                badQueue,
		"no such entity":                   send("no-such-queue", &azservicebus.Message{}),
		"a message to a dead letter queue": send("long-lived/$DeadLetterQueue", &azservicebus.Message{}),
		"a message id of 200 characters":   send("long-lived", &azservicebus.Message{MessageID: ptr(strings.Repeat("x", 200))}),
	} {
		if err == nil || packageName.MatchString(err.Error()) {
			t.Errorf("%s: %v, want an error that names no packages", what, err)
		}
	}
}

// One property has 32 KB, all have 64 KB.
func TestLimitsOnProperties(t *testing.T) {
	t.Parallel()
	q := open(t, "large-properties")
	kb := func(n int) string { return strings.Repeat("x", n<<10) }
	for what, props := range map[string]map[string]any{
		"one of 33 KB":   {"a": kb(33)},
		"three of 22 KB": {"a": kb(22), "b": kb(22), "c": kb(22)},
	} {
		err := q.SendMessage(q.ctx, &azservicebus.Message{ApplicationProperties: props}, nil)
		if err == nil {
			t.Errorf("%s: sent", what)
		} else if text := err.Error(); packageName.MatchString(text) {
			t.Errorf("%s: the error names our packages: %s", what, text)
		}
	}
	q.sendMessage(&azservicebus.Message{Body: []byte("fits"), ApplicationProperties: map[string]any{"a": kb(31), "b": kb(31)}})
	m := q.one()
	if string(m.Body) != "fits" {
		t.Errorf("received %q", m.Body)
	}
	q.complete(m)
}

// The time to live of a topic applies to its messages, if that of the
// subscription is longer.
func TestTimeToLiveOfTopics(t *testing.T) {
	t.Parallel()
	ctx, c := deadline(t), administer(t, shared.SecureConnection())
	if _, err := c.CreateTopic(ctx, "short-lived-topic", &admin.CreateTopicOptions{Properties: &admin.TopicProperties{DefaultMessageTimeToLive: ptr("PT1H")}}); err != nil {
		t.Fatal(err)
	}
	client := connect(t, shared.Connection())
	want := map[string]time.Duration{"forever": time.Hour, "PT2H": time.Hour, "PT10M": 10 * time.Minute}
	for ttl := range want {
		p := &admin.SubscriptionProperties{DefaultMessageTimeToLive: ptr(ttl)}
		if ttl == "forever" {
			p = nil
		}
		if _, err := c.CreateSubscription(ctx, "short-lived-topic", ttl, &admin.CreateSubscriptionOptions{Properties: p}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := client.NewSender("short-lived-topic", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range []*time.Duration{nil, ptr(3 * time.Hour), ptr(5 * time.Minute)} {
		if err := s.SendMessage(ctx, &azservicebus.Message{TimeToLive: sent}, nil); err != nil {
			t.Fatal(err)
		}
		for name, holds := range want {
			r, err := client.NewReceiverForSubscription("short-lived-topic", name, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
			if err != nil {
				t.Fatal(err)
			}
			if sent != nil {
				holds = min(holds, *sent)
			}
			if m := take(t, ctx, r, 1)[0]; m.TimeToLive == nil || *m.TimeToLive != holds {
				t.Errorf("sent with %s, subscription with %s: received with %s, want %v", text(sent), name, text(m.TimeToLive), holds)
			}
			if err := r.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}
