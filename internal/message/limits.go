// SPDX-License-Identifier: Apache-2.0

package message

import (
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/limits"
)

// CheckLimits returns a *limits.Error if a message exceeds the limits for
// names, properties and annotations. The entity limits its total size. Most
// messages are so small in every section that nothing has to be read.
func (m *Message) CheckLimits() error {
	fields := m.end[sectionProperties] - m.end[sectionAnnotations]
	annotations := m.end[sectionAnnotations] - m.end[sectionDelivery]
	application := m.end[sectionApplication] - m.end[sectionProperties]
	if fields <= limits.Name && annotations <= limits.Name && application <= limits.Property &&
		m.end[sectionDelivery] <= limits.Annotations && uint32(len(m.raw))-m.end[sectionBody] <= limits.Annotations {
		return nil
	}
	return m.checkSections()
}

// checkSections is CheckLimits for a message with a section that is large
// enough to exceed a limit.
func (m *Message) checkSections() error {
	for _, s := range [...]struct {
		section section
		what    string
		most    int
	}{
		{sectionDelivery, "delivery annotations", limits.Annotations},
		{sectionAnnotations, "message annotations", limits.Annotations},
		{sectionProperties, "fields of the properties section", limits.Fields},
		{sectionApplication, "application properties", limits.Properties},
		{sectionFooter, "footer", limits.Annotations},
	} {
		if err := limits.CheckBytes(s.what, len(m.bytes(s.section)), s.most); err != nil {
			return err
		}
	}
	for _, f := range [...]struct {
		field Field
		what  string
	}{{FieldMessageID, "message id"}, {FieldSessionID, "session id"}, {FieldReplyToSessionID, "reply-to session id"}} {
		if err := checkName(f.what, m.Field(f.field)); err != nil {
			return err
		}
	}
	for _, name := range [...]string{AnnotationPartitionKey, AnnotationViaPartitionKey} {
		if v, ok := m.Annotation(name); ok {
			if err := checkName("partition key", v); err != nil {
				return err
			}
		}
	}
	return m.checkProperties()
}

// checkName checks a text or binary value; others are short.
func checkName(what string, v codec.Value) error {
	if s, ok := v.Str(); ok {
		return limits.CheckText(what, s, limits.Name)
	}
	b, _ := v.Bytes()
	return limits.CheckBytes(what, len(b), limits.Name)
}

// checkProperties finds an application property that is too large by itself.
func (m *Message) checkProperties() error {
	if len(m.bytes(sectionApplication)) <= limits.Property {
		return nil
	}
	for r := m.reader(sectionApplication); r.More(); {
		if n := len(r.Raw()) + len(r.Raw()); n > limits.Property {
			return limits.CheckBytes("application property", n, limits.Property)
		}
	}
	return nil
}

// CheckChanges returns how many bytes changes of application properties have,
// or an error if they exceed the limits for the properties of a message.
func CheckChanges(changes []Change) (size int, err error) {
	total := 0
	var value []byte
	for _, c := range changes {
		value = codec.AppendValue(value[:0], c.Value)
		n := len(c.Name) + len(value)
		if err := limits.CheckBytes("application property", n, limits.Property); err != nil {
			return 0, err
		}
		total += n
	}
	return total, limits.CheckBytes("properties to modify", total, limits.Properties)
}
