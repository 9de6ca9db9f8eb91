// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

func TestAttachIsRefused(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	settled := &amqp.ReceiverOptions{RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr()}
	session := peekLock()
	session.Filters = []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, 0x137000000C, "x")}
	tests := []struct {
		name      string
		attach    func(s *amqp.Session) error
		condition string
		text      string
	}{
		{"sender to nothing", sendTo(p, "none"), "amqp:not-found", "The messaging entity 'sb://"},
		{"receiver from nothing", receiveFrom(p, "none", nil), "amqp:not-found", "The messaging entity 'sb://"},
		{"management of nothing", sendTo(p, "none/$management"), "amqp:not-found", ""},
		{"sender to a subscription", sendTo(p, "t/Subscriptions/s"), "amqp:not-allowed", ""},
		{"sender to dead letters", sendTo(p, "q/$DeadLetterQueue"), "amqp:not-allowed", ""},
		{"receiver from a topic", receiveFrom(p, "t", nil), "amqp:not-allowed", ""},
		{"receiver without session", receiveFrom(p, "sessions", settled), "amqp:not-allowed",
			"It is not possible for an entity that requires sessions to create a non-sessionful message receiver."},
		{"session of a plain queue", receiveFrom(p, "q", session), "amqp:not-allowed", ""},
		{"sender to a disabled queue", sendTo(p, "off"), "com.microsoft:entity-disabled", "is currently disabled."},
		{"dynamic node that is gone", sendTo(p, "$temporary/0123"), "amqp:not-found", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := wantCondition(t, tt.name, tt.attach(p.session()), tt.condition)
			if !strings.Contains(e.Description, tt.text) {
				t.Errorf("text %q, want it to contain %q", e.Description, tt.text)
			}
		})
	}
}

func sendTo(p *peerOf, addr string) func(*amqp.Session) error {
	return func(s *amqp.Session) error {
		_, err := s.NewSender(p.ctx(), addr, nil)
		return err
	}
}

func receiveFrom(p *peerOf, addr string, o *amqp.ReceiverOptions) func(*amqp.Session) error {
	return func(s *amqp.Session) error {
		_, err := s.NewReceiver(p.ctx(), addr, o)
		return err
	}
}

func TestDeliveryIsWhatSDKsExpect(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	sent := amqp.NewMessage([]byte("body"))
	sent.Header = &amqp.MessageHeader{Durable: true, Priority: 9}
	sent.Properties = &amqp.MessageProperties{MessageID: "id"}
	sent.Annotations = amqp.Annotations{"x-mine": "kept"}
	before := time.Now().Add(-time.Second)
	p.send("q", sent)

	m := p.next(p.receiver("q", peekLock()))
	if got := string(m.GetData()); got != "body" {
		t.Errorf("body %q, want %q", got, "body")
	}
	if m.Header == nil || !m.Header.Durable || m.Header.Priority != 9 || m.Header.DeliveryCount != 0 {
		t.Errorf("header %+v", m.Header)
	}
	if m.Properties == nil || m.Properties.MessageID != "id" {
		t.Errorf("properties %+v", m.Properties)
	}
	if got, ok := m.Annotations["x-opt-sequence-number"].(int64); !ok || got != 1 {
		t.Errorf("sequence number %T %[1]v, want int64 1", m.Annotations["x-opt-sequence-number"])
	}
	for _, key := range []string{"x-opt-enqueued-time", "x-opt-locked-until"} {
		if at, ok := m.Annotations[key].(time.Time); !ok || at.Before(before) {
			t.Errorf("%s is %T %[2]v, want a time from now on", key, m.Annotations[key])
		}
	}
	if m.Annotations["x-mine"] != "kept" || len(m.Annotations) != 4 {
		t.Errorf("annotations %v, want the sender's and three more", m.Annotations)
	}
	token, ok := m.DeliveryAnnotations["x-opt-lock-token"].(amqp.UUID)
	if !ok {
		t.Fatalf("lock token is %T, want a uuid", m.DeliveryAnnotations["x-opt-lock-token"])
	}
	swapped := message.GUIDFromRFC([16]byte(token))
	if !bytes.Equal(m.DeliveryTag, swapped[:]) {
		t.Errorf("tag % x, want % x: the token in the order of .NET", m.DeliveryTag, swapped)
	}
}

