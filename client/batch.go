// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// batchFormat is the message format of a Service Bus batch: a message whose data
// sections are whole encoded messages. It is on the wire and never changes.
const batchFormat = 0x80013700

// defaultLimit is taken for the largest batch when the peer names no limit, and
// batchReserve is kept free of it for the envelope's own sections.
const (
	defaultLimit = 1 << 20
	batchReserve = 1024
)

// batchLimit is the largest batch the peer takes. Brokers that take very large
// single messages say separately how large a batch may be.
func batchLimit(s *amqp.Sender) uint64 {
	if n, ok := integer(s.Properties()[names.MaxBatchSize]); ok && n > 0 {
		return uint64(n)
	}
	if n := s.MaxMessageSize(); n > 0 && n < defaultLimit {
		return n
	}
	return defaultLimit
}

// batch is one transfer with the messages in it.
type batch struct {
	wire     *amqp.Message
	messages []outgoing
}

// pack puts messages, which have IDs, into as few batches as the limit allows. A message that is
// too large for a batch goes alone, as itself: the limit on single messages may
// be higher, and the peer says so if it is not.
func pack(ms []outgoing, limit uint64) ([]batch, error) {
	var out []batch
	var open *amqp.Message // the envelope of the last batch, if there is space in it
	var size uint64
	for i, m := range ms {
		wire, err := m.encode()
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		encoded, err := wire.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("message %d: %w: %w", i, ErrInvalid, err)
		}
		cost := sectionSize(len(encoded))
		if cost+batchReserve > limit {
			out, open = append(out, batch{wire, ms[i : i+1]}), nil
			continue
		}
		if open == nil || size+cost > limit {
			open, size = envelope(wire), batchReserve
			out = append(out, batch{wire: open})
		}
		open.Data = append(open.Data, encoded)
		last := &out[len(out)-1]
		last.messages = append(last.messages, m)
		size += cost
	}
	return out, nil
}

// envelope starts a batch. It carries what a peer may route by, taken from the
// first message.
func envelope(first *amqp.Message) *amqp.Message {
	e := &amqp.Message{
		Format: batchFormat,
		Properties: &amqp.MessageProperties{
			MessageID: first.Properties.MessageID,
			GroupID:   first.Properties.GroupID,
		},
	}
	if key, ok := first.Annotations[annotationPartition]; ok {
		annotate(e, annotationPartition, key)
	}
	return e
}

// sectionSize is what n bytes take as a data section [AMQP 3.2.6]: descriptor,
// constructor, and a length of one or four bytes.
func sectionSize(n int) uint64 {
	if n < 256 {
		return uint64(n) + 5
	}
	return uint64(n) + 8
}
