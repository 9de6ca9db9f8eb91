// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"strings"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/message"
)

// errBatch means that a delivery is not what the broker has promised.
var errBatch = fmt.Errorf("%w: a batch of events that cannot be read", ErrInvalid)

// unpack takes a delivery apart into events, all of them or none.
func (r *EventReader) unpack(m *amqp.Message) error {
	r.unpacked = nil // its events may still be in use
	if r.single.Load() {
		e := decode(m)
		e.Source = r.address
		r.unpacked = []Received{*e}
		return nil
	}
	batches := make([]message.EventBatch, len(m.Data))
	count := 0
	for i, data := range m.Data {
		var err error
		if batches[i], err = message.ReadEventBatch(data); err != nil {
			return fmt.Errorf("%w: %w", errBatch, err)
		}
		count += min(batches[i].Count, len(data)) // an event has a byte at least
	}
	r.unpacked = make([]Received, 0, count)
	for i := range batches {
		if err := r.unpackBatch(&batches[i]); err != nil {
			r.unpacked = nil
			return fmt.Errorf("%w: %w", errBatch, err)
		}
	}
	return nil
}

func (r *EventReader) unpackBatch(b *message.EventBatch) error {
	var events message.EventScanner
	events.Open(b.Stored)
	key, _ := events.Key()
	key = strings.Clone(key) // not to keep the delivery for it
	n := 0
	for ; events.Next(); n++ {
		if n < b.Skip {
			continue
		}
		r.unpacked = append(r.unpacked, Received{})
		e := &r.unpacked[len(r.unpacked)-1]
		if !decodeEvent(e, events.Event()) {
			var m amqp.Message
			if err := m.UnmarshalBinary(events.Event()); err == nil {
				*e = *decode(&m)
			} else { // it must neither be skipped nor be in the way of all others
				*e = Received{Message: Message{Body: events.Event()}}
			}
		}
		if e.PartitionKey == "" {
			e.PartitionKey = key
		}
		e.SeqNo, e.Enqueued, e.Source = SeqNo(b.First)+SeqNo(n), b.At, r.address
	}
	if events.Err() == nil && n != b.Count {
		return fmt.Errorf("it has %d events and should have %d", n, b.Count)
	}
	return events.Err()
}
