// SPDX-License-Identifier: Apache-2.0

package message

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Pair is a name and a value of an application property or annotation.
type Pair struct {
	Name  string
	Value codec.Value
}

// Draft builds a message from Go values. Fields left at zero are not sent; maps
// are sent in the order given.
type Draft struct {
	Durable     bool
	Priority    uint8 // sent if PrioritySet or not zero
	PrioritySet bool
	TTL         time.Duration

	DeliveryAnnotations []Pair
	Annotations         []Pair

	MessageID        codec.Value // string, ulong, uuid or binary
	UserID           []byte
	To               string
	Subject          string
	ReplyTo          string
	CorrelationID    codec.Value
	ContentType      string
	ContentEncoding  string
	AbsoluteExpiry   time.Time
	CreationTime     time.Time
	SessionID        string // sent if HasSession or not empty
	HasSession       bool
	ReplyToSessionID string

	Application []Pair

	// Body is sent as one data section unless it is nil.
	Body []byte
	// Value, if set, is sent as an amqp-value section instead.
	Value *codec.Value
}

// EncodeHead appends the draft up to the value of an amqp-value section, which the caller
// appends: a large one is written once so.
func (d *Draft) EncodeHead(dst []byte) []byte {
	return codec.AppendDescriptor(d.appendSections(dst), codeValue)
}

// Encode appends the draft as a message.
func (d *Draft) Encode(dst []byte) []byte {
	dst = d.appendSections(dst)
	switch {
	case d.Value != nil:
		dst = codec.AppendValue(codec.AppendDescriptor(dst, codeValue), *d.Value)
	case d.Body != nil:
		dst = codec.AppendBinary(codec.AppendDescriptor(dst, codeData), d.Body)
	}
	return dst
}

// appendSections appends what comes before the body.
func (d *Draft) appendSections(dst []byte) []byte {
	dst = d.appendHeader(dst)
	dst = appendPairs(dst, codeDelivery, d.DeliveryAnnotations)
	dst = appendPairs(dst, codeAnnotations, d.Annotations)
	dst = d.appendProperties(dst)
	return appendPairs(dst, codeApplication, d.Application)
}

// Message returns the draft as a message. It panics if an id is of a type that ids
// cannot have, which is a mistake in the program.
func (d *Draft) Message() *Message {
	m, err := Parse(d.Encode(nil))
	if err != nil {
		panic("message: draft: " + err.Error())
	}
	return m
}

func (d *Draft) appendHeader(dst []byte) []byte {
	var set fieldSet
	if d.Durable {
		set.put(0, codec.Bool(true))
	}
	if d.PrioritySet || d.Priority != 0 {
		set.put(1, codec.Ubyte(d.Priority))
	}
	if ms := d.TTL.Milliseconds(); ms > 0 {
		set.put(headerTTL, codec.Uint(uint32(min(ms, math.MaxUint32))))
	}
	return set.append(dst, codeHeader, codec.Reader{})
}

func (d *Draft) appendProperties(dst []byte) []byte {
	var set fieldSet
	text := func(f Field, s string, as func(string) codec.Value) {
		if s != "" {
			set.put(int(f), as(s))
		}
	}
	moment := func(f Field, t time.Time) {
		if !t.IsZero() {
			set.put(int(f), codec.Timestamp(t))
		}
	}
	set.put(int(FieldMessageID), d.MessageID)
	if d.UserID != nil {
		set.put(int(FieldUserID), codec.Binary(d.UserID))
	}
	text(FieldTo, d.To, codec.String)
	text(FieldSubject, d.Subject, codec.String)
	text(FieldReplyTo, d.ReplyTo, codec.String)
	set.put(int(FieldCorrelationID), d.CorrelationID)
	text(FieldContentType, d.ContentType, codec.Symbol)
	text(FieldContentEncoding, d.ContentEncoding, codec.Symbol)
	moment(FieldAbsoluteExpiry, d.AbsoluteExpiry)
	moment(FieldCreationTime, d.CreationTime)
	if d.HasSession || d.SessionID != "" {
		set.put(int(FieldSessionID), codec.String(d.SessionID))
	}
	text(FieldReplyToSessionID, d.ReplyToSessionID, codec.String)
	return set.append(dst, codeProperties, codec.Reader{})
}

// appendPairs appends a map section; the keys of application properties are
// strings, those of annotations symbols.
func appendPairs(dst []byte, code uint64, pairs []Pair) []byte {
	if len(pairs) == 0 {
		return dst
	}
	dst, at := codec.BeginMap(codec.AppendDescriptor(dst, code))
	for _, p := range pairs {
		if code == codeApplication {
			dst = codec.AppendString(dst, p.Name)
		} else {
			dst = codec.AppendSymbol(dst, p.Name)
		}
		dst = codec.AppendValue(dst, p.Value)
	}
	return codec.EndMap(dst, at, len(pairs))
}
