// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Annotations of Service Bus, exactly as they are on the wire.
const (
	annotationSeqNo       = names.AnnotationSequenceNumber
	annotationEnqueued    = names.AnnotationEnqueuedTime
	annotationLockedUntil = names.AnnotationLockedUntil
	annotationLockToken   = names.AnnotationLockToken
	annotationScheduled   = names.AnnotationScheduledEnqueueTime
	annotationPartition   = names.AnnotationPartitionKey
	annotationState       = names.AnnotationState
	annotationSource      = names.AnnotationDeadLetterSource
)

// encode returns m as it goes on the wire.
func (m *Message) encode() (*amqp.Message, error) {
	level, property, err := m.Priority.property(m.Properties)
	if err != nil {
		return nil, err
	}
	out := &amqp.Message{
		Header: &amqp.MessageHeader{Durable: true, Priority: level},
		Properties: &amqp.MessageProperties{
			MessageID:      m.ID,
			Subject:        optional(m.Subject),
			ContentType:    optional(m.ContentType),
			To:             optional(m.To),
			ReplyTo:        optional(m.ReplyTo),
			GroupID:        optional(m.Session),
			ReplyToGroupID: optional(m.ReplyToSession),
		},
		ApplicationProperties: m.Properties,
	}
	if m.CorrelationID != "" {
		out.Properties.CorrelationID = m.CorrelationID
	}
	if property != nil {
		out.ApplicationProperties = with(m.Properties, propertyPriority, property)
	}
	if m.PartitionKey != "" {
		annotate(out, annotationPartition, m.PartitionKey)
	}
	if !m.ScheduleAt.IsZero() {
		annotate(out, annotationScheduled, m.ScheduleAt)
	}
	m.encodeBody(out)
	return out, m.encodeTTL(out)
}

func (m *Message) encodeBody(out *amqp.Message) {
	if m.Body == nil && m.Value != nil {
		out.Value = m.Value
		return
	}
	// A body of no bytes is still a body: receivers expect the section.
	out.Data = [][]byte{m.Body}
}

// encodeTTL writes the time to live. The header's field is 32 bits of
// milliseconds, 49 days; what is longer is said by two points in time.
func (m *Message) encodeTTL(out *amqp.Message) error {
	switch {
	case m.TTL < 0:
		return fmt.Errorf("%w: time to live %v is negative", ErrInvalid, m.TTL)
	case m.TTL == 0:
	case m.TTL.Milliseconds() < math.MaxUint32:
		out.Header.TTL = max(m.TTL, time.Millisecond)
	default:
		now := time.Now()
		expiry := now.Add(m.TTL)
		out.Header.TTL = math.MaxUint32 * time.Millisecond
		out.Properties.CreationTime, out.Properties.AbsoluteExpiryTime = &now, &expiry
	}
	return nil
}

func annotate(m *amqp.Message, key string, value any) {
	if m.Annotations == nil {
		m.Annotations = amqp.Annotations{}
	}
	m.Annotations[key] = value
}

// with returns a copy of the map with one more entry: the caller's map is not
// ours to change.
func with(properties map[string]any, key string, value any) map[string]any {
	out := maps.Clone(properties)
	if out == nil {
		out = map[string]any{}
	}
	out[key] = value
	return out
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
