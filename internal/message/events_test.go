// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/limits"
)

// store stores what a client sent, and fails the test if it is refused.
func store(t testing.TB, f Format, raw []byte) ([]byte, Arrival) {
	t.Helper()
	stored, a, err := AppendEvents(nil, f, raw)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return stored, a
}

// deliver returns the events of a stored batch as a receiver gets them.
func deliver(t testing.TB, w *EventWriter, stored []byte, first int64) (ms []*Message) {
	t.Helper()
	for w.Open(stored, first, enqueued); w.Next(); {
		ms = append(ms, parse(t, w.Append(nil)))
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	return ms
}

// withKey returns an event with a partition key and a body.
func withKey(key, body string) *Message {
	d := Draft{Annotations: []Pair{{AnnotationPartitionKey, codec.String(key)}}, Body: []byte(body)}
	return d.Message()
}

func TestEventsAreStoredAsTheyCame(t *testing.T) {
	d := full()
	events := []*Message{d.Message(), withKey("k", "a"), parse(t, nil), parse(t, typical())}
	single, a := store(t, FormatAMQP, events[3].raw)
	if !bytes.Equal(single[1:], events[3].raw) || a != (Arrival{Count: 1}) {
		t.Errorf("a single event is stored as % x with %+v", single, a)
	}
	raw := AppendBatch(nil, events...)
	batch, a := store(t, FormatBatch, raw)
	if !bytes.Equal(batch[1:], raw) || a.Count != len(events) {
		t.Errorf("a batch is not stored as it came: %+v", a)
	}
	var w EventWriter
	for i, got := range deliver(t, &w, batch, 41) {
		sent := events[i]
		if !bytes.Equal(got.raw[got.end[sectionAnnotations]:], sent.raw[sent.end[sectionAnnotations]:]) {
			t.Errorf("event %d has another body", i)
		}
		if !bytes.Equal(got.raw[:got.end[sectionDelivery]], sent.raw[:sent.end[sectionDelivery]]) {
			t.Errorf("event %d has another header", i)
		}
		wantEvent(t, got, int64(41+i))
	}
}

// wantEvent checks the annotations that clients rely on, with the types they insist on.
func wantEvent(t testing.TB, m *Message, seq int64) {
	t.Helper()
	number, _ := m.Annotation(AnnotationSequenceNumber)
	if n, _ := number.Int(); number.Kind() != codec.KindLong || n != seq {
		t.Errorf("sequence number %v %v, want %d", number.Kind(), number, seq)
	}
	offset, _ := m.Annotation(AnnotationOffset)
	if offset.Kind() != codec.KindString || offset.String() != fmt.Sprint(seq) {
		t.Errorf("offset %v %v, want %d", offset.Kind(), offset, seq)
	}
	at, _ := m.Annotation(AnnotationEnqueuedTime)
	if when, ok := at.Time(); !ok || !when.Equal(enqueued) {
		t.Errorf("enqueued time %v, want %v", at, enqueued)
	}
	if key, ok := m.Annotation(AnnotationPartitionKey); ok && key.Kind() != codec.KindString {
		t.Errorf("partition key is %v", key.Kind())
	}
	names := map[string]int{}
	for name := range m.Annotations() {
		if names[name]++; names[name] > 1 && ownedByHub(name) {
			t.Errorf("annotation %s is there %d times", name, names[name])
		}
	}
}

func TestAnnotationsOfTheSenderStay(t *testing.T) {
	d := Draft{Annotations: []Pair{
		{AnnotationOffset, codec.Long(7)},
		{"x-opt-publisher", codec.String("p")},
		{AnnotationPartitionKey, codec.Symbol("sym")},
		{AnnotationSequenceNumber, codec.Value{}},
		{AnnotationEnqueuedTime, codec.String("never")},
		{"list", codec.List(codec.Int(1), codec.String("x"))},
	}, Body: []byte("b")}
	long := Draft{Annotations: []Pair{{"long", codec.String(strings.Repeat("x", 300))}}}
	var many Draft
	for i := range 200 {
		many.Annotations = append(many.Annotations, Pair{fmt.Sprint("a", i), codec.Bool(true)})
	}
	var w EventWriter
	for _, tt := range []struct {
		draft Draft
		want  int // annotations
	}{{d, 6}, {long, 4}, {many, 203}, {Draft{}, 3}} {
		stored, _ := store(t, FormatAMQP, tt.draft.Encode(nil))
		for _, seq := range []int64{0, 9, 10, 1 << 62} {
			got := deliver(t, &w, stored, seq)[0]
			wantEvent(t, got, seq)
			n := 0
			for range got.Annotations() {
				n++
			}
			if n != tt.want {
				t.Errorf("%d annotations, want %d", n, tt.want)
			}
		}
	}
	got := deliver(t, &w, first(store(t, FormatAMQP, d.Encode(nil))), 0)[0]
	if got.PartitionKey() != "sym" {
		t.Errorf("partition key %q", got.PartitionKey())
	}
	if v, _ := got.Annotation("x-opt-publisher"); v.String() != "p" {
		t.Errorf("publisher %v", v)
	}
}

func first[T, U any](v T, _ U) T { return v }

func TestPartitionKeyOfABatch(t *testing.T) {
	plain := parse(t, typical())
	null := Draft{Annotations: []Pair{{AnnotationPartitionKey, codec.Value{}}}}
	number := Draft{Annotations: []Pair{{AnnotationPartitionKey, codec.Int(1)}}}
	tests := []struct {
		name   string
		events []*Message
		want   Arrival
		keys   []string // of the events as they are delivered
	}{
		{"none", []*Message{plain, plain}, Arrival{Count: 2}, []string{"", ""}},
		{"envelope", []*Message{withKey("a", ""), plain, withKey("b", "")}, Arrival{3, "a", true}, []string{"a", "a", "b"}},
		{"only a later event", []*Message{plain, withKey("b", "")}, Arrival{2, "b", true}, []string{"", "b"}},
		{"null", []*Message{null.Message()}, Arrival{Count: 1}, []string{""}},
		{"empty", []*Message{withKey("", "x")}, Arrival{1, "", true}, []string{""}},
	}
	var w EventWriter
	for _, tt := range tests {
		stored, a := store(t, FormatBatch, AppendBatch(nil, tt.events...))
		if a != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, a, tt.want)
		}
		for i, m := range deliver(t, &w, stored, 0) {
			if m.PartitionKey() != tt.keys[i] {
				t.Errorf("%s: event %d has key %q, want %q", tt.name, i, m.PartitionKey(), tt.keys[i])
			}
			if v, ok := m.Annotation(AnnotationPartitionKey); ok && v.IsNull() {
				t.Errorf("%s: event %d has a null key", tt.name, i)
			}
		}
	}
	if _, _, err := AppendEvents(nil, FormatAMQP, number.Encode(nil)); !errors.Is(err, ErrField) {
		t.Errorf("a number as partition key: %v", err)
	}
}

