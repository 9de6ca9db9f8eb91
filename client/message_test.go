// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
)

func TestPriorityOnTheWire(t *testing.T) {
	for _, c := range []struct {
		priority Priority
		level    uint8
		property any
	}{
		{"", 4, nil},
		{Level(0), 0, nil},
		{Level(255), 255, nil},
		{"200", 200, nil},
		{Level(4), 4, int32(4)},
		{High, 4, "high"},
		{"HIGH", 4, "HIGH"},
	} {
		m, err := (&Message{Priority: c.priority}).encode()
		if err != nil {
			t.Fatal(err)
		}
		if got := m.ApplicationProperties[propertyPriority]; m.Header.Priority != c.level || got != c.property {
			t.Errorf("priority %q goes out as level %d, property %v; want %d, %v", c.priority, m.Header.Priority, got, c.level, c.property)
		}
		if back := decode(m).Priority; back != c.priority {
			t.Errorf("priority %q comes back as %q", c.priority, back)
		}
	}
	// The last two are what Priority(9) and Priority(32) make: vet warns, the compiler does not.
	for _, p := range []Priority{"256", "-1", "hgih", "Gold", " high", "\t", " "} {
		if _, err := (&Message{Priority: p}).encode(); !errors.Is(err, ErrInvalid) {
			t.Errorf("priority %q: %v, want %v", p, err, ErrInvalid)
		}
	}
}

// A received message can be sent on with another priority: what its property said of the
// old one does not win. A name that only a policy knows stays.
func TestPriorityReplacesTheProperty(t *testing.T) {
	for _, c := range []struct {
		priority Priority
		own      any
		property any
		back     Priority
	}{
		{"", "low", "low", "low"},
		{High, "low", "high", High},
		{Level(9), "low", int32(9), Level(9)},
		{Level(9), int64(2), int32(9), Level(9)},
		{Level(9), "2", int32(9), Level(9)},
		{Level(9), "gold", "gold", Level(9)},
		{Level(4), "gold", "gold", ""},
		{High, "gold", "high", High},
		{"", " 7 ", " 7 ", Level(7)},
	} {
		m, err := (&Message{Priority: c.priority, Properties: map[string]any{propertyPriority: c.own}}).encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, back := m.ApplicationProperties[propertyPriority], decode(m).Priority; got != c.property || back != c.back {
			t.Errorf("priority %q and property %v: property %v, received as %q; want %v, %q", c.priority, c.own, got, back, c.property, c.back)
		}
	}
}

// A name must not leak into the caller's own map.
func TestEncodingLeavesTheMessageAlone(t *testing.T) {
	properties := map[string]any{"a": "b"}
	m := &Message{Priority: High, Properties: properties}
	if _, err := m.withID().encode(); err != nil {
		t.Fatal(err)
	}
	if len(properties) != 1 || m.ID != "" {
		t.Errorf("after encoding the message is %+v", m)
	}
}

func TestMessageSurvivesTheWire(t *testing.T) {
	sent := Message{
		ID: "id", Body: []byte("body"), Priority: Level(7), Properties: map[string]any{"n": int64(1)}, Session: "s",
		Subject: "subject", CorrelationID: "correlation", ContentType: "text/plain", To: "to", ReplyTo: "reply",
		ReplyToSession: "rs", PartitionKey: "p", TTL: time.Minute, ScheduleAt: time.UnixMilli(1700000000123),
	}
	wire, err := sent.encode()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := wire.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var in amqp.Message
	if err := in.UnmarshalBinary(encoded); err != nil {
		t.Fatal(err)
	}
	if got := decode(&in).Message; !reflect.DeepEqual(got, sent) {
		t.Errorf("came back as %+v\nwant         %+v", got, sent)
	}
}

func TestLongTimeToLive(t *testing.T) {
	const year = 365 * 24 * time.Hour
	wire, err := (&Message{TTL: year}).encode()
	if err != nil {
		t.Fatal(err)
	}
	if wire.Header.TTL != math.MaxUint32*time.Millisecond {
		t.Errorf("the header says %v, want the most it can", wire.Header.TTL)
	}
	if got := decode(wire).TTL; got != year {
		t.Errorf("a year came back as %v", got)
	}
	if _, err := (&Message{TTL: -1}).encode(); !errors.Is(err, ErrInvalid) {
		t.Errorf("negative time to live: %v, want %v", err, ErrInvalid)
	}
}

func TestLockTokenOfATag(t *testing.T) {
	tag := []byte{0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	want := "00112233-4455-6677-8899-aabbccddeeff"
	if got := lockToken(&amqp.Message{DeliveryTag: tag}).String(); got != want {
		t.Errorf("token %s, want %s", got, want)
	}
}

func TestPackFillsBatchesToTheLimit(t *testing.T) {
	var ms []outgoing
	for range 10 {
		ms = append(ms, outgoing{Message: &Message{ID: "x", Body: []byte(strings.Repeat("x", 1000))}})
	}
	ms = append(ms, outgoing{Message: &Message{ID: "huge", Body: make([]byte, 9000)}}, outgoing{Message: &Message{ID: "last"}})
	const limit = 5000
	batches, err := pack(ms, limit)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, in := range batches {
		b := in.wire
		encoded, err := b.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if len(in.messages) != len(b.Data) {
			t.Errorf("a batch with %d messages is said to have %d", len(b.Data), len(in.messages))
		}
		if b.Format != batchFormat {
			sizes = append(sizes, -1)
			continue
		}
		sizes = append(sizes, len(b.Data))
		if len(encoded) > limit {
			t.Errorf("a batch of %d messages has %d bytes, want at most %d", len(b.Data), len(encoded), limit)
		}
	}
	if want := []int{3, 3, 3, 1, -1, 1}; !reflect.DeepEqual(sizes, want) {
		t.Errorf("batches of %v, want %v (-1 is a message on its own)", sizes, want)
	}
}

// A name that our client does not send may come from others, or was sent as a property
// for a policy. It comes back as the property, so that the message can be sent on.
func TestUnknownPriorityCanBeSentOn(t *testing.T) {
	in := &amqp.Message{Header: &amqp.MessageHeader{Priority: 6}, ApplicationProperties: map[string]any{propertyPriority: "Gold"}}
	m := decode(in)
	if m.Priority != Level(6) || m.Properties[propertyPriority] != "Gold" {
		t.Errorf("priority %q, properties %v, want level 6 and the name", m.Priority, m.Properties)
	}
	out, err := m.Message.encode()
	if err != nil || out.Header.Priority != 6 || out.ApplicationProperties[propertyPriority] != "Gold" {
		t.Errorf("sent on: %+v, %v", out, err)
	}
}
