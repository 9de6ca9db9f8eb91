// SPDX-License-Identifier: Apache-2.0

package message

import (
	"iter"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Format is the message format that a transfer announces.
type Format uint32

const (
	// FormatAMQP is a single message [AMQP 2.8.11].
	FormatAMQP Format = 0
	// FormatBatch is an envelope with one whole message in each of its data
	// sections, as the Service Bus and Event Hubs SDKs send them.
	FormatBatch Format = 0x80013700
)

// maxSize is the largest message that is read at all, in bytes. Entities have
// lower limits of their own.
const maxSize = 1 << 30

// section numbers the sections of a message in their order. The body, any
// number of sections of one kind, counts as one.
type section int

const (
	sectionHeader section = iota
	sectionDelivery
	sectionAnnotations
	sectionProperties
	sectionApplication
	sectionBody
	sectionFooter
)

// Descriptors of the sections [AMQP 3.2]. They are on the wire and never change.
const (
	codeHeader      = 0x70
	codeDelivery    = 0x71
	codeAnnotations = 0x72
	codeProperties  = 0x73
	codeApplication = 0x74
	codeData        = 0x75
	codeSequence    = 0x76
	codeValue       = 0x77
	codeFooter      = 0x78
)

// descriptorLen is the length of 00 53 and the code that every section begins
// with.
const descriptorLen = 3

// Message is one immutable message. Make one with Parse or from a Draft.
type Message struct {
	raw []byte
	// end is where each section ends, present or not. A section begins where the
	// one before it ends. The footer ends with raw.
	end [sectionFooter]uint32
}

// Bytes returns the encoded message, which must not be changed.
func (m *Message) Bytes() []byte { return m.raw }

// Size returns the length of the encoded message in bytes.
func (m *Message) Size() int { return len(m.raw) }

// bytes returns the encoding of a section, empty if it is absent.
func (m *Message) bytes(s section) []byte {
	from, to := uint32(0), uint32(len(m.raw))
	if s > 0 {
		from = m.end[s-1]
	}
	if s < sectionFooter {
		to = m.end[s]
	}
	return m.raw[from:to:to]
}

// reader returns a Reader of the fields of a section that is a list, or of the
// keys and values of one that is a map. One that is absent has none.
func (m *Message) reader(s section) (r codec.Reader) {
	m.enter(s, &r)
	return r
}

// enter is reader without the copy, for code that runs for every message.
func (m *Message) enter(s section, r *codec.Reader) {
	if b := m.bytes(s); len(b) > 0 {
		r.Enter(b[descriptorLen:])
	}
}

// Data yields the contents of the data sections of the body, usually one. Bodies
// of another kind, or none, have none.
func (m *Message) Data() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		b := m.bytes(sectionBody)
		for len(b) > 0 && b[2] == codeData {
			r := codec.NewReader(b[descriptorLen:])
			if !yield(r.Binary()) {
				return
			}
			b = r.Rest()
		}
	}
}

// Value returns the body that is an amqp-value section.
func (m *Message) Value() (codec.Value, bool) {
	b := m.bytes(sectionBody)
	if len(b) == 0 || b[2] != codeValue {
		return codec.Value{}, false
	}
	r := codec.NewReader(b[descriptorLen:])
	return r.Value(), true
}

// Sequences yields the lists of a body of amqp-sequence sections.
func (m *Message) Sequences() iter.Seq[codec.Value] {
	return func(yield func(codec.Value) bool) {
		b := m.bytes(sectionBody)
		for len(b) > 0 && b[2] == codeSequence {
			r := codec.NewReader(b[descriptorLen:])
			if !yield(r.Value()) {
				return
			}
			b = r.Rest()
		}
	}
}

// BodySize returns the length of the encoded body in bytes.
func (m *Message) BodySize() int { return len(m.bytes(sectionBody)) }
