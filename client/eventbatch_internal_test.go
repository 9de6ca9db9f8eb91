// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/message"
)

// delivered are the deliveries of a link, all of them prefetched.
type delivered []*amqp.Message

func (d *delivered) Receive(context.Context, *amqp.ReceiveOptions) (*amqp.Message, error) {
	if m := d.Prefetched(); m != nil {
		return m, nil
	}
	return nil, io.EOF
}

func (d *delivered) Prefetched() *amqp.Message {
	if len(*d) == 0 {
		return nil
	}
	m := (*d)[0]
	*d = (*d)[1:]
	return m
}

// batchOf makes a delivery of one stored batch, which has events with a body each.
func batchOf(t *testing.T, first int64, count int, change func([]byte) []byte) *amqp.Message {
	t.Helper()
	envelope := &amqp.Message{Format: uint32(message.FormatBatch)}
	for range count {
		event, err := amqp.NewMessage([]byte("body")).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		envelope.Data = append(envelope.Data, event)
	}
	raw, err := envelope.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	stored, a, err := message.AppendEvents(nil, message.FormatBatch, raw)
	if err != nil {
		t.Fatal(err)
	}
	b := message.EventBatch{First: first, At: time.UnixMilli(1), Count: a.Count, Stored: stored}
	m := new(amqp.Message)
	if err := m.UnmarshalBinary(b.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	m.Data[0] = change(m.Data[0])
	return m
}

func whole(b []byte) []byte { return b }

// What cannot be read must not take events with it that came before or with it.
func TestABadBatchHidesNoEvents(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"cut within an event":    func(b []byte) []byte { return b[:len(b)-1] },
		"cut between two events": func(b []byte) []byte { return b[:24+1+(len(b)-25)/2] },
		"without a head":         func(b []byte) []byte { return b[:10] },
		"of another form":        func(b []byte) []byte { b = slices.Clone(b); b[24] = 77; return b },
	} {
		t.Run(name, func(t *testing.T) {
			r := new(EventReader)
			d := delivered{batchOf(t, 0, 2, whole), batchOf(t, 2, 2, change), batchOf(t, 4, 2, whole)}
			events, err := r.collect(t.Context(), &d, 100)
			if len(events) != 2 || !errors.Is(err, errBatch) {
				t.Errorf("got %d events, %v; want 2 and %v", len(events), err, errBatch)
			}
			if len(r.unpacked) > 0 {
				t.Errorf("%d events of a bad batch are kept", len(r.unpacked))
			}
		})
	}
}

// A type that this package does not know is no reason to stop or to skip.
func TestAnEventOfAnUnknownTypeIsReturned(t *testing.T) {
	decimal := []byte{0, 0x53, 0x74, 0xc1, 9, 2, 0xa1, 1, 'n', 0x74, 1, 2, 3, 4} // application properties
	body := []byte{0, 0x53, 0x75, 0xa0, 1, 'x'}
	event := slices.Concat(decimal, body)
	stored, a, err := message.AppendEvents(nil, message.FormatAMQP, event)
	if err != nil {
		t.Fatal(err)
	}
	b := message.EventBatch{First: 7, Count: a.Count, Stored: stored}
	m := new(amqp.Message)
	if err := m.UnmarshalBinary(b.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	r := new(EventReader)
	d := delivered{m}
	events, err := r.collect(t.Context(), &d, 100)
	if err != nil || len(events) != 1 || events[0].SeqNo != 7 || !slices.Equal(events[0].Body, event) {
		t.Errorf("got %v, %v", events, err)
	}
}
