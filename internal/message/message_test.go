// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t testing.TB, raw []byte) *Message {
	t.Helper()
	m, err := Parse(raw)
	if err != nil {
		t.Fatalf("parse % x: %v", raw, err)
	}
	return m
}

var (
	created = time.UnixMilli(1700000000123)
	expiry  = time.UnixMilli(1800000000456)
)

// full returns a draft with everything set.
func full() Draft {
	return Draft{
		Durable: true, Priority: 100, TTL: 90 * time.Second,
		DeliveryAnnotations: []Pair{{"hello", codec.String("delivery")}},
		Annotations: []Pair{
			{AnnotationPartitionKey, codec.String("pk")},
			{AnnotationScheduledEnqueueTime, codec.Timestamp(expiry)},
		},
		MessageID: codec.String("id-1"), UserID: []byte("me"), To: "there", Subject: "label",
		ReplyTo: "back", CorrelationID: codec.Ulong(7), ContentType: "text/plain", ContentEncoding: "gzip",
		AbsoluteExpiry: expiry, CreationTime: created, SessionID: "s1", ReplyToSessionID: "s2",
		Application: []Pair{
			{"Priority", codec.String("High")},
			{"ubyte", codec.Ubyte(1)}, {"byte", codec.Byte(-1)}, {"short", codec.Short(-2)},
			{"uuid", codec.UUID([16]byte{1})}, {"when", codec.Timestamp(created)},
			{"float", codec.Float(1.5)}, {"null", codec.Value{}},
		},
		Body: []byte("hello"),
	}
}

func TestFieldsOfAFullMessage(t *testing.T) {
	d := full()
	m := d.Message()
	if got, want := m.Header(), (Header{Durable: true, Priority: 100, PrioritySet: true, TTL: 90 * time.Second, TTLSet: true}); got != want {
		t.Errorf("header %+v, want %+v", got, want)
	}
	session, ok := m.SessionID()
	texts := map[string][2]string{
		"message-id":       {m.MessageIDString(), "id-1"},
		"correlation-id":   {m.CorrelationID().String(), "7"},
		"to":               {m.To(), "there"},
		"subject":          {m.Subject(), "label"},
		"reply-to":         {m.ReplyTo(), "back"},
		"content-type":     {m.ContentType(), "text/plain"},
		"content-encoding": {m.Field(FieldContentEncoding).String(), "gzip"},
		"user-id":          {m.Field(FieldUserID).String(), hex.EncodeToString([]byte("me"))},
		"session":          {session, "s1"},
		"reply session":    {m.ReplyToSessionID(), "s2"},
		"partition key":    {m.PartitionKey(), "pk"},
		"body":             {string(slices.Concat(slices.Collect(m.Data())...)), "hello"},
	}
	for what, s := range texts {
		if s[0] != s[1] {
			t.Errorf("%s: %q, want %q", what, s[0], s[1])
		}
	}
	if !ok || !m.CreationTime().Equal(created) || !m.AbsoluteExpiry().Equal(expiry) {
		t.Errorf("session %t, created %v, expires %v", ok, m.CreationTime(), m.AbsoluteExpiry())
	}
	if at, ok := m.ScheduledEnqueueTime(); !ok || !at.Equal(expiry) {
		t.Errorf("scheduled for %v %t, want %v", at, ok, expiry)
	}
	i := 0
	for name, v := range m.Properties() {
		want := d.Application[i]
		if name != want.Name || v.Kind() != want.Value.Kind() || v.String() != want.Value.String() {
			t.Errorf("property %d: %s = %v %v, want %s = %v %v", i, name, v.Kind(), v, want.Name, want.Value.Kind(), want.Value)
		}
		i++
	}
	if i != len(d.Application) {
		t.Errorf("%d properties, want %d", i, len(d.Application))
	}
}

