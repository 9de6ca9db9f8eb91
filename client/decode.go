// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// decode reads a message that came over a link or out of a management reply.
func decode(in *amqp.Message) *Received {
	m := &Received{Message: Message{Properties: in.ApplicationProperties}}
	m.decodeBody(in)
	level := uint8(defaultLevel)
	if h := in.Header; h != nil {
		level, m.TTL, m.DeliveryCount = h.Priority, h.TTL, h.DeliveryCount
	}
	m.Priority = priorityOf(level, in.ApplicationProperties)
	if p := in.Properties; p != nil {
		m.ID, m.CorrelationID = identifier(p.MessageID), identifier(p.CorrelationID)
		m.Subject, m.ContentType, m.To = text(p.Subject), text(p.ContentType), text(p.To)
		m.ReplyTo, m.ReplyToSession = text(p.ReplyTo), text(p.ReplyToGroupID)
		m.Session = text(p.GroupID)
		if p.AbsoluteExpiryTime != nil && p.CreationTime != nil {
			m.TTL = p.AbsoluteExpiryTime.Sub(*p.CreationTime)
		}
	}
	m.decodeAnnotations(in)
	m.DeadLetterReason, _ = in.ApplicationProperties[names.DeadLetterReason].(string)
	m.DeadLetterDescription, _ = in.ApplicationProperties[names.DeadLetterDescription].(string)
	return m
}

func (m *Received) decodeBody(in *amqp.Message) {
	switch {
	case len(in.Data) == 1:
		m.Body = in.Data[0]
	case len(in.Data) > 1:
		for _, part := range in.Data {
			m.Body = append(m.Body, part...)
		}
	case in.Value != nil:
		m.Value = in.Value
	case len(in.Sequence) > 0:
		var all []any
		for _, part := range in.Sequence {
			all = append(all, part...)
		}
		m.Value = all
	}
}

func (m *Received) decodeAnnotations(in *amqp.Message) {
	if n, ok := integer(in.Annotations[annotationSeqNo]); ok {
		m.SeqNo = SeqNo(n)
	}
	if n, ok := integer(in.Annotations[annotationState]); ok {
		m.State = State(n)
	}
	m.Enqueued, _ = in.Annotations[annotationEnqueued].(time.Time)
	m.LockedUntil, _ = in.Annotations[annotationLockedUntil].(time.Time)
	m.ScheduleAt, _ = in.Annotations[annotationScheduled].(time.Time)
	m.PartitionKey, _ = in.Annotations[annotationPartition].(string)
	m.DeadLetterSource, _ = in.Annotations[annotationSource].(string)
	if n, ok := integer(in.Annotations[annotationLevel]); ok && n >= 0 && n <= math.MaxUint8 {
		level := uint8(n)
		m.Level = &level
	}
	m.Class, _ = in.Annotations[annotationClass].(string)
	if n, ok := integer(in.Annotations[annotationObjective]); ok {
		m.Objective = time.Duration(n) * time.Millisecond
	}
	m.Source, _ = in.Annotations[annotationFrom].(string)
	m.RetryAt, _ = in.Annotations[annotationRetryAt].(time.Time)
}

// lockToken finds the lock of a delivery: in its annotation, else in the tag,
// whose first three groups have the byte order of a .NET Guid.
func lockToken(in *amqp.Message) amqp.UUID {
	if token, ok := in.DeliveryAnnotations[annotationLockToken].(amqp.UUID); ok {
		return token
	}
	var t amqp.UUID
	if len(in.DeliveryTag) != len(t) {
		return t
	}
	for to, from := range [...]int{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15} {
		t[to] = in.DeliveryTag[from]
	}
	return t
}

// identifier makes text of the four types that an id may have [AMQP 3.2.11].
func identifier(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case amqp.UUID:
		return v.String()
	case []byte:
		return hex.EncodeToString(v)
	default:
		return fmt.Sprint(v)
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
