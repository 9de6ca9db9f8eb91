// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

// Edit returns the changes of an action in the form that makes the changed copy of
// m: m.Edit(filter.Edit(m, changes)).
//
// Two settable properties leave no trace: ScheduledEnqueueTimeUtc, because the
// copy of a subscription is not scheduled again, and ForcePersistence, because
// every message is persistent. Neither do properties that senders cannot set.
func Edit(m *message.Message, changes []Change) message.Edit {
	var e message.Edit
	for _, c := range changes {
		switch name := c.Name.System; name {
		case NotSystem:
			if message.IsReserved(c.Name.User) {
				continue
			}
			e.Properties = appendUser(e.Properties, m, c)
		case TimeToLive:
			setTTL(&e, m, c)
		case PartitionKey:
			e.Annotations = append(e.Annotations, annotationChange(message.AnnotationPartitionKey, c))
		case ViaPartitionKey:
			e.Annotations = append(e.Annotations, annotationChange(message.AnnotationViaPartitionKey, c))
		default:
			if f, ok := fieldOf(name); ok {
				e.Fields = append(e.Fields, message.FieldChange{Field: f, Value: c.wire()})
			}
		}
	}
	return e
}

// wire returns the new value; null if there is none.
func (c Change) wire() codec.Value {
	if c.Remove {
		return codec.Value{}
	}
	return value.ToWire(c.Value)
}

// appendUser changes a user property under the spellings that m has, so that
// SET priority replaces Priority instead of adding a second property.
func appendUser(dst []message.Change, m *message.Message, c Change) []message.Change {
	name := c.Name.User
	if _, ok := m.Property(name); !ok {
		for key := range m.Properties() {
			if strings.EqualFold(key, name) {
				name = strings.Clone(key)
				break
			}
		}
	}
	return append(dst, message.Change{Name: name, Value: c.wire(), Remove: c.Remove})
}

func annotationChange(name string, c Change) message.Change {
	return message.Change{Name: name, Value: c.wire(), Remove: c.Remove}
}

// setTTL writes a time to live the way senders do: in the header, and for times
// that are too long for it also as the time of expiry.
func setTTL(e *message.Edit, m *message.Message, c Change) {
	e.SetTTL = true
	var expiry codec.Value
	if !c.Remove && c.Value.Ticks() != forever {
		// Zero would mean no limit; the shortest life is one millisecond.
		e.TTL = max(c.Value.Duration(), time.Millisecond)
		if from := m.CreationTime(); e.TTL.Milliseconds() > math.MaxUint32 && !from.IsZero() {
			expiry = codec.Timestamp(from.Add(e.TTL))
		}
	}
	if !expiry.IsNull() || !m.AbsoluteExpiry().IsZero() {
		e.Fields = append(e.Fields, message.FieldChange{Field: message.FieldAbsoluteExpiry, Value: expiry})
	}
}
