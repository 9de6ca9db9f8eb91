// SPDX-License-Identifier: Apache-2.0

package message

import (
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Message annotations that the broker, and only the broker, writes into a reply
// when it arrives: see Inherited. They are on the wire and on disk and never
// change.
const (
	annotationReplyLevel = "x-triage-reply-level" // ubyte
	annotationReplyClass = "x-triage-reply-class" // string, may be absent
	annotationReplySince = "x-triage-reply-since" // timestamp
)

// Inherited is what a reply without a priority of its own inherits from the
// request that it answers.
type Inherited struct {
	Level uint8
	Class string    // in the policy of the request's queue; empty is none
	Since time.Time // when the request arrived, to the millisecond
}

// Inherited returns what the broker has written into a reply.
func (m *Message) Inherited() (l Inherited, ok bool) {
	v, ok := m.Annotation(annotationReplyLevel)
	if !ok {
		return Inherited{}, false
	}
	level, isLevel := v.Int()
	if isLevel = isLevel && level >= 0 && level <= 255; isLevel {
		l.Level = uint8(level)
	}
	v, _ = m.Annotation(annotationReplyClass)
	l.Class, _ = v.Str()
	v, _ = m.Annotation(annotationReplySince)
	since, _ := v.Time()
	l.Since = since.UTC()
	return l, isLevel
}

// Changes returns the annotations that encode l.
func (l Inherited) Changes() []Change {
	return []Change{
		{Name: annotationReplyLevel, Value: codec.Ubyte(l.Level)},
		{Name: annotationReplyClass, Value: codec.String(l.Class), Remove: l.Class == ""},
		{Name: annotationReplySince, Value: codec.Timestamp(l.Since)},
	}
}
