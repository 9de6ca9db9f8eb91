// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

// ErrBatch says that an envelope of FormatBatch has no messages in it.
var ErrBatch = errors.New("message: batch without messages")

// Batch yields the messages in an envelope of FormatBatch. Each has bytes of its own, so
// that one of them that is kept does not keep the envelope and the others. The sections of the envelope itself are ignored; parse it to read a partition
// key. The first error ends the sequence. A batch is accepted as a whole or not
// at all, so collect before acting. A batch of more than limits.Batch messages
// is a *limits.Error.
func Batch(raw []byte) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		envelope, err := Parse(raw)
		if err != nil {
			yield(nil, fmt.Errorf("envelope: %w", err))
			return
		}
		n := 0
		for data := range envelope.Data() {
			if n == limits.Batch {
				yield(nil, limits.CheckCount("messages in the batch", n+1, limits.Batch))
				return
			}
			m, err := Parse(bytes.Clone(data))
			if err != nil {
				yield(nil, fmt.Errorf("message %d of batch: %w", n, err))
				return
			}
			if !yield(m, nil) {
				return
			}
			n++
		}
		if n == 0 {
			yield(nil, ErrBatch)
		}
	}
}

// CountBatch returns how many messages Batch yields of an envelope at most, at least one. It
// reads no message.
func CountBatch(raw []byte) int {
	envelope := Message{raw: raw}
	if err := envelope.scan(false); err != nil {
		respelled, err := Parse(raw)
		if err != nil {
			return 1 // Batch yields none
		}
		envelope = *respelled
	}
	n := 0
	for b := envelope.bytes(sectionBody); len(b) > 0 && b[2] == codeData && n < limits.Batch; n++ {
		r := codec.NewReader(b[descriptorLen:])
		r.Binary()
		b = r.Rest()
	}
	return max(n, 1)
}

// AppendBatch appends an envelope of FormatBatch with ms, of which there is at
// least one. As with the SDKs, the envelope repeats all of the first message but
// its body.
func AppendBatch(dst []byte, ms ...*Message) []byte {
	if len(ms) == 0 {
		return dst
	}
	dst = append(dst, ms[0].raw[:ms[0].end[sectionApplication]]...)
	for _, m := range ms {
		dst = codec.AppendDescriptor(dst, codeData)
		dst = codec.AppendBinary(dst, m.raw)
	}
	return dst
}
