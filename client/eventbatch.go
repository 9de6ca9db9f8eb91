// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/message"
)

// errBatch means that a delivery is not what the broker has promised.
var errBatch = fmt.Errorf("%w: a batch of events that cannot be read", ErrInvalid)

// StoredEvents are events of a partition as the hub has stored them. They are decoded when they
// are taken: until then an event takes little more than its bytes. They are for one goroutine
// at a time.
type StoredEvents struct {
	Len      int       // how many events are left
	SeqNo    SeqNo     // of the first of them
	Enqueued time.Time // when that was stored
	// Size is how many bytes the events take as they are stored, also those that were taken: they
	// share memory. It does not change.
	Size int

	address string
	hooks   *Hooks
	batches []message.EventBatch // those of which events are left
	scan    message.EventScanner // in the first of them
	key     string               // partition key of that
	decoded []*Received          // instead of batches, of a broker that knows none
}

// storedEvents checks a delivery: all of its events can be taken, or none.
func (r *EventReader) storedEvents(m *amqp.Message) (*StoredEvents, error) {
	s := &StoredEvents{address: r.address, Size: sizeOf(m)}
	if r.client != nil {
		s.hooks = &r.client.options.Hooks
	}
	if r.single.Load() {
		e := decode(m)
		e.Source = r.address
		s.decoded, s.Len, s.SeqNo, s.Enqueued = []*Received{e}, 1, e.SeqNo, e.Enqueued
		return s, nil
	}
	for _, data := range m.Data {
		b, err := message.ReadEventBatch(data)
		if err == nil {
			err = check(&b)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errBatch, err)
		}
		if n := b.Count - b.Skip; n > 0 {
			s.batches = append(s.batches, b)
			s.Len += n
		}
	}
	s.open()
	return s, nil
}

// sizeOf returns how many bytes a delivery takes, about.
func sizeOf(m *amqp.Message) (size int) {
	for _, data := range m.Data {
		size += len(data)
	}
	return size
}

// check looks whether a batch has the events that it should have.
func check(b *message.EventBatch) error {
	var events message.EventScanner
	events.Open(b.Stored)
	n := 0
	for events.Next() {
		n++
	}
	if events.Err() == nil && n != b.Count {
		return fmt.Errorf("it has %d events and should have %d", n, b.Count)
	}
	return events.Err()
}

// open begins with the first of the batches.
func (s *StoredEvents) open() {
	if len(s.batches) == 0 {
		return
	}
	b := &s.batches[0]
	s.scan.Open(b.Stored)
	key, _ := s.scan.Key()
	s.key = strings.Clone(key) // not to keep the delivery for it
	for range b.Skip {
		s.scan.Next()
	}
	s.SeqNo, s.Enqueued = SeqNo(b.First)+SeqNo(b.Skip), b.At
}

// Take decodes up to limit events and appends them to to. It stops where numbers are missing,
// so that those of one call have none missing between them.
func (s *StoredEvents) Take(ctx context.Context, to []*Received, limit int) []*Received {
	before := len(to)
	if s.decoded != nil {
		to, s.decoded, s.Len = append(to, s.decoded...), nil, 0
		return s.told(ctx, to, before)
	}
	events := make([]Received, min(limit, s.Len)) // one allocation for all of them
	to = slices.Grow(to, len(events))
	for i := range events {
		if i > 0 && s.SeqNo != events[i-1].SeqNo+1 {
			break
		}
		s.decode(&events[i])
		to = append(to, &events[i])
	}
	return s.told(ctx, to, before)
}

// split removes the first events, up to limit.
func (s *StoredEvents) split(limit int) *StoredEvents {
	if limit >= s.Len {
		return s
	}
	head := &StoredEvents{address: s.address, hooks: s.hooks, Len: limit, Size: s.Size / s.Len * limit}
	s.Len -= limit
	s.Size -= head.Size
	s.batches[0].Skip = int(s.SeqNo) - int(s.batches[0].First)
	for need := limit; need > 0; {
		b := s.batches[0]
		if n := b.Count - b.Skip; n <= need {
			s.batches = s.batches[1:]
			need -= n
		} else {
			b.Count = b.Skip + need
			s.batches[0].Skip = b.Count
			need = 0
		}
		head.batches = append(head.batches, b)
	}
	head.open()
	s.open()
	return head
}

// told calls the hook for the events behind some that are there already.
func (s *StoredEvents) told(ctx context.Context, to []*Received, before int) []*Received {
	if s.hooks != nil {
		_, _ = s.hooks.received(ctx, to[before:], nil) // it returns what it gets
	}
	return to
}

// decode decodes the first event that is left into e, which is empty.
func (s *StoredEvents) decode(e *Received) {
	s.scan.Next()
	if raw := s.scan.Event(); !decodeEvent(e, raw) {
		var m amqp.Message
		if err := m.UnmarshalBinary(raw); err == nil {
			*e = *decode(&m)
		} else { // it must neither be skipped nor be in the way of all others
			*e = Received{Message: Message{Body: raw}}
		}
	}
	b := &s.batches[0]
	if e.PartitionKey == "" {
		e.PartitionKey = s.key
	}
	e.SeqNo, e.Enqueued, e.Source = s.SeqNo, b.At, s.address
	s.Len--
	if s.SeqNo++; s.SeqNo == SeqNo(b.First)+SeqNo(b.Count) {
		s.batches = s.batches[1:]
		s.open()
	}
}

// window says how much credit a reader issues, so that about as many bytes are on their way as
// it wants.
type window struct {
	ahead int // bytes that it wants
	most  int // deliveries
	size  int // of a delivery, about
	out   int // credit that was issued and not used
}

// more returns how much credit to issue. While the reader waits, at least one delivery is on its
// way, however large it is.
func (w *window) more(least int) int {
	want := min(max(w.ahead/max(w.size, 1), least), w.most)
	if want == 0 || w.out > want/2 {
		return 0
	}
	n := want - w.out
	w.out += n
	return n
}

// took notes a delivery. What is larger counts at once, and what is smaller bit by bit.
func (w *window) took(size int) {
	w.out = max(w.out-1, 0)
	w.size = max(size, w.size-(w.size-size)/8)
}
