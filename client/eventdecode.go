// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/message"
)

// decodeEvent reads an event into e, which is empty, as decode reads what go-amqp has read.
// It knows what most events have, and reports false for others: then e is undefined.
//
// The body shares the bytes of the delivery. Texts share a copy of what is before the body,
// so that one who keeps a text does not keep the delivery.
func decodeEvent(e *Received, raw []byte) bool {
	head, body, ok := message.SplitEvent(raw)
	if !ok {
		return false
	}
	e.Body = body
	level := uint8(defaultLevel)
	for head = bytes.Clone(head); len(head) > 0; {
		var s message.Section
		s, head = message.NextSection(head)
		switch s.Code {
		case message.HeaderSection:
			level, ok = e.decodeHeader(&s.Fields)
		case message.AnnotationsSection:
			ok = e.decodeKey(&s.Fields)
		case message.PropertiesSection:
			ok = e.decodeFields(&s.Fields)
		case message.ApplicationSection:
			ok = e.decodeProperties(&s.Fields)
		}
		if !ok || s.Fields.Err() != nil {
			return false
		}
	}
	e.Priority = priorityOf(level, e.Properties)
	if e.Properties != nil {
		e.DeadLetterReason, _ = e.Properties[names.DeadLetterReason].(string)
		e.DeadLetterDescription, _ = e.Properties[names.DeadLetterDescription].(string)
	}
	return true
}

// decodeHeader reads the header [AMQP 3.2.1].
func (m *Received) decodeHeader(r *codec.Reader) (level uint8, ok bool) {
	level = defaultLevel
	r.Skip() // durable
	if r.More() && !r.Null() {
		level = r.Ubyte()
	}
	if r.More() && !r.Null() {
		m.TTL = time.Duration(r.Uint()) * time.Millisecond
	}
	if r.More() {
		r.Skip() // first-acquirer
	}
	if r.More() && !r.Null() {
		m.DeliveryCount = r.Uint()
	}
	return level, true
}

// decodeKey reads the annotations, of which events have the partition key.
func (m *Received) decodeKey(r *codec.Reader) bool {
	for r.More() {
		key, v := r.Pair()
		if key != annotationPartition || v.Kind() != codec.KindString {
			return false
		}
		m.PartitionKey, _ = v.Str()
	}
	return true
}

// decodeFields reads the properties [AMQP 3.2.4].
func (m *Received) decodeFields(r *codec.Reader) bool {
	for f := message.FieldMessageID; r.More(); f++ {
		v := r.Value()
		if v.IsNull() {
			continue
		}
		text, ok := v.Str()
		switch f {
		case message.FieldMessageID:
			m.ID = text
		case message.FieldTo:
			m.To = text
		case message.FieldSubject:
			m.Subject = text
		case message.FieldReplyTo:
			m.ReplyTo = text
		case message.FieldCorrelationID:
			m.CorrelationID = text
		case message.FieldContentType:
			m.ContentType = text
		case message.FieldSessionID:
			m.Session = text
		case message.FieldReplyToSessionID:
			m.ReplyToSession = text
		case message.FieldContentEncoding:
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// decodeProperties reads the application properties.
func (m *Received) decodeProperties(r *codec.Reader) bool {
	m.Properties = make(map[string]any, min(r.Left(), r.Len())/2)
	for r.More() {
		key, v := r.Pair()
		value, ok := plain(v)
		if !ok {
			return false
		}
		m.Properties[key] = value
	}
	return true
}

// plain returns a value as go-amqp does; ok is false for what is left to that.
func plain(v codec.Value) (value any, ok bool) {
	switch v.Kind() {
	case codec.KindNull:
		return nil, true
	case codec.KindString:
		s, _ := v.Str()
		return s, true
	case codec.KindBool:
		b, _ := v.Bool()
		return b, true
	case codec.KindTimestamp:
		t, _ := v.Time()
		return t.Local(), true
	case codec.KindUUID:
		id, _ := v.UUID()
		return amqp.UUID(id), true
	}
	return plainNumber(v)
}

func plainNumber(v codec.Value) (value any, ok bool) {
	signed, _ := v.Int()
	unsigned, _ := v.Uint()
	float, _ := v.Float()
	switch v.Kind() {
	case codec.KindByte:
		return int8(signed), true
	case codec.KindShort:
		return int16(signed), true
	case codec.KindInt:
		return int32(signed), true
	case codec.KindLong:
		return signed, true
	case codec.KindUbyte:
		return uint8(unsigned), true
	case codec.KindUshort:
		return uint16(unsigned), true
	case codec.KindUint:
		return uint32(unsigned), true
	case codec.KindUlong:
		return unsigned, true
	case codec.KindFloat:
		return float32(float), true
	case codec.KindDouble:
		return float, true
	}
	return nil, false
}
