// SPDX-License-Identifier: Apache-2.0

package message

import (
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// kinds is a set of types.
type kinds uint32

func setOf(ks ...codec.Kind) (s kinds) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

func (s kinds) has(k codec.Kind) bool { return s&(1<<k) != 0 }

// The types that fields and keys may have; any field may be null. Texts may be
// strings or symbols, whichever the specification demands, since senders mix
// them up and every decoder accepts both.
var (
	aBool      = setOf(codec.KindNull, codec.KindBool)
	aUbyte     = setOf(codec.KindNull, codec.KindUbyte)
	aUint      = setOf(codec.KindNull, codec.KindUint)
	aText      = setOf(codec.KindNull, codec.KindString, codec.KindSymbol)
	aBinary    = setOf(codec.KindNull, codec.KindBinary)
	aTimestamp = setOf(codec.KindNull, codec.KindTimestamp)
	anID       = setOf(codec.KindNull, codec.KindUlong, codec.KindUUID, codec.KindBinary, codec.KindString)

	stringKeys = setOf(codec.KindString, codec.KindSymbol)
	symbolKeys = setOf(codec.KindSymbol, codec.KindString, codec.KindUlong)
)

// headerFields are durable, priority, ttl, first-acquirer and delivery-count
// [AMQP 3.2.1].
var headerFields = [...]kinds{aBool, aUbyte, aUint, aBool, aUint}

// Positions of fields in the header.
const (
	headerPriority = 1
	headerTTL      = 2
)

// Field is a field of the properties section, by its position [AMQP 3.2.4].
type Field int

// The fields of the properties section, with the names of Service Bus: the
// session is the group of the specification.
const (
	FieldMessageID Field = iota
	FieldUserID
	FieldTo
	FieldSubject
	FieldReplyTo
	FieldCorrelationID
	FieldContentType
	FieldContentEncoding
	FieldAbsoluteExpiry
	FieldCreationTime
	FieldSessionID
	FieldGroupSequence
	FieldReplyToSessionID
	fieldCount
)

var propertyFields = [fieldCount]kinds{
	anID, aBinary, aText, aText, aText, anID, aText, aText, aTimestamp, aTimestamp, aText, aUint, aText,
}

// defaultPriority is the priority of a message whose sender set none [AMQP
// 3.2.1].
const defaultPriority = 4

// Header is the header section [AMQP 3.2.1].
type Header struct {
	Durable       bool
	FirstAcquirer bool
	PrioritySet   bool
	TTLSet        bool
	Priority      uint8 // defaultPriority unless set
	DeliveryCount uint32
	TTL           time.Duration
}

// Header returns the header, or the default header if there is none.
func (m *Message) Header() Header {
	var r codec.Reader
	m.enter(sectionHeader, &r)
	if r.Left() == 0 {
		return Header{Priority: defaultPriority}
	}
	h := Header{Durable: r.Bool(), Priority: defaultPriority}
	if !r.Null() {
		h.Priority, h.PrioritySet = r.Ubyte(), true
	}
	if !r.Null() {
		h.TTL, h.TTLSet = time.Duration(r.Uint())*time.Millisecond, true
	}
	h.FirstAcquirer = r.Bool()
	h.DeliveryCount = r.Uint()
	return h
}

// Field returns a field of the properties, null if it is absent.
func (m *Message) Field(f Field) codec.Value {
	var r codec.Reader
	m.enter(sectionProperties, &r)
	if r.Left() <= int(f) {
		return codec.Value{} // as most fields of most messages are
	}
	for range f {
		r.Skip()
	}
	return r.Value()
}

func (m *Message) text(f Field) string {
	s, _ := m.Field(f).Str()
	return s
}

func (m *Message) time(f Field) time.Time {
	t, _ := m.Field(f).Time()
	return t
}

// MessageID returns the message-id: a ulong, uuid, binary or string, or null.
func (m *Message) MessageID() codec.Value { return m.Field(FieldMessageID) }

// MessageIDString returns the message-id as text, empty if there is none.
func (m *Message) MessageIDString() string {
	v := m.MessageID()
	if v.IsNull() {
		return ""
	}
	return v.String()
}

// CorrelationID returns the correlation-id, of the same types as a message-id.
func (m *Message) CorrelationID() codec.Value { return m.Field(FieldCorrelationID) }

// SessionID returns the session. The empty string is a session too.
func (m *Message) SessionID() (string, bool) { return m.Field(FieldSessionID).Str() }

// ReplyToSessionID returns the session that replies should belong to.
func (m *Message) ReplyToSessionID() string { return m.text(FieldReplyToSessionID) }

// To returns the address the sender named in the message.
func (m *Message) To() string { return m.text(FieldTo) }

// ReplyTo returns the address for replies.
func (m *Message) ReplyTo() string { return m.text(FieldReplyTo) }

// Subject returns the subject, also called label.
func (m *Message) Subject() string { return m.text(FieldSubject) }

// ContentType returns the type of the body as a MIME type.
func (m *Message) ContentType() string { return m.text(FieldContentType) }

// CreationTime returns when the sender created the message, or the zero Time.
func (m *Message) CreationTime() time.Time { return m.time(FieldCreationTime) }

// AbsoluteExpiry returns when the message expires, or the zero Time. Senders use
// it for times to live beyond the 49 days that the header can hold.
func (m *Message) AbsoluteExpiry() time.Time { return m.time(FieldAbsoluteExpiry) }
