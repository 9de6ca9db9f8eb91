// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

func TestEditOfNothingChangesNothing(t *testing.T) {
	d := full()
	m := d.Message()
	if got := m.Edit(Edit{}); !bytes.Equal(got, m.Bytes()) {
		t.Errorf("got  %x\nwant %x", got, m.Bytes())
	}
}

func TestEditChangesOnlyItsSection(t *testing.T) {
	d := full()
	m := d.Message()
	tests := []struct {
		name string
		edit Edit
		s    section
	}{
		{"ttl", Edit{SetTTL: true, TTL: time.Second}, sectionHeader},
		{"priority", Edit{UnsetPriority: true}, sectionHeader},
		{"annotation", Edit{Annotations: []Change{{Name: "a", Value: codec.Int(1)}}}, sectionAnnotations},
		{"field", Edit{Fields: []FieldChange{{FieldTo, codec.String("elsewhere")}}}, sectionProperties},
		{"property", Edit{Properties: []Change{{Name: "a", Value: codec.Int(1)}}}, sectionApplication},
	}
	for _, tt := range tests {
		got := parse(t, m.Edit(tt.edit))
		for s := sectionHeader; s <= sectionFooter; s++ {
			if same := bytes.Equal(got.bytes(s), m.bytes(s)); same == (s == tt.s) {
				t.Errorf("%s: section %d unchanged %t", tt.name, s, same)
			}
		}
	}
}

func TestEditProperties(t *testing.T) {
	d := Draft{Application: []Pair{{"a", codec.Int(1)}, {"b", codec.Int(2)}, {"a", codec.Int(3)}}}
	m := d.Message()
	tests := []struct {
		name    string
		changes []Change
		want    []string
	}{
		{"add", []Change{{Name: "c", Value: codec.String("x")}}, []string{"a int 1", "a int 3", "b int 2", "c string x"}},
		{"replace all of a name", []Change{{Name: "a", Value: codec.Ubyte(9)}}, []string{"a ubyte 9", "b int 2"}},
		{"remove", []Change{{Name: "a", Remove: true}}, []string{"b int 2"}},
		{"remove what is not there", []Change{{Name: "z", Remove: true}}, []string{"a int 1", "a int 3", "b int 2"}},
		{"set null", []Change{{Name: "b"}}, []string{"a int 1", "a int 3", "b null null"}},
		{"last change counts", []Change{{Name: "b", Value: codec.Int(5)}, {Name: "b", Value: codec.Int(6)}, {Name: "a", Value: codec.Int(7)}, {Name: "a", Remove: true}},
			[]string{"b int 6"}},
		{"remove all", []Change{{Name: "a", Remove: true}, {Name: "b", Remove: true}}, nil},
	}
	for _, tt := range tests {
		got := parse(t, m.Edit(Edit{Properties: tt.changes}))
		equal(t, tt.name, show(got, sectionApplication), tt.want)
	}
	if got := m.Edit(Edit{Properties: tests[len(tests)-1].changes}); len(got) != 0 {
		t.Errorf("an empty section stayed: %x", got)
	}
}

func TestEditDeadLetters(t *testing.T) {
	m := parse(t, unhex(t, "005375a00161"))
	got := parse(t, m.Edit(Edit{Properties: []Change{
		{Name: PropertyDeadLetterReason, Value: codec.String("bad")},
		{Name: PropertyDeadLetterDescription, Value: codec.String("very")},
	}}))
	equal(t, "properties", show(got, sectionApplication),
		[]string{"DeadLetterErrorDescription string very", "DeadLetterReason string bad"})
	pairs := got.reader(sectionApplication)
	if k := pairs.Value(); k.Kind() != codec.KindString {
		t.Errorf("key is %v, want string", k.Kind())
	}
}

func TestEditAnnotationsHaveSymbolKeys(t *testing.T) {
	m := parse(t, nil)
	got := parse(t, m.Edit(Edit{Annotations: []Change{{Name: AnnotationPartitionKey, Value: codec.String("p")}}}))
	pairs := got.reader(sectionAnnotations)
	if k := pairs.Value(); k.Kind() != codec.KindSymbol || got.PartitionKey() != "p" {
		t.Errorf("key is %v, partition key %q", k.Kind(), got.PartitionKey())
	}
}