func TestBadEventsAreRefused(t *testing.T) {
	d := Draft{Body: []byte("x")}
	good := AppendBatch(nil, d.Message())
	long := withKey(strings.Repeat("k", limits.Name+1), "")
	tests := []struct {
		name string
		f    Format
		raw  []byte
		want error
	}{
		{"nothing in a batch", FormatBatch, nil, ErrBatch},
		{"no data", FormatBatch, unhex(t, "00537345"), ErrBatch},
		{"value body", FormatBatch, unhex(t, "00537740"), ErrBatch},
		{"broken envelope", FormatBatch, good[:len(good)-1], codec.ErrShort},
		{"broken event", FormatBatch, append(good, unhex(t, "005375a0020053")...), ErrSection},
		{"broken single", FormatAMQP, unhex(t, "005375a005"), codec.ErrShort},
		{"section twice", FormatAMQP, unhex(t, "00537345 00537345"), ErrOrder},
		{"section out of order", FormatAMQP, unhex(t, "00537345 00537045"), ErrOrder},
		{"section twice in a batch", FormatBatch, codec.AppendBinary(codec.AppendDescriptor(nil, codeData), unhex(t, "00537345 00537345")), ErrOrder},
		{"unknown format", 17, good, ErrFormat},
		{"long key", FormatAMQP, long.raw, limits.ErrExceeded},
		{"long key in a batch", FormatBatch, AppendBatch(nil, d.Message(), long), limits.ErrExceeded},
	}
	for _, tt := range tests {
		if stored, _, err := AppendEvents(nil, tt.f, tt.raw); !errors.Is(err, tt.want) || stored != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	var w EventWriter
	for _, stored := range [][]byte{nil, {0}, {3, 0}, {formBatch}, append([]byte{formBatch}, good[:len(good)-1]...)} {
		w.Open(stored, 0, enqueued)
		for w.Next() {
			w.Append(nil)
		}
		if !errors.Is(w.Err(), errStored) {
			t.Errorf("% x is read without an error: %v", stored, w.Err())
		}
	}
}

// Clients that write descriptors otherwise are corrected when they send, since nobody
// looks at an event again when it is delivered.
func TestOtherSpellingsAreStoredInTheUsualOne(t *testing.T) {
	event := unhex(t, "00800000000000000070c0020141 005375a00161")
	batch := codec.AppendBinary(codec.AppendDescriptor(nil, codeData), event)
	footer := append(bytes.Clone(batch), unhex(t, "005378c10602a3016b5401")...)
	var w EventWriter
	for _, tt := range []struct {
		f   Format
		raw []byte
	}{{FormatAMQP, event}, {FormatBatch, batch}, {FormatBatch, footer}} {
		stored, a := store(t, tt.f, tt.raw)
		ms := deliver(t, &w, stored, 5)
		if len(ms) != 1 || a.Count != 1 || !bytes.HasPrefix(ms[0].raw, unhex(t, "005370")) {
			t.Fatalf("%d events of % x", len(ms), stored)
		}
		wantEvent(t, ms[0], 5)
	}
}

func TestMetricsAreDeliveryAnnotations(t *testing.T) {
	d := Draft{DeliveryAnnotations: []Pair{{names.LastOffset, codec.Int(1)}, {"own", codec.Int(2)}}, Body: []byte("x")}
	batch := AppendBatch(nil, d.Message(), parse(t, typical()))
	stored, _ := store(t, FormatBatch, batch)
	var w EventWriter
	now := enqueued.Add(time.Second)
	w.SetMetrics(99, enqueued, now)
	for i, m := range deliver(t, &w, stored, 0) {
		found := map[string]codec.Value{}
		for name, v := range m.pairs(sectionDelivery) {
			if _, twice := found[name]; twice {
				t.Errorf("event %d has %s twice", i, name)
			}
			found[name] = v
		}
		at, _ := found[names.LastEnqueuedTime].Time()
		asked, _ := found[names.RetrievalTime].Time()
		if found[names.LastSequenceNumber].Kind() != codec.KindLong || found[names.LastSequenceNumber].String() != "99" ||
			found[names.LastOffset].Kind() != codec.KindString || found[names.LastOffset].String() != "99" ||
			!at.Equal(enqueued) || !asked.Equal(now) {
			t.Errorf("event %d: %v", i, found)
		}
		if _, own := found["own"]; own != (i == 0) {
			t.Errorf("event %d has lost an annotation, or has one too many", i)
		}
		wantEvent(t, m, int64(i))
	}
}

func TestProducerSequence(t *testing.T) {
	d := Draft{Annotations: []Pair{{names.ProducerSequence, codec.Int(12)}}}
	numbered := d.Message()
	plain := parse(t, typical())
	// The first event has the number, and its envelope none.
	inner := codec.AppendBinary(codec.AppendDescriptor(nil, codeData), numbered.raw)
	for _, tt := range []struct {
		f    Format
		raw  []byte
		want bool
	}{
		{FormatAMQP, numbered.raw, true}, {FormatBatch, AppendBatch(nil, numbered, plain), true},
		{FormatBatch, inner, true}, {FormatAMQP, plain.raw, false}, {FormatBatch, []byte{1}, false},
	} {
		if n, ok := ProducerSequence(tt.f, tt.raw); ok != tt.want || ok && n != 12 {
			t.Errorf("% x: %d %t", tt.raw, n, ok)
		}
	}
}

// FuzzEvents checks that the short way to check a batch comes to the same result as the
// long one, and that what is stored can be delivered.
func FuzzEvents(f *testing.F) {
	d := full()
	whole := d.Message()
	for _, m := range []*Message{whole, withKey("k", "v"), parse(f, typical())} {
		f.Add(m.raw)
		f.Add(AppendBatch(nil, m, m))
	}
	for _, s := range []string{
		"", "00537345", "00537740", "005375a00161 005375a00162", "00537645",
		"00800000000000000070c0020141 005375a00161",
		"005372c10602a3016b5401 005374c10602a1016b5401 005378c10602a3016b5401",
		"005375a009005375a00400537745", "00537345 00537345", "005370c003015600", "005373c00603 4040 a10161",
	} {
		f.Add(unhex(f, s))
	}
	var w EventWriter
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, format := range []Format{FormatAMQP, FormatBatch} {
			var ms []*Message
			var want error
			if format == FormatAMQP {
				m, err := Parse(bytes.Clone(in))
				ms, want = append(ms, m), err
			} else {
				for m, err := range Batch(bytes.Clone(in)) {
					ms, want = append(ms, m), err
				}
				if errors.Is(want, limits.ErrExceeded) {
					continue
				}
			}
			var sentKey string
			for i := 0; i < len(ms) && want == nil; i++ {
				var key partitionKey
				key, want = checkEvent(ms[i])
				if sentKey == "" {
					sentKey = key.text
				}
			}
			stored, a, err := AppendEvents(nil, format, bytes.Clone(in))
			if err != nil && want == nil && format == FormatBatch {
				envelope, _ := Parse(in)
				_, want = checkEvent(envelope) // Batch ignores what it says
			}
			if (err != nil) != (want != nil) {
				t.Fatalf("% x of format %x: %v, want %v", in, format, err, want)
			}
			if err != nil {
				continue
			}
			if a.Count != len(ms) || format == FormatAMQP && a.Key != sentKey {
				t.Fatalf("%+v, want %d events and key %q", a, len(ms), sentKey)
			}
			if a.Count > 1 {
				w.SetMetrics(1, enqueued, enqueued)
			}
			i := 0
			for w.Open(stored, 7, enqueued); w.Next(); i++ {
				out, err := ParseStored(w.Append(nil))
				if err != nil {
					t.Fatalf("event %d of % x: %v", i, in, err)
				}
				visit(t, out)
				wantEvent(t, out, int64(7+i))
				if !bytes.HasSuffix(out.raw, ms[i].raw[ms[i].end[sectionAnnotations]:]) {
					t.Fatalf("event %d of % x became % x", i, in, out.raw)
				}
			}
			if w.Err() != nil || i != a.Count {
				t.Fatalf("%d events were read back of %d: %v", i, a.Count, w.Err())
			}
			w = EventWriter{}
		}
	})
}