func TestReceiveAndDelete(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "once"})
	r := p.receiver("q", &amqp.ReceiverOptions{RequestedSenderSettleMode: amqp.SenderSettleModeSettled.Ptr(), Credit: -1})
	m := p.next(r)
	if m.Value != "once" || len(m.DeliveryTag) != 16 || m.DeliveryAnnotations != nil {
		t.Errorf("got %+v, want the message with a tag of 16 bytes and no lock", m)
	}
	if _, locked := m.Annotations["x-opt-locked-until"]; locked {
		t.Error("a pre-settled message has a lock")
	}
	rt, err := b.broker.Runtime(p.ctx(), "q")
	if err != nil || rt.Active != 0 {
		t.Errorf("left in the queue: %d, %v, want 0", rt.Active, err)
	}
}

func TestSettlement(t *testing.T) {
	tests := []struct {
		name   string
		settle func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error
		active int64
		dead   int64
		defers int64
		count  uint32 // header's delivery count when it comes again
	}{
		{"complete", func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error {
			return r.AcceptMessage(ctx, m)
		}, 0, 0, 0, 0},
		{"release", func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error {
			return r.ReleaseMessage(ctx, m)
		}, 1, 0, 0, 0},
		{"abandon", func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error {
			return r.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{Annotations: amqp.Annotations{"new": int32(1)}})
		}, 1, 0, 0, 1},
		{"defer", func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error {
			return r.ModifyMessage(ctx, m, &amqp.ModifyMessageOptions{UndeliverableHere: true})
		}, 0, 0, 1, 0},
		{"dead-letter without a reason", func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error {
			return r.RejectMessage(ctx, m, nil)
		}, 0, 1, 0, 0},
		{"dead-letter", func(ctx context.Context, r *amqp.Receiver, m *amqp.Message) error {
			return r.RejectMessage(ctx, m, &amqp.Error{Condition: names.DeadLetter, Info: map[string]any{
				keyReason: "why", keyDescription: "because", "new": int32(1),
			}})
		}, 0, 1, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t)
			p := b.login(t, rootRule)
			p.send("q", &amqp.Message{Value: "x", ApplicationProperties: map[string]any{"old": "value"}})
			r := p.receiver("q", peekLock())
			if err := tt.settle(p.ctx(), r, p.next(r)); err != nil {
				t.Fatalf("settle: %v", err)
			}
			rt, err := b.broker.Runtime(p.ctx(), "q")
			if err != nil {
				t.Fatal(err)
			}
			if rt.Active != tt.active || rt.Dead != tt.dead || rt.Deferred != tt.defers || rt.Locked != 0 {
				t.Fatalf("counts %+v, want active %d, dead %d, deferred %d", rt.Counts, tt.active, tt.dead, tt.defers)
			}
			if tt.active > 0 {
				m := p.next(r)
				if m.Header.DeliveryCount != tt.count {
					t.Errorf("delivery count %d, want %d", m.Header.DeliveryCount, tt.count)
				}
				if tt.name == "abandon" && (m.ApplicationProperties["new"] != int32(1) || m.ApplicationProperties["old"] != "value") {
					t.Errorf("properties %v, want the old one and the new one", m.ApplicationProperties)
				}
			}
			if tt.name == "dead-letter" {
				m := p.next(p.receiver("q/$DeadLetterQueue", peekLock()))
				ps := m.ApplicationProperties
				if ps[keyReason] != "why" || ps[keyDescription] != "because" || ps["new"] != int32(1) {
					t.Errorf("properties of the dead letter: %v", ps)
				}
			}
		})
	}
}

