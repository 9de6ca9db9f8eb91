// SPDX-License-Identifier: Apache-2.0

package message

import (
	"testing"
	"unsafe"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// typical is what most senders send: an id, one property, a short body.
func typical() []byte {
	d := Draft{
		MessageID:   codec.String("5f0c2b1e9d3a4b6c8e7f"),
		Application: []Pair{{"Priority", codec.String("High")}},
		Body:        make([]byte, 200),
	}
	return d.Encode(nil)
}

func TestMessageIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(Message{}); got > 48 {
		t.Errorf("a message takes %d bytes beside its encoding, want 48 at most", got)
	}
}

func TestAllocations(t *testing.T) {
	raw := typical()
	d := full()
	m, buf := d.Message(), make([]byte, 0, 4096)
	tests := []struct {
		name string
		want float64
		run  func()
	}{
		{"parse", 1, func() {
			if _, err := Parse(raw); err != nil {
				t.Fatal(err)
			}
		}},
		{"read", 0, func() {
			m.Header()
			m.MessageID()
			m.MessageIDString()
			m.SessionID()
			m.ReplyTo()
			m.CreationTime()
			m.Property("when")
			m.PropertyFold("WHEN")
			m.ScheduledEnqueueTime()
			for range m.Properties() {
			}
			for range m.Data() {
			}
		}},
		{"deliver", 0, func() { AppendDelivery(buf, m, locked()) }},
	}
	for _, tt := range tests {
		if got := testing.AllocsPerRun(100, tt.run); got != tt.want {
			t.Errorf("%s: %v allocations, want %v", tt.name, got, tt.want)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	raw := typical()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDelivery(b *testing.B) {
	d := full()
	for _, bb := range []struct {
		name string
		m    *Message
	}{{"plain", parse(b, typical())}, {"annotated", d.Message()}} {
		b.Run(bb.name, func(b *testing.B) {
			buf, s := make([]byte, 0, 1024), locked()
			b.ReportAllocs()
			for b.Loop() {
				s.SequenceNumber++
				AppendDelivery(buf, bb.m, s)
			}
		})
	}
}

func BenchmarkProperty(b *testing.B) {
	m := parse(b, typical())
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := m.Property("Priority"); !ok {
			b.Fatal("no priority")
		}
	}
}
