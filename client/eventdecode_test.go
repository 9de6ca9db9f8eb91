// SPDX-License-Identifier: Apache-2.0

package client

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

// slow decodes an event as other messages are decoded.
func slow(t *testing.T, raw []byte) (*Received, bool) {
	t.Helper()
	var m amqp.Message
	if err := m.UnmarshalBinary(raw); err != nil {
		return nil, false
	}
	return decode(&m), true
}

func encodeEvent(t testing.TB, m *amqp.Message) []byte {
	t.Helper()
	raw, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// events are some that decodeEvent takes, and some that it leaves to go-amqp.
func someEvents() (fast, others []*amqp.Message) {
	text, at := "text", time.UnixMilli(1_700_000_000_123).UTC()
	data := [][]byte{[]byte("body")}
	fast = []*amqp.Message{
		{Data: data},
		{Data: [][]byte{{}}},
		{Data: data, Properties: &amqp.MessageProperties{MessageID: "id"}},
		{Data: data, Properties: &amqp.MessageProperties{
			MessageID: "id", To: &text, Subject: &text, ReplyTo: &text, CorrelationID: "c", ContentType: &text,
			ContentEncoding: &text, GroupID: &text, ReplyToGroupID: &text,
		}},
		{Data: data, Header: &amqp.MessageHeader{Durable: true, Priority: 9, TTL: time.Minute, FirstAcquirer: true, DeliveryCount: 3}},
		{Data: data, Header: &amqp.MessageHeader{Durable: true, Priority: 4}},
		{Data: data, Annotations: amqp.Annotations{annotationPartition: "key"}},
		{Data: data, ApplicationProperties: map[string]any{
			"string": "s", "yes": true, "no": false, "null": nil, "time": at, "uuid": amqp.UUID{1, 2},
			"i8": int8(-1), "i16": int16(-2), "i32": int32(-3), "i64": int64(math.MinInt64),
			"u8": uint8(1), "u16": uint16(2), "u32": uint32(math.MaxUint32), "u64": uint64(math.MaxUint64),
			"f32": float32(1.5), "f64": 2.5, "DeadLetterReason": "r", "DeadLetterErrorDescription": "d", "Priority": "high",
		}},
	}
	others = []*amqp.Message{
		{Value: "value"},
		{Data: [][]byte{[]byte("a"), []byte("b")}},
		{Data: data, Properties: &amqp.MessageProperties{MessageID: uint64(7), UserID: []byte("u")}},
		{Data: data, Properties: &amqp.MessageProperties{MessageID: amqp.UUID{1}}},
		{Data: data, Properties: &amqp.MessageProperties{AbsoluteExpiryTime: &at, CreationTime: &at}},
		{Data: data, Annotations: amqp.Annotations{"x-opt-other": int64(1), annotationPartition: "key"}},
		{Data: data, ApplicationProperties: map[string]any{"bytes": []byte("b"), "s": "s"}},
		{Data: data, Footer: amqp.Annotations{"f": "f"}},
	}
	return fast, others
}

// However an event is decoded, its reader gets the same.
func TestEventsAreDecodedAlike(t *testing.T) {
	fast, others := someEvents()
	for i, m := range append(fast, others...) {
		raw := encodeEvent(t, m)
		var got Received
		if ok := decodeEvent(&got, raw); ok != (i < len(fast)) {
			t.Errorf("%+v: decoded in the short way: %v", m, ok)
			continue
		} else if !ok {
			continue
		}
		if want, _ := slow(t, raw); !reflect.DeepEqual(&got, want) {
			t.Errorf("decoded %+v\nwant    %+v", got, *want)
		}
	}
}

func FuzzEventsAreDecodedAlike(f *testing.F) {
	fast, others := someEvents()
	for _, m := range append(fast, others...) {
		f.Add(encodeEvent(f, m))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got Received
		if !decodeEvent(&got, raw) {
			return
		}
		// What go-amqp refuses no broker of ours stores.
		if want, ok := slow(t, raw); ok && !reflect.DeepEqual(&got, want) {
			t.Errorf("decoded %+v\nwant    %+v", got, *want)
		}
	})
}

// One who keeps a text of an event does not keep its delivery.
func TestTextsOfEventsAreCopies(t *testing.T) {
	raw := encodeEvent(t, &amqp.Message{
		Data: [][]byte{[]byte("body")}, Properties: &amqp.MessageProperties{MessageID: "id"}, ApplicationProperties: map[string]any{"k": "v"},
	})
	var e Received
	if !decodeEvent(&e, raw) {
		t.Fatal("not decoded")
	}
	for i := range raw {
		raw[i] = 'x'
	}
	if e.ID != "id" || e.Properties["k"] != "v" {
		t.Errorf("ID %q, properties %v share the delivery", e.ID, e.Properties)
	}
	if len(e.Body) != cap(e.Body) {
		t.Error("what is appended to the body overwrites the next event")
	}
}
