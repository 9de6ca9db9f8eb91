// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	h := open(t, "roundtrip")
	sent := []*azeventhubs.EventData{
		{
			Body: []byte("all of it"), ContentType: to.Ptr("application/json"), CorrelationID: "correlated", MessageID: to.Ptr("id-1"),
			Properties: map[string]any{
				"text": "ä€𝄞", "int64": int64(-1 << 60), "int32": int32(-7), "uint8": uint8(200), "float": 1.25, "yes": true,
				"bytes": []byte{0, 1, 255}, "time": time.UnixMilli(1_700_000_000_123), "empty": "",
			},
		},
		{Body: nil, MessageID: to.Ptr("id-2"), CorrelationID: uint64(1 << 63)},
		{Body: []byte{0, 1, 2, 255}, MessageID: to.Ptr("id-3")},
	}
	if err := h.trySend(&route{PartitionKey: to.Ptr("ключ")}, sent...); err != nil {
		t.Fatal(err)
	}
	for i, e := range h.reader(all, "0", earliest).read(len(sent)) {
		want := sent[i]
		if len(want.Body)+len(e.Body) == 0 {
			want.Body, e.Body = nil, nil // an empty one
		}
		if !reflect.DeepEqual(e.EventData, *want) {
			t.Errorf("event %d is\n%#v, want\n%#v", i, e.EventData, *want)
		}
		if e.PartitionKey == nil || *e.PartitionKey != "ключ" {
			t.Errorf("event %d: key %v", i, e.PartitionKey)
		}
		if e.SequenceNumber != int64(i) || time.Since(*e.EnqueuedTime) > time.Minute {
			t.Errorf("event %d: sequence number %d, of %v", i, e.SequenceNumber, e.EnqueuedTime)
		}
	}
}

// All kinds of bodies and all sections of AMQP that a sender owns.
func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	type body = azeventhubs.AMQPAnnotatedMessageBody
	h := open(t, "bodies")
	r := h.reader(all, "0", earliest)
	for i, b := range []body{
		{Data: [][]byte{[]byte("one")}},
		{Data: [][]byte{[]byte("several"), {}, []byte("sections")}},
		{Value: "text"},
		{Value: int64(42)},
		{Value: map[string]any{"a": int64(1), "b": []any{"x", true}}},
		{Value: []any{"x", int64(2), nil}},
		{Sequence: [][]any{{"a", int64(1)}}},
		{Sequence: [][]any{{"a"}, {"b", false}}},
	} {
		sent := &azeventhubs.AMQPAnnotatedMessage{
			Body: b,
			Properties: &azeventhubs.AMQPAnnotatedMessageProperties{
				MessageID: fmt.Sprint("id-", i), UserID: []byte("user"), To: to.Ptr("to"), Subject: to.Ptr("subject"), ReplyTo: to.Ptr("reply-to"),
				CorrelationID: "correlated", ContentType: to.Ptr("type"), ContentEncoding: to.Ptr("encoding"),
				AbsoluteExpiryTime: to.Ptr(time.UnixMilli(4_000_000_000_000)), CreationTime: to.Ptr(time.UnixMilli(1_600_000_000_000)),
				GroupID: to.Ptr("group"), GroupSequence: to.Ptr(uint32(9)), ReplyToGroupID: to.Ptr("reply-to-group"),
			},
			ApplicationProperties: map[string]any{"a": "b"},
			MessageAnnotations:    map[any]any{"x-opt-mine": "kept", "x-opt-number": int64(5)},
			Footer:                map[any]any{"x-foot": "note"},
		}
		batch, err := h.producer.NewEventDataBatch(h.ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := batch.AddAMQPAnnotatedMessage(sent, nil); err != nil {
			t.Fatal(err)
		}
		if err := h.producer.SendEventDataBatch(h.ctx, batch, nil); err != nil {
			t.Fatal(err)
		}
		got := r.read(1)[0].RawAMQPMessage
		if !reflect.DeepEqual(got.Body, sent.Body) {
			t.Errorf("body %#v, want %#v", got.Body, sent.Body)
		}
		if !reflect.DeepEqual(got.Properties, sent.Properties) {
			t.Errorf("properties %#v, want %#v", got.Properties, sent.Properties)
		}
		if !reflect.DeepEqual(got.ApplicationProperties, sent.ApplicationProperties) || !reflect.DeepEqual(got.Footer, sent.Footer) {
			t.Errorf("application properties %v and footer %v, want %v and %v", got.ApplicationProperties, got.Footer, sent.ApplicationProperties, sent.Footer)
		}
		for k, v := range sent.MessageAnnotations {
			if got.MessageAnnotations[k] != v {
				t.Errorf("annotation %v is %v, want %v", k, got.MessageAnnotations[k], v)
			}
		}
	}
}
