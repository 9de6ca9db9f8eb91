// SPDX-License-Identifier: Apache-2.0

package message

import (
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Message annotations that the broker writes into a reply when it arrives, and
// nobody else: see Lent. They are on the wire and on disk and never change.
const (
	AnnotationReplyLevel = "x-triage-reply-level" // ubyte
	AnnotationReplyClass = "x-triage-reply-class" // string, may be absent
	AnnotationReplySince = "x-triage-reply-since" // timestamp
)

// Lent is what a reply without a priority of its own has of the request that it
// answers.
type Lent struct {
	Level uint8
	Class string    // in the policy of the request's queue; empty is none
	Since time.Time // when the request arrived, to the millisecond
}

// Lent returns what the broker has written into a reply.
func (m *Message) Lent() (l Lent, ok bool) {
	v, ok := m.Annotation(AnnotationReplyLevel)
	if !ok {
		return Lent{}, false
	}
	level, isLevel := v.Int()
	if isLevel = isLevel && level >= 0 && level <= 255; isLevel {
		l.Level = uint8(level)
	}
	v, _ = m.Annotation(AnnotationReplyClass)
	l.Class, _ = v.Str()
	v, _ = m.Annotation(AnnotationReplySince)
	since, _ := v.Time()
	l.Since = since.UTC()
	return l, isLevel
}

// Changes returns the annotations that tell l.
func (l Lent) Changes() []Change {
	return []Change{
		{Name: AnnotationReplyLevel, Value: codec.Ubyte(l.Level)},
		{Name: AnnotationReplyClass, Value: codec.String(l.Class), Remove: l.Class == ""},
		{Name: AnnotationReplySince, Value: codec.Timestamp(l.Since)},
	}
}

// ClaimsLoan reports whether a message has an annotation of those that only the
// broker may write.
func (m *Message) ClaimsLoan() bool {
	for name := range m.Annotations() {
		switch name {
		case AnnotationReplyLevel, AnnotationReplyClass, AnnotationReplySince:
			return true
		}
	}
	return false
}

// Unlent returns the changes that take these annotations away.
func Unlent() []Change {
	return []Change{
		{Name: AnnotationReplyLevel, Remove: true},
		{Name: AnnotationReplyClass, Remove: true},
		{Name: AnnotationReplySince, Remove: true},
	}
}