func TestFieldsOfAnEmptyMessage(t *testing.T) {
	for _, raw := range []string{"", "00537045", "00537345", "005370c00100 005373c00100"} {
		m := parse(t, unhex(t, raw))
		if got, want := m.Header(), (Header{Priority: defaultPriority}); got != want {
			t.Errorf("%q: header %+v, want %+v", raw, got, want)
		}
		if _, ok := m.SessionID(); ok || !m.MessageID().IsNull() || m.MessageIDString() != "" || m.To() != "" {
			t.Errorf("%q: fields out of nothing", raw)
		}
		if !m.CreationTime().IsZero() || !m.AbsoluteExpiry().IsZero() {
			t.Errorf("%q: times out of nothing", raw)
		}
		if _, ok := m.Property("x"); ok {
			t.Errorf("%q: property out of nothing", raw)
		}
	}
}

func TestPropertyNames(t *testing.T) {
	d := Draft{Application: []Pair{{"color", codec.String("red")}, {"Color", codec.String("blue")}}}
	m := d.Message()
	for name, want := range map[string]string{"color": "red", "Color": "blue"} {
		if v, ok := m.Property(name); !ok || v.String() != want {
			t.Errorf("%s: %v %t, want %s", name, v, ok, want)
		}
	}
	if _, ok := m.Property("COLOR"); ok {
		t.Error("Property ignores case")
	}
	if v, ok := m.PropertyFold("COLOR"); !ok || v.String() != "red" {
		t.Errorf("PropertyFold: %v %t, want the first, red", v, ok)
	}
	if _, ok := m.PropertyFold("colour"); ok {
		t.Error("PropertyFold found what is not there")
	}
}

func TestEmptySessionIsASession(t *testing.T) {
	d := Draft{HasSession: true}
	if s, ok := d.Message().SessionID(); s != "" || !ok {
		t.Errorf("session %q %t, want the empty one", s, ok)
	}
}

func TestMessageIDsOfEveryType(t *testing.T) {
	for want, v := range map[string]codec.Value{
		"12":                                   codec.Ulong(12),
		"0aff":                                 codec.Binary([]byte{0x0a, 0xff}),
		"x":                                    codec.String("x"),
		"00112233-4455-6677-8899-aabbccddeeff": codec.UUID([16]byte(unhex(t, "00112233445566778899aabbccddeeff"))),
	} {
		d := Draft{MessageID: v}
		if got := d.Message().MessageIDString(); got != want {
			t.Errorf("%v: %q, want %q", v.Kind(), got, want)
		}
	}
}

func TestBodies(t *testing.T) {
	tests := []struct {
		name, raw                   string
		data, sequences, valueSized int
	}{
		{"none", "", 0, 0, 0},
		{"empty data", "005375a000", 1, 0, 0},
		{"two data", "005375a00161 005375b00000000162", 2, 0, 0},
		{"two sequences", "00537645 005376c0020140", 0, 2, 0},
		{"null value", "00537740", 0, 0, 1},
		{"array value", "005377e0040250 0102", 0, 0, 1},
	}
	for _, tt := range tests {
		m := parse(t, unhex(t, tt.raw))
		data := len(slices.Collect(m.Data()))
		sequences := len(slices.Collect(m.Sequences()))
		_, value := m.Value()
		if data != tt.data || sequences != tt.sequences || value != (tt.valueSized == 1) || m.BodySize() != m.Size() {
			t.Errorf("%s: %d data, %d sequences, value %t, %d of %d bytes", tt.name, data, sequences, value, m.BodySize(), m.Size())
		}
		if !bytes.Equal(m.Bytes(), unhex(t, tt.raw)) {
			t.Errorf("%s: bytes changed", tt.name)
		}
	}
}

func TestGUIDFromRFC(t *testing.T) {
	id := [16]byte(unhex(t, "00112233445566778899aabbccddeeff"))
	want := [16]byte(unhex(t, "33221100554477668899aabbccddeeff"))
	if got := GUIDFromRFC(id); got != want {
		t.Errorf("got %x, want %x", got, want)
	}
	if got := GUIDFromRFC(want); got != id {
		t.Errorf("back: got %x, want %x", got, id)
	}
}