func TestEditFields(t *testing.T) {
	d := full()
	m := d.Message()
	got := parse(t, m.Edit(Edit{Fields: []FieldChange{
		{FieldMessageID, codec.UUID([16]byte{1})},
		{FieldTo, codec.String("elsewhere")},
		{FieldSubject, codec.Value{}},
		{FieldSessionID, codec.String("first")},
		{FieldSessionID, codec.Int(5)},            // becomes text
		{FieldCreationTime, codec.String("soon")}, // not a time
		{Field(99), codec.String("nowhere")},
		{FieldReplyToSessionID, codec.Value{}},
	}}))
	session, _ := got.SessionID()
	for what, s := range map[string][2]string{
		"message-id":     {got.MessageIDString(), "01000000-0000-0000-0000-000000000000"},
		"to":             {got.To(), "elsewhere"},
		"subject":        {got.Subject(), ""},
		"session":        {session, "5"},
		"correlation-id": {got.CorrelationID().String(), "7"},
		"reply-to":       {got.ReplyTo(), "back"},
		"reply session":  {got.ReplyToSessionID(), ""},
	} {
		if s[0] != s[1] {
			t.Errorf("%s: %q, want %q", what, s[0], s[1])
		}
	}
	if !got.CreationTime().Equal(created) {
		t.Errorf("creation time %v, want %v", got.CreationTime(), created)
	}
	bare := Draft{To: "x"}
	if got := bare.Message().Edit(Edit{Fields: []FieldChange{{FieldTo, codec.Value{}}}}); len(got) != 0 {
		t.Errorf("properties without a field stayed: %x", got)
	}
}

func TestEditTTL(t *testing.T) {
	d := full()
	tests := []struct {
		m    *Message
		ttl  time.Duration
		want time.Duration
	}{
		{d.Message(), time.Minute, time.Minute},
		{parse(t, nil), time.Minute, time.Minute},
		{d.Message(), 0, 0},
		{d.Message(), 100 * 24 * time.Hour, math.MaxUint32 * time.Millisecond},
	}
	for _, tt := range tests {
		before := tt.m.Header()
		got := parse(t, tt.m.Edit(Edit{SetTTL: true, TTL: tt.ttl})).Header()
		if got.TTL != tt.want || got.TTLSet != (tt.want > 0) || got.Priority != before.Priority || got.Durable != before.Durable {
			t.Errorf("ttl %v: %+v, before %+v", tt.ttl, got, before)
		}
	}
}

// A value taken off the wire has only its extent checked. One that is invalid
// inside must not get into a message, which others have to decode.
func TestEditDropsInvalidValues(t *testing.T) {
	r := codec.NewReader(unhex(t, "c00302 3f40"))
	invalid := r.Value()
	m := parse(t, nil)
	got := parse(t, m.Edit(Edit{Properties: []Change{{Name: "a", Value: invalid}, {Name: "b", Value: codec.Int(1)}}}))
	equal(t, "properties", show(got, sectionApplication), []string{"b int 1"})
}

func TestEditUnsetsThePriority(t *testing.T) {
	for _, d := range []Draft{
		{PrioritySet: true, TTL: time.Hour}, {PrioritySet: true, Durable: true}, {Priority: 9}, {TTL: time.Hour}, {},
	} {
		want := d
		want.Priority, want.PrioritySet = 0, false
		got := parse(t, d.Message().Edit(Edit{UnsetPriority: true}))
		if h := got.Header(); h != want.Message().Header() || h.PrioritySet || h.Priority != defaultPriority {
			t.Errorf("%+v: %+v, want %+v", d.Message().Header(), h, want.Message().Header())
		}
	}
	d := Draft{PrioritySet: true, TTL: time.Hour}
	if h := parse(t, d.Message().Edit(Edit{UnsetPriority: true, SetTTL: true, TTL: time.Minute})).Header(); h.PrioritySet || h.TTL != time.Minute {
		t.Errorf("both: %+v", h)
	}
}
