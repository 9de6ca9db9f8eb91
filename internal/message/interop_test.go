// SPDX-License-Identifier: Apache-2.0

package message

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// viaBroker sends a message of go-amqp through Parse and AppendDelivery.
func viaBroker(t *testing.T, sent *amqp.Message, s BrokerProperties) *amqp.Message {
	t.Helper()
	raw, err := sent.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return unmarshal(t, AppendDelivery(nil, parse(t, raw), s))
}

func unmarshal(t *testing.T, raw []byte) *amqp.Message {
	t.Helper()
	got := new(amqp.Message)
	if err := got.UnmarshalBinary(raw); err != nil {
		t.Fatalf("go-amqp cannot read % x: %v", raw, err)
	}
	return got
}

// annotated is what go-amqp must see of locked().
var annotated = amqp.Annotations{
	"x-opt-sequence-number": int64(42),
	"x-opt-enqueued-time":   enqueued,
	"x-opt-locked-until":    until,
}

func with(a, b amqp.Annotations) amqp.Annotations {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func TestGoClientGetsBackWhatItSent(t *testing.T) {
	lock := amqp.Annotations{"x-opt-lock-token": amqp.UUID(token)}
	sent := &amqp.Message{
		Header:              &amqp.MessageHeader{Durable: true, Priority: 100, TTL: time.Minute},
		DeliveryAnnotations: amqp.Annotations{"hello": "delivery"},
		Annotations:         amqp.Annotations{"hello": "annotation", "x-opt-locked-until": nil, "x-opt-partition-key": nil},
		Properties: &amqp.MessageProperties{
			MessageID: "id", CorrelationID: "corr", To: new("to"), Subject: new("subject"), ReplyTo: new("back"),
			ContentType: new("text/plain"), GroupID: new("session"), GroupSequence: new(uint32(3)),
			ReplyToGroupID: new("other"), CreationTime: new(created), AbsoluteExpiryTime: new(expiry),
		},
		ApplicationProperties: map[string]any{
			"ubyte": uint8(1), "byte": int8(-1), "short": int16(-300), "ushort": uint16(300), "int": int32(-70000),
			"uint": uint32(70000), "long": int64(-1 << 40), "ulong": uint64(1 << 40), "float": float32(1.5),
			"double": 2.5, "bool": true, "string": "text", "time": created, "uuid": amqp.UUID{1, 2, 3},
		},
		Data:   [][]byte{[]byte("one"), []byte("two")},
		Footer: amqp.Annotations{"foot": "note"},
	}
	got := viaBroker(t, sent, locked())
	want := *sent
	want.Header = &amqp.MessageHeader{Durable: true, Priority: 100, TTL: time.Minute}
	want.DeliveryAnnotations = with(sent.DeliveryAnnotations, lock)
	want.Annotations = with(sent.Annotations, annotated)
	compare(t, got, &want)
}

func TestGoClientReadsEveryBody(t *testing.T) {
	for name, sent := range map[string]*amqp.Message{
		"none":      {},
		"data":      amqp.NewMessage([]byte("x")),
		"empty":     amqp.NewMessage([]byte{}),
		"value":     {Value: map[string]any{"k": int64(1)}},
		"array":     {Value: []int32{1, 2, 1 << 20}},
		"sequence":  {Sequence: [][]any{{"a", int64(1)}, {true}}},
		"long data": amqp.NewMessage(make([]byte, 100000)),
	} {
		t.Run(name, func(t *testing.T) {
			got := viaBroker(t, sent, locked())
			if got.Header == nil || got.Properties == nil {
				t.Fatalf("header %v, properties %v: both must be there", got.Header, got.Properties)
			}
			if id, ok := got.Properties.MessageID.(string); !ok || len(id) != 32 {
				t.Errorf("message-id %v, want a generated one", got.Properties.MessageID)
			}
			want := *sent
			want.Header = &amqp.MessageHeader{Priority: defaultPriority}
			want.Properties = &amqp.MessageProperties{MessageID: got.Properties.MessageID}
			want.DeliveryAnnotations = amqp.Annotations{"x-opt-lock-token": amqp.UUID(token)}
			want.Annotations = annotated
			compare(t, got, &want)
		})
	}
}

func TestGoClientReadsDrafts(t *testing.T) {
	d := full()
	got := unmarshal(t, d.Encode(nil))
	if got.Header.TTL != 90*time.Second || got.Properties.MessageID != "id-1" || *got.Properties.GroupID != "s1" ||
		got.ApplicationProperties["Priority"] != "High" || string(got.GetData()) != "hello" {
		t.Errorf("got %+v %+v %v", got.Header, got.Properties, got.ApplicationProperties)
	}
	value := codec.Map(codec.String("expirations"), codec.Raw(codec.AppendTimestampArray(nil, []time.Time{until})))
	reply := Draft{Value: &value}
	body, ok := unmarshal(t, reply.Encode(nil)).Value.(map[string]any)
	if want := []time.Time{until.UTC()}; !ok || !reflect.DeepEqual(body["expirations"], want) {
		t.Errorf("body %v, want expirations %v", body, want)
	}
}

func TestGoClientReadsLongMaps(t *testing.T) {
	s := locked()
	s.DeadLetterSource, s.EnqueuedSequenceNumber, s.State = string(make([]byte, 300)), 1<<40, StateDeferred
	got := viaBroker(t, amqp.NewMessage(nil), s)
	want := with(annotated, amqp.Annotations{
		"x-opt-deadletter-source": s.DeadLetterSource, "x-opt-enqueue-sequence-number": int64(1 << 40), "x-opt-message-state": int32(1),
	})
	if !reflect.DeepEqual(got.Annotations, want) {
		t.Errorf("got  %v\nwant %v", got.Annotations, want)
	}
}

// compare compares the exported fields of two messages.
func compare(t *testing.T, got, want *amqp.Message) {
	t.Helper()
	g, w := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range g.NumField() {
		f := g.Type().Field(i)
		if f.IsExported() && f.Name != "Format" && !reflect.DeepEqual(g.Field(i).Interface(), w.Field(i).Interface()) {
			t.Errorf("%s:\ngot  %v\nwant %v", f.Name, g.Field(i).Interface(), w.Field(i).Interface())
		}
	}
}