// eventBatch returns a batch of events of 256 bytes, as the SDKs write them.
func eventBatch(n int, key string) []byte {
	d := Draft{Body: make([]byte, 256)}
	if key != "" {
		d.Annotations = []Pair{{AnnotationPartitionKey, codec.String(key)}}
		d.Application = []Pair{{"source", codec.String("sensor-17")}, {"attempt", codec.Int(3)}}
		d.MessageID = codec.String("5f0c2b1e9d3a4b6c8e7f")
	}
	ms := make([]*Message, n)
	for i := range ms {
		ms[i] = d.Message()
	}
	return AppendBatch(nil, ms...)
}

func BenchmarkEvents(b *testing.B) {
	for _, bb := range []struct{ name, key string }{{"plain", ""}, {"keyed", "vehicle-4711"}} {
		raw := eventBatch(100, bb.key)
		b.Run("check/"+bb.name, func(b *testing.B) {
			buf := make([]byte, 0, 2*len(raw))
			b.ReportAllocs()
			for b.Loop() {
				if _, a, err := AppendEvents(buf, FormatBatch, raw); err != nil || a.Count != 100 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
		})
		b.Run("deliver/"+bb.name, func(b *testing.B) {
			stored, _ := store(b, FormatBatch, raw)
			var w EventWriter
			buf := make([]byte, 0, 2*len(raw))
			b.ReportAllocs()
			for b.Loop() {
				buf = buf[:0]
				for w.Open(stored, 123456789, enqueued); w.Next(); {
					buf = w.Append(buf)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/event")
		})
	}
}
