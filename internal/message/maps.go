// SPDX-License-Identifier: Apache-2.0

package message

import (
	"iter"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Names of the message annotations that brokers and SDKs agree on. They are on
// the wire and never change.
const (
	AnnotationSequenceNumber         = names.AnnotationSequenceNumber
	AnnotationEnqueuedTime           = names.AnnotationEnqueuedTime
	AnnotationLockedUntil            = names.AnnotationLockedUntil
	AnnotationEnqueuedSequenceNumber = names.AnnotationEnqueuedSequenceNumber
	AnnotationPartitionKey           = names.AnnotationPartitionKey
	AnnotationViaPartitionKey        = names.AnnotationViaPartitionKey
	AnnotationScheduledEnqueueTime   = names.AnnotationScheduledEnqueueTime
	AnnotationDeadLetterSource       = names.AnnotationDeadLetterSource
	AnnotationState                  = names.AnnotationState
	AnnotationOffset                 = names.AnnotationOffset

	// AnnotationLockToken is a delivery annotation.
	AnnotationLockToken = names.AnnotationLockToken
)

// Names of the application properties that say why a message is in a dead-letter
// queue.
const (
	PropertyState                 = names.PropertyState
	PropertyDeadLetterReason      = names.DeadLetterReason
	PropertyDeadLetterDescription = names.DeadLetterDescription
)

// Property returns the application property of exactly that name.
func (m *Message) Property(name string) (codec.Value, bool) {
	return m.find(sectionApplication, name)
}

// PropertyFold returns the first application property of that name in any case.
func (m *Message) PropertyFold(name string) (codec.Value, bool) {
	for key, v := range m.Properties() {
		if strings.EqualFold(key, name) {
			return v, true
		}
	}
	return codec.Value{}, false
}

// Properties yields the application properties in the order they came.
func (m *Message) Properties() iter.Seq2[string, codec.Value] { return m.pairs(sectionApplication) }

// ReadProperties makes r, which must be a zero Reader, a reader of the names
// and values of the application properties in turn. It is for callers that read
// all properties of every message.
func (m *Message) ReadProperties(r *codec.Reader) { m.enter(sectionApplication, r) }

// Annotation returns the message annotation of that name.
func (m *Message) Annotation(name string) (codec.Value, bool) {
	return m.find(sectionAnnotations, name)
}

// Annotations yields the message annotations in the order they came, except those
// with numbers for keys, which are reserved [AMQP 3.2.10].
func (m *Message) Annotations() iter.Seq2[string, codec.Value] { return m.pairs(sectionAnnotations) }

// ScheduledEnqueueTime returns when the sender wants the message to be enqueued.
func (m *Message) ScheduledEnqueueTime() (time.Time, bool) {
	v, _ := m.Annotation(AnnotationScheduledEnqueueTime)
	return v.Time()
}

// PartitionKey returns the partition key, empty if there is none.
func (m *Message) PartitionKey() string {
	v, _ := m.Annotation(AnnotationPartitionKey)
	s, _ := v.Str()
	return s
}

func (m *Message) find(s section, name string) (codec.Value, bool) {
	var r codec.Reader
	m.enter(s, &r)
	for r.More() {
		if r.Kind() == codec.KindUlong {
			r.Skip()
		} else if string(r.Text()) == name {
			return r.Value(), true
		}
		r.Skip()
	}
	return codec.Value{}, false
}

func (m *Message) pairs(s section) iter.Seq2[string, codec.Value] {
	return func(yield func(string, codec.Value) bool) {
		r := m.reader(s) // not in the for clause, which would copy it in each iteration
		for r.More() {
			key, v := r.Value(), r.Value()
			if k, ok := key.Str(); ok && !yield(k, v) {
				return
			}
		}
	}
}
