// SPDX-License-Identifier: Apache-2.0

package load

import (
	"encoding/binary"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// kind says what part of a run a message belongs to.
type kind byte

const (
	kindPlain kind = iota
	kindBacklog
	kindUrgent
)

// The body of a message begins with the number of the run, the time since the
// run began, in nanoseconds, and a kind; the rest is filler. It is the last
// section, so that it is found from the end, independent of the sections that
// the broker adds.
const (
	offStamp = 8
	offKind  = 16
	minSize  = 17
)

// urgentLevel is the level of urgent messages; all others are below it.
const urgentLevel = 255

// messageTemplate contains an encoded message of each level. Number and time
// are written into it before it is sent.
type messageTemplate struct {
	size   int
	levels [][]byte
}

// newMessageTemplate prepares messages of the levels from to to, both of which it has.
func newMessageTemplate(run uint64, k kind, size, from, to int) *messageTemplate {
	s := &messageTemplate{size: size}
	body := newBody(run, k, size)
	for level := from; level <= to; level++ {
		d := message.Draft{Durable: true, Priority: uint8(level), PrioritySet: true, Body: body}
		s.levels = append(s.levels, d.Encode(nil))
	}
	return s
}

// newBody returns a body, but for the time.
func newBody(run uint64, k kind, size int) []byte {
	body := make([]byte, size)
	binary.BigEndian.PutUint64(body, run)
	body[offKind] = byte(k)
	for i := minSize; i < size; i++ {
		body[i] = byte('a' + i%26)
	}
	return body
}

// append appends message n, which has its turn among the levels, sent at now.
func (s *messageTemplate) append(dst []byte, n uint64, now time.Duration) []byte {
	dst = append(dst, s.levels[n%uint64(len(s.levels))]...)
	binary.BigEndian.PutUint64(dst[len(dst)-s.size+offStamp:], uint64(now))
	return dst
}

// appendBatch appends count messages as one batch: each is the content of a data
// section.
func (s *messageTemplate) appendBatch(dst []byte, n uint64, count int, now time.Duration) []byte {
	const descriptorData = 0x75
	for i := range uint64(count) {
		m := s.levels[(n+i)%uint64(len(s.levels))]
		dst = codec.AppendBinary(codec.AppendDescriptor(dst, descriptorData), m)
		binary.BigEndian.PutUint64(dst[len(dst)-s.size+offStamp:], uint64(now))
	}
	return dst
}

// readBody reads what newMessageTemplate wrote. A message of another run is not ok.
func readBody(payload []byte, run uint64, size int) (k kind, sent time.Duration, ok bool) {
	if len(payload) < size {
		return 0, 0, false
	}
	b := payload[len(payload)-size:]
	if binary.BigEndian.Uint64(b) != run {
		return 0, 0, false
	}
	return kind(b[offKind]), time.Duration(binary.BigEndian.Uint64(b[offStamp:])), true
}
