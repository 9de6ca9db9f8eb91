// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"strings"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/message"
)

// unpack takes a delivery apart into events.
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
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		count += min(batches[i].Count, len(data)) // an event has a byte at least
	}
	r.unpacked = make([]Received, 0, count)
	for i := range batches {
		if err := r.unpackBatch(&batches[i]); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

func (r *EventReader) unpackBatch(b *message.EventBatch) error {
	var events message.EventScanner
	events.Open(b.Stored)
	key, _ := events.Key()
	key = strings.Clone(key) // not to keep the delivery for it
	for n := 0; events.Next(); n++ {
		if n < b.Skip {
			continue
		}
		r.unpacked = append(r.unpacked, Received{})
		e := &r.unpacked[len(r.unpacked)-1]
		if !decodeEvent(e, events.Event()) {
			var m amqp.Message
			if err := m.UnmarshalBinary(events.Event()); err != nil {
				return err
			}
			*e = *decode(&m)
		}
		if e.PartitionKey == "" {
			e.PartitionKey = key
		}
		e.SeqNo, e.Enqueued, e.Source = SeqNo(b.First)+SeqNo(n), b.At, r.address
	}
	return events.Err()
}
