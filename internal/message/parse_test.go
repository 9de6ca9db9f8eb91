// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, raw string
		want      error
	}{
		{"not described", "a10161", ErrSection},
		{"half a descriptor", "0053", ErrSection},
		{"descriptor alone", "005370", codec.ErrShort},
		{"a performative", "00531445", ErrSection},
		{"unknown section", "00537940", ErrSection},
		{"unknown symbol", "00a3017840", ErrSection},
		{"header twice", "00537045 00537045", ErrOrder},
		{"delivery-annotations twice", "005371c10100 005372c10100 005371c10100", ErrOrder},
		{"delivery-annotations twice after message-annotations", "005372c10100 005371c10100 005371c10100", ErrOrder},
		{"message-annotations on both sides", "005372c10100 005371c10100 005372c10100", ErrOrder},
		{"delivery-annotations after the body", "005372c10100 005375a000 005371c10100", ErrOrder},
		{"delivery-annotations after the body, spelled otherwise", "00800000000000000070 45 005375a000 005371c10100", ErrOrder},
		{"header after properties", "00537345 00537045", ErrOrder},
		{"properties after the body", "005375a000 00537345", ErrOrder},
		{"body on both sides of the footer", "005375a000 005378c10100 005375a000", ErrOrder},
		{"footer on both sides of the body", "005378c10100 005375a000 005378c10100", ErrOrder},
		{"data and value after the footer", "005378c10100 005375a000 00537740", ErrOrder},
		{"properties after the footer", "005378c10100 00537345", ErrOrder},
		{"footer twice", "005378c10100 005378c10100", ErrOrder},
		{"data, then sequence", "005375a000 00537645", ErrOrder},
		{"sequence, then value", "00537645 00537740", ErrOrder},
		{"value twice", "00537740 00537740", ErrOrder},
		{"header is a map", "005370c10100", ErrField},
		{"header is null", "00537040", ErrField},
		{"durable is a string", "005370c00401a10161", ErrField},
		{"priority is a uint", "005370c00402405201", ErrField},
		{"six header fields", "005370c0070640404040 4040", ErrField},
		{"bytes behind the header fields", "005370c003014040", codec.ErrCount},
		{"header field cut short", "005370c0020156", codec.ErrShort},
		{"message-id is an int", "005373c003015401", ErrField},
		{"to is a binary", "005373c005034040a000", ErrField},
		{"fourteen properties", "005373c00f0e" + "4040404040404040404040404040", ErrField},
		{"annotations are a list", "00537245", ErrField},
		{"annotation key is an int", "005372c1040254014340", ErrField},
		{"annotation without value", "005372c10401a3016b", codec.ErrCount},
		{"annotation value cut short", "005372c10602a3016b7100", codec.ErrShort},
		{"broken list in an annotation", "005372c10702a3016bc00101", codec.ErrCount},
		{"property key is a ulong", "005374c1040253014343", ErrField},
		{"data is a string", "005375a10161", ErrField},
		{"data beyond the end", "005375b0ffffffff61", codec.ErrShort},
		{"sequence is a map", "005376c10100", ErrField},
		{"broken list in a value", "005377c00302523f", codec.ErrShort},
		{"footer is a list", "00537845", ErrField},
	}
	for _, tt := range tests {
		if m, err := Parse(unhex(t, tt.raw)); !errors.Is(err, tt.want) || m != nil {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestEveryTruncationIsRefusedOrComplete(t *testing.T) {
	d := full()
	raw := d.Encode(nil)
	whole := parse(t, raw)
	boundaries := map[int]bool{0: true, len(raw): true}
	for _, end := range whole.end {
		boundaries[int(end)] = true
	}
	for n := range len(raw) + 1 {
		if _, err := Parse(raw[:n]); (err == nil) != boundaries[n] {
			t.Errorf("first %d bytes: error %v, at the end of a section %t", n, err, boundaries[n])
		}
	}
}

func TestOtherDescriptorsAreRespelled(t *testing.T) {
	symbol := func(s string) string { return "00a3" + hex.EncodeToString(append([]byte{byte(len(s))}, s...)) }
	want := unhex(t, "005370c0020141 005373c00401a10161 005375a00162")
	for _, in := range []string{
		"00800000000000000070c0020141 005373c00401a10161 005375a00162",
		symbol("amqp:header:list") + "c0020141" + symbol("amqp:properties:list") + "c00401a10161" + symbol("amqp:data:binary") + "a00162",
	} {
		m := parse(t, unhex(t, in))
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("%s became %x, want %x", in, m.Bytes(), want)
		}
		if m.MessageIDString() != "a" || !m.Header().Durable {
			t.Errorf("%s: id %q, header %+v", in, m.MessageIDString(), m.Header())
		}
	}
}

// rhea writes the footer before the body, in every message that has one.
func TestFooterBeforeTheBodyIsMovedBehindIt(t *testing.T) {
	const footer = "005378d10000000900000002a101615201"
	for _, body := range []string{"005377a1026869", "005375a00161 005375a00162", "00537645"} {
		want := unhex(t, "00537045 00537345"+body+footer)
		if m := parse(t, unhex(t, "00537045 00537345"+footer+body)); !bytes.Equal(m.Bytes(), want) {
			t.Errorf("became %x, want %x", m.Bytes(), want)
		}
	}
}

// uAMQP writes delivery-annotations right before the body, also behind the footer. They
// are stored, and delivered, in the order of the specification.
func TestDeliveryAnnotationsAreMovedToTheirPlace(t *testing.T) {
	const header, delivery, annotations = "00537045", "005371c10602a3016b5201", "005372c10602a3016b5202"
	const properties, footer, body = "00537345", "005378c10602a3016b5203", "005375a00161"
	want := parse(t, unhex(t, header+delivery+annotations+properties+body+footer))
	for _, in := range []string{
		header + annotations + delivery + properties + body + footer,
		header + annotations + properties + footer + delivery + body,
		header + annotations + properties + delivery + body + footer,
		"00800000000000000070 45" + annotations + properties + delivery + body + footer,
	} {
		if m := parse(t, unhex(t, in)); !bytes.Equal(m.Bytes(), want.Bytes()) {
			t.Errorf("%s became %x, want %x", in, m.Bytes(), want.Bytes())
		}
	}
	if m := parse(t, unhex(t, annotations+delivery)); !bytes.Equal(m.Bytes(), unhex(t, delivery+annotations)) {
		t.Errorf("annotations alone became %x", m.Bytes())
	}
}

// The SDKs for JavaScript write the body null as a data section of null.
func TestDataMayBeNull(t *testing.T) {
	raw := []byte{0x00, 0x53, codeData, 0x40}
	m, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for data := range m.Data() {
		if n++; len(data) > 0 {
			t.Errorf("data section %q, want none", data)
		}
	}
	if n != 1 || !bytes.Equal(m.raw, raw) {
		t.Errorf("%d data sections in % x, want one in % x", n, m.raw, raw)
	}
}

func TestParseKeepsTheBytes(t *testing.T) {
	// wide encodings everywhere, as some senders use them
	raw := unhex(t, "005370d00000000c000000055601500a40 5600 43"+
		"005373d00000000b00000001b1000000026162"+
		"005374d10000000f00000002b10000000161b100000000"+
		"005375b00000000161")
	m, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if &m.Bytes()[0] != &raw[0] || m.Size() != len(raw) {
		t.Error("the message was copied")
	}
	h := m.Header()
	if !h.Durable || h.Priority != 10 || h.TTLSet || h.FirstAcquirer || m.MessageIDString() != "ab" {
		t.Errorf("header %+v, id %q", h, m.MessageIDString())
	}
	if v, ok := m.Property("a"); !ok || v.Kind() != codec.KindString {
		t.Errorf("property a: %v %t", v, ok)
	}
}

// Repeated sections are rejected before each is moved: a message of many
// megabytes would take hours.
func TestManyMisplacedSectionsAreRefusedAtOnce(t *testing.T) {
	annotations := []byte{0, 0x53, codeAnnotations, 0xc1, 1, 0}
	delivery := []byte{0, 0x53, codeDelivery, 0xc1, 1, 0}
	raw := append(annotations, bytes.Repeat(delivery, 3)...)
	if _, err := Parse(raw); !errors.Is(err, ErrOrder) {
		t.Errorf("got %v, want %v", err, ErrOrder)
	}
	if _, err := respell(raw); !errors.Is(err, ErrOrder) {
		t.Errorf("they were moved one by one: %v, want %v", err, ErrOrder)
	}
}
