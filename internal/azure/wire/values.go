// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/message"
)

// LookupText finds a text in an encoded map of an open or attach.
func LookupText(encoded []byte, key string) (string, bool) {
	v, ok := Lookup(encoded, key)
	if !ok {
		return "", false
	}
	return v.Str()
}

// Lookup finds a value in an encoded map of an open or attach.
func Lookup(encoded []byte, key string) (codec.Value, bool) {
	if len(encoded) == 0 {
		return codec.Value{}, false
	}
	r := codec.NewReader(encoded)
	v := r.Value()
	if r.Err() != nil {
		return codec.Value{}, false
	}
	return v.Lookup(key)
}

// Integer reads an integer in whichever type the client found fit: JavaScript
// knows only doubles.
func Integer(v codec.Value) (int64, bool) {
	if n, ok := v.Int(); ok {
		return n, true
	}
	if f, ok := v.Float(); ok && f == float64(int64(f)) {
		return int64(f), true
	}
	return 0, false
}

// Tag makes the delivery tag of a delivery that is never settled.
func Tag(n uint64) []byte {
	tag := make([]byte, 8)
	for i := range tag {
		tag[i] = byte(n >> (8 * i))
	}
	return tag
}

// Messages returns how many messages Unpack makes of a delivery, at least one.
func Messages(d endpoint.Arriving) int {
	if message.Format(d.Format) != message.FormatBatch {
		return 1
	}
	return message.CountBatch(d.Payload())
}

// Unpack returns the messages of a transfer, with bytes of their own, appended to
// dst.
func Unpack(dst []*message.Message, in *endpoint.Incoming) ([]*message.Message, error) {
	if in.State.Kind == frame.StateTransactional {
		return nil, endpoint.Errorf(endpoint.CondNotImplemented, "Transactions are not supported by this broker yet.")
	}
	switch message.Format(in.Format) {
	case message.FormatAMQP:
		m, err := message.Parse(bytes.Clone(in.Payload))
		return append(dst, m), err
	case message.FormatBatch:
		ms := dst
		for m, err := range message.Batch(in.Payload) {
			if err != nil {
				return nil, err
			}
			ms = append(ms, m)
		}
		return ms, nil
	}
	return nil, endpoint.Errorf(endpoint.CondNotImplemented, "Message format 0x%x is not known here.", in.Format)
}
