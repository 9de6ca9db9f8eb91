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

func (d *delivered) IssueCredit(uint32) error { return nil }

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
			if r.stored != nil {
				t.Errorf("%d events of a bad batch are kept", r.stored.Len)
			}
		})
	}
}

// Events are decoded when they are taken, and those of one call have no gap between them.
func TestStoredEventsAreTaken(t *testing.T) {
	first, second := batchOf(t, 10, 5, whole), batchOf(t, 20, 3, whole)
	first.Data = append(first.Data, second.Data...)
	r := new(EventReader)
	s, err := r.storedEvents(first)
	if err != nil {
		t.Fatal(err)
	}
	size := s.Size
	for _, want := range []struct {
		limit, left int
		numbers     []SeqNo
	}{{2, 6, []SeqNo{10, 11}}, {100, 3, []SeqNo{12, 13, 14}}, {100, 0, []SeqNo{20, 21, 22}}, {100, 0, nil}} {
		if want.numbers != nil && (s.SeqNo != want.numbers[0] || !s.Enqueued.Equal(time.UnixMilli(1))) {
			t.Errorf("before %v the next is %d of %v", want.numbers, s.SeqNo, s.Enqueued)
		}
		var got []SeqNo
		for _, e := range s.Take(t.Context(), nil, want.limit) {
			got = append(got, e.SeqNo)
		}
		if !slices.Equal(got, want.numbers) || s.Len != want.left || s.Size != size {
			t.Errorf("took %v and %d are left of %d bytes; want %v and %d of %d", got, s.Len, s.Size, want.numbers, want.left, size)
		}
	}
}

// Splitting loses no event and no byte.
func TestStoredEventsAreSplit(t *testing.T) {
	for limit := 1; limit < 9; limit++ {
		first, second := batchOf(t, 10, 5, whole), batchOf(t, 15, 3, whole)
		first.Data = append(first.Data, second.Data...)
		rest, err := new(EventReader).storedEvents(first)
		if err != nil {
			t.Fatal(err)
		}
		rest.Take(t.Context(), nil, 1) // events may have been returned before
		size, left := 0, rest.Size
		for next := SeqNo(11); next < 18; {
			s := rest.split(limit)
			if s.SeqNo != next || s.last() != min(next+SeqNo(limit), 18)-1 {
				t.Fatalf("limit %d: events %d to %d after %d", limit, s.SeqNo, s.last(), next-1)
			}
			size += s.Size
			for _, e := range s.Take(t.Context(), nil, 100) {
				if e.SeqNo != next || string(e.Body) != "body" {
					t.Fatalf("limit %d: event %d is %q, want %d", limit, e.SeqNo, e.Body, next)
				}
				next++
			}
		}
		if size != left {
			t.Errorf("limit %d: %d bytes of %d", limit, size, left)
		}
	}
}

// Large deliveries come one by one, and small ones many at a time.
func TestCreditFollowsTheSizeOfDeliveries(t *testing.T) {
	w := window{ahead: 256 << 10, most: 16, size: 64 << 10}
	if n := w.more(1); n != 4 {
		t.Errorf("at first %d", n)
	}
	w.took(1 << 20)
	if w.out != 3 || w.more(1) != 0 {
		t.Errorf("a large one came, and %d are on their way", w.out)
	}
	for range 3 {
		w.took(1 << 20)
	}
	if a, b := w.more(0), w.more(1); a != 0 || b != 1 {
		t.Errorf("for large ones %d, and %d while it waits", a, b)
	}
	most := 0
	for range 100 {
		w.took(1 << 10)
		w.more(1)
		most = max(most, w.out)
	}
	if most != 16 {
		t.Errorf("for small ones %d", most)
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
