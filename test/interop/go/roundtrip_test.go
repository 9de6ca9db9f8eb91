// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// A message is received with exactly the sections it was sent with, plus the
// four annotations of a delivery.
func TestExactRoundTrip(t *testing.T) {
	t.Parallel()
	q := open(t, "roundtrip")
	sent := &azservicebus.AMQPAnnotatedMessage{
		ApplicationProperties: map[string]any{
			"bool": true, "int8": int8(-1), "int16": int16(-2), "int32": int32(-3), "int64": int64(-4),
			"uint8": uint8(1), "uint16": uint16(2), "uint32": uint32(3), "uint64": uint64(4),
			"float32": float32(1.5), "float64": 2.5, "string": "text",
			"time": time.UnixMilli(1709209815123), // local time, as the SDK decodes it
		},
		Body:                azservicebus.AMQPAnnotatedMessageBody{Data: [][]byte{[]byte("hello "), []byte("world")}},
		DeliveryAnnotations: map[any]any{"x-opt-delivery-test": "delivery"},
		MessageAnnotations:  map[any]any{"x-opt-message-test": "annotation"},
		Footer:              map[any]any{"x-opt-footer-test": "footer"},
		Header:              &azservicebus.AMQPAnnotatedMessageHeader{Priority: 100, Durable: true, TTL: time.Hour},
		Properties: &azservicebus.AMQPAnnotatedMessageProperties{
			MessageID: "message-id", UserID: []byte("user"), To: new("to"), Subject: new("subject"), ReplyTo: new("reply"),
			CorrelationID: "correlation", ContentType: new("text/plain"), ContentEncoding: new("utf-8"),
			GroupID: new("group"), GroupSequence: new(uint32(3)), ReplyToGroupID: new("reply-group"),
		},
	}
	if err := q.SendAMQPAnnotatedMessage(q.ctx, sent, nil); err != nil {
		t.Fatal(err)
	}
	m := q.one()
	got := m.RawAMQPMessage
	same(t, "application properties", got.ApplicationProperties, sent.ApplicationProperties)
	same(t, "body", got.Body, sent.Body)
	same(t, "footer", got.Footer, sent.Footer)
	same(t, "properties", got.Properties, sent.Properties)
	if h := got.Header; h == nil || h.Priority != 100 || !h.Durable || h.TTL != time.Hour || h.FirstAcquirer || h.DeliveryCount != 0 {
		t.Errorf("header %+v", h)
	}
	keys(t, "delivery annotations", got.DeliveryAnnotations, "x-opt-delivery-test", "x-opt-lock-token")
	keys(t, "message annotations", got.MessageAnnotations,
		"x-opt-enqueued-time", "x-opt-locked-until", "x-opt-message-test", "x-opt-sequence-number")
	q.complete(m)
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s arrived as\n%#v, want\n%#v", what, got, want)
	}
}

func keys(t *testing.T, what string, got map[any]any, want ...string) {
	t.Helper()
	names := make([]string, 0, len(got))
	for k := range maps.Keys(got) {
		names = append(names, fmt.Sprint(k))
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("%s are %q, want %q", what, names, want)
	}
}

// Every kind of body survives, and so does having none.
func TestBodies(t *testing.T) {
	t.Parallel()
	q := open(t, "bodies")
	for _, body := range []azservicebus.AMQPAnnotatedMessageBody{
		{Data: [][]byte{[]byte("one")}},
		{Data: [][]byte{[]byte("one"), []byte("two")}},
		{Sequence: [][]any{{"a", int64(1)}, {"b"}}},
		{Value: "text"},
		{Value: int64(42)},
		{Value: map[string]any{"k": "v"}},
		{Value: []int64{1, 2, 3}},
		{Value: []any{"mixed", int64(1), true}},
		{}, // no body section at all
	} {
		err := q.SendAMQPAnnotatedMessage(q.ctx, &azservicebus.AMQPAnnotatedMessage{Body: body}, nil)
		if err != nil {
			t.Fatalf("send %+v: %v", body, err)
		}
		m := q.one()
		same(t, "body", m.RawAMQPMessage.Body, body)
		q.complete(m)
	}
	// What the SDK makes of a plain message without a body is empty, too.
	q.sendMessage(&azservicebus.Message{})
	m := q.one()
	if len(m.Body) != 0 {
		t.Errorf("empty body arrived as %q", m.Body)
	}
	q.complete(m)
}

func TestReceiveResendReceive(t *testing.T) {
	t.Parallel()
	q := open(t, "resend")
	q.sendMessage(&azservicebus.Message{
		Body: []byte("x"), PartitionKey: new("same"), SessionID: new("same"), TimeToLive: ptr(time.Hour),
		ScheduledEnqueueTime: new(time.Now().Add(-time.Minute)),
	})
	for range 2 {
		m := q.one()
		if *m.PartitionKey != "same" || *m.SessionID != "same" || *m.TimeToLive != time.Hour || m.ScheduledEnqueueTime == nil {
			t.Errorf("partition %v, session %v, time to live %v, scheduled %v", *m.PartitionKey, *m.SessionID, *m.TimeToLive, m.ScheduledEnqueueTime)
		}
		q.sendMessage(m.Message())
		q.complete(m)
	}
	q.complete(q.one())
}
