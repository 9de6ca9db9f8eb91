// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

func seeds(f *testing.F) {
	d := full()
	whole := d.Message()
	f.Add(whole.Bytes())
	f.Add(AppendDelivery(nil, whole, locked()))
	f.Add(AppendBatch(nil, whole, whole))
	forged := Draft{Body: []byte("x"), Annotations: []Pair{{Name: AnnotationOffset, Value: codec.Long(1)}}, Application: []Pair{{Name: "triagemq-state", Value: codec.Int(1)}}}
	f.Add(forged.Message().Bytes())
	for _, s := range []string{
		"", "00537345", "00537740", "005375a00161 005375a00162", "00537645",
		"00800000000000000070c0020141 005375a00161",
		"005372c10602a3016b5401 005374c10602a1016b5401 005378c10602a3016b5401",
		"005373c00603 4040 a10161", "005370c003015600",
		"005378c10602a1016b5401 005375a00161",
	} {
		f.Add(unhex(f, s))
	}
}

// FuzzParse checks that what is accepted stays readable through all that is ever
// done with it.
func FuzzParse(f *testing.F) {
	seeds(f)
	all := []BrokerProperties{{}, locked(), {SequenceNumber: -1, EnqueuedTime: enqueued, DeliveryCount: 300, EnqueuedSequenceNumber: 5, DeadLetterSource: "q", State: StateDeferred}}
	edit := Edit{
		SetTTL: true, TTL: time.Hour,
		Properties:  []Change{{Name: "a", Value: codec.String("b")}, {Name: "k", Remove: true}},
		Annotations: []Change{{Name: "k", Value: codec.Long(1)}},
		Fields:      []FieldChange{{FieldSessionID, codec.String("s")}},
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := Parse(bytes.Clone(in))
		if err != nil {
			return // rejecting is fine, panicking is not
		}
		visit(t, m)
		if got := m.Edit(Edit{}); !bytes.Equal(got, m.Bytes()) {
			t.Fatalf("an empty edit of % x made % x", m.Bytes(), got)
		}
		if own := m.WithoutReserved(); own != m {
			visit(t, own)
			if own.WithoutReserved() != own || own.Size() > m.Size() {
				t.Fatalf("without reserved names % x is % x", m.Bytes(), own.Bytes())
			}
		}
		for _, s := range all {
			out := parse(t, AppendDelivery(nil, m, s))
			visit(t, out)
			if got := out.Header().DeliveryCount; got != s.DeliveryCount {
				t.Fatalf("delivery count %d, want %d", got, s.DeliveryCount)
			}
			if v, _ := out.Annotation(AnnotationSequenceNumber); v.Kind() != codec.KindLong {
				t.Fatalf("sequence number is %v", v.Kind())
			}
			if out.MessageID().IsNull() || !bytes.HasSuffix(out.Bytes(), m.raw[m.end[sectionProperties]:]) {
				t.Fatalf("no id, or the tail changed: % x", out.Bytes())
			}
		}
		edited := parse(t, m.Edit(edit))
		visit(t, edited)
		if h := parse(t, m.Edit(Edit{UnsetPriority: true})).Header(); h.PrioritySet || h.TTL != m.Header().TTL {
			t.Fatalf("header without a priority: %+v", h)
		}
		if s, _ := edited.SessionID(); s != "s" || edited.Header().TTL != time.Hour {
			t.Fatalf("session %q, ttl %v", s, edited.Header().TTL)
		}
		if v, ok := edited.Property("a"); !ok || v.String() != "b" {
			t.Fatalf("property a: %v %t", v, ok)
		}
		if _, ok := edited.Property("k"); ok {
			t.Fatal("property k is still there")
		}
	})
}

// visit reads everything there is to read.
func visit(t *testing.T, m *Message) {
	m.Header()
	for f := range fieldCount {
		if v := m.Field(f); !propertyFields[f].has(v.Kind()) {
			t.Fatalf("field %d is %v", f, v.Kind())
		}
	}
	for _, seq := range []section{sectionDelivery, sectionAnnotations, sectionApplication, sectionFooter} {
		for k, v := range m.pairs(seq) {
			if err := v.Check(); err != nil {
				t.Fatalf("%s: %v", k, err)
			}
			if _, ok := m.find(seq, k); !ok {
				t.Fatalf("%q is listed but not found", k)
			}
		}
	}
	for range m.Data() {
	}
	for v := range m.Sequences() {
		if err := v.Check(); err != nil {
			t.Fatal(err)
		}
	}
	m.Value()
}

func FuzzBatch(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		var ms []*Message
		for m, err := range Batch(bytes.Clone(in)) {
			if err != nil {
				return
			}
			visit(t, m)
			ms = append(ms, m)
		}
		if len(ms) == 0 {
			t.Fatal("neither a message nor an error")
		}
		i := 0
		for m, err := range Batch(AppendBatch(nil, ms...)) {
			if err != nil || !bytes.Equal(m.Bytes(), ms[i].Bytes()) {
				t.Fatalf("message %d after another round: %v", i, err)
			}
			i++
		}
	})
}