func TestSettlingALostLock(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "x"})
	r := p.receiver("q", peekLock())
	m := p.next(r)
	token := m.DeliveryAnnotations["x-opt-lock-token"]
	body := map[string]any{"lock-tokens": []amqp.UUID{token.(amqp.UUID)}, "disposition-status": "completed"}
	p.rpc("q/$management").manage("update-disposition", body, 200)

	err := r.AcceptMessage(p.ctx(), m)
	e := wantCondition(t, "complete again", err, "com.microsoft:message-lock-lost")
	if e.Description != textLockLost {
		t.Errorf("text %q, want %q", e.Description, textLockLost)
	}
}

func TestDrainIsAnsweredWhenThereIsNothing(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: "only one"})
	r := p.receiver("q", peekLock())
	if err := r.IssueCredit(10); err != nil {
		t.Fatal(err)
	}
	if m, err := r.Receive(p.ctx(), nil); err != nil || m.Value != "only one" {
		t.Fatalf("receive: %v, %v", m, err)
	}
	if err := r.DrainCredit(p.ctx(), nil); err != nil {
		t.Fatalf("drain: %v", err)
	}
	p.send("q", &amqp.Message{Value: "next"})
	if m := p.next(r); m.Value != "next" {
		t.Fatalf("after draining: %v", m.Value)
	}
}

func TestBatchIsUnpacked(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	envelope := &amqp.Message{Format: uint32(message.FormatBatch)}
	for i := range 3 {
		inner, err := (&amqp.Message{Value: fmt.Sprint("message ", i)}).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		envelope.Data = append(envelope.Data, inner)
	}
	p.send("q", envelope)
	r := p.receiver("q", peekLock())
	for i := range 3 {
		if m := p.next(r); m.Value != fmt.Sprint("message ", i) || m.Format != 0 {
			t.Errorf("message %d: %v in format %d", i, m.Value, m.Format)
		}
	}

	envelope.Data = [][]byte{envelope.Data[0], []byte("rubbish")}
	err := p.sender("q").Send(p.ctx(), envelope, nil)
	wantCondition(t, "batch with rubbish in it", err, "amqp:decode-error")
	if rt, _ := b.broker.Runtime(p.ctx(), "q"); rt.Active != 3 {
		t.Errorf("%d messages, want 3: a batch is stored whole or not at all", rt.Active)
	}
}

func TestSenderLearnsTheLimits(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	s := p.sender("q")
	if got := s.MaxMessageSize(); got != 256<<10 {
		t.Errorf("max-message-size %d, want %d", got, 256<<10)
	}
	err := s.Send(p.ctx(), amqp.NewMessage(make([]byte, 300<<10)), nil)
	wantCondition(t, "too large", err, "amqp:link:message-size-exceeded")
}

func TestMessageWithoutSessionIsRejected(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	err := p.sender("sessions").Send(p.ctx(), &amqp.Message{Value: "x"}, nil)
	wantCondition(t, "no session", err, "amqp:not-allowed")
}

func TestDeletedEntityDetachesItsLinks(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	r := p.receiver("q", peekLock())
	if err := b.broker.DeleteQueue(p.ctx(), "q"); err != nil {
		t.Fatal(err)
	}
	_, err := r.Receive(p.ctx(), nil)
	wantCondition(t, "receive from a deleted queue", err, "amqp:not-found")
}

// A message that a receiver cannot take must not come to it again without limit.
func TestMessageLargerThanTheReceiverTakesBecomesADeadLetter(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", &amqp.Message{Value: strings.Repeat("x", 2000)})
	p.send("q", &amqp.Message{Value: "small"})
	r := p.receiver("q", &amqp.ReceiverOptions{MaxMessageSize: 1000, Credit: -1})
	if m := p.next(r); m.Value != "small" {
		t.Errorf("got %v, want the small one", m.Value)
	}
	dead := p.receiver("q/$DeadLetterQueue", &amqp.ReceiverOptions{Credit: -1})
	if m := p.next(dead); m.ApplicationProperties["DeadLetterReason"] != "MaxDeliveryCountExceeded" {
		t.Errorf("dead letter with %v", m.ApplicationProperties)
	}
}
