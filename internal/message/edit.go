// SPDX-License-Identifier: Apache-2.0

package message

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Change sets an application property or annotation, or removes it.
type Change struct {
	Name   string
	Value  codec.Value // null is a value too
	Remove bool        // instead of setting Value
}

// FieldChange sets a field of the properties section; null removes it.
type FieldChange struct {
	Field Field
	Value codec.Value
}

// Edit says how a copy of a message differs from it. Of several changes to one
// thing the last counts. A value whose encoding is invalid counts as removal:
// it would make the copy unreadable. The zero Edit changes nothing.
type Edit struct {
	Properties  []Change // application properties
	Annotations []Change // message annotations
	// Fields of the properties section. A value of a type that the field cannot
	// hold becomes its text in fields that hold text, and is ignored in others.
	Fields []FieldChange
	// TTL replaces the time to live in the header if SetTTL; zero removes it.
	TTL    time.Duration
	SetTTL bool
	// UnsetPriority removes the priority from the header.
	UnsetPriority bool
}

// Edit returns the encoding of a copy of m with the changes of e. Sections without
// a change keep their bytes.
func (m *Message) Edit(e Edit) []byte {
	const perChange = 64 // a guess that saves growing
	dst := make([]byte, 0, len(m.raw)+perChange*(1+len(e.Properties)+len(e.Annotations)+len(e.Fields)))
	if e.SetTTL || e.UnsetPriority {
		dst = m.editHeader(dst, &e)
	} else {
		dst = append(dst, m.bytes(sectionHeader)...)
	}
	dst = append(dst, m.bytes(sectionDelivery)...)
	dst = m.editMap(dst, sectionAnnotations, e.Annotations)
	if len(e.Fields) > 0 {
		dst = m.editFields(dst, e.Fields)
	} else {
		dst = append(dst, m.bytes(sectionProperties)...)
	}
	dst = m.editMap(dst, sectionApplication, e.Properties)
	return append(dst, m.raw[m.end[sectionApplication]:]...)
}

func (m *Message) editHeader(dst []byte, e *Edit) []byte {
	var set fieldSet
	if e.UnsetPriority {
		set.put(headerPriority, codec.Value{})
	}
	if ms := e.TTL.Milliseconds(); e.SetTTL && ms > 0 {
		set.put(headerTTL, codec.Uint(uint32(min(ms, math.MaxUint32))))
	} else if e.SetTTL {
		set.put(headerTTL, codec.Value{})
	}
	return set.append(dst, codeHeader, m.reader(sectionHeader))
}

func (m *Message) editFields(dst []byte, changes []FieldChange) []byte {
	var set fieldSet
	for _, c := range changes {
		if v, ok := fit(c.Field, c.Value); ok {
			set.put(int(c.Field), v)
		}
	}
	return set.append(dst, codeProperties, m.reader(sectionProperties))
}

// fit returns v as the field f may hold it.
func fit(f Field, v codec.Value) (codec.Value, bool) {
	switch {
	case f < 0 || f >= fieldCount:
		return codec.Value{}, false
	case propertyFields[f].has(v.Kind()):
		return v, true
	case propertyFields[f].has(codec.KindString):
		return codec.String(v.String()), true
	}
	return codec.Value{}, false
}

// fieldSet collects new values for the fields of a list.
type fieldSet struct {
	values [fieldCount]codec.Value
	set    [fieldCount]bool
}

func (s *fieldSet) put(i int, v codec.Value) { s.values[i], s.set[i] = v, true }

// append appends a section whose fields are those of s, and of the old one where
// s has none. Trailing nulls are left out, and a section of nothing else.
func (s *fieldSet) append(dst []byte, code uint64, fields codec.Reader) []byte {
	from := len(dst)
	dst, at := codec.BeginList(codec.AppendDescriptor(dst, code))
	n, end := 0, from
	for i := range s.values {
		raw := fields.Raw()
		switch {
		case s.set[i]:
			dst = codec.AppendValue(dst, s.values[i])
		case len(raw) > 0:
			dst = append(dst, raw...)
		default:
			dst = codec.AppendNull(dst)
		}
		if isNull := s.set[i] && s.values[i].IsNull() || !s.set[i] && (len(raw) == 0 || raw[0] == 0x40); !isNull {
			n, end = i+1, len(dst)
		}
	}
	if n == 0 {
		return dst[:from]
	}
	return codec.EndList(dst[:end], at, n)
}

// editMap appends a section of names and values with its changes.
func (m *Message) editMap(dst []byte, s section, changes []Change) []byte {
	if len(changes) == 0 {
		return append(dst, m.bytes(s)...)
	}
	// A table, because a client decides how many changes and how many
	// properties there are.
	last := make(map[string]int, len(changes))
	for i, c := range changes {
		last[c.Name] = i
	}
	w := openMap(dst, codeHeader+uint64(s))
	w.copyExcept(m.reader(s), func(name string) bool {
		_, changed := last[name]
		return changed
	})
	for i, c := range changes {
		if c.Remove || last[c.Name] != i || c.Value.Check() != nil {
			continue
		}
		if s == sectionApplication {
			w.dst = codec.AppendString(w.dst, c.Name)
			w.pairs++
		} else {
			w.key(c.Name)
		}
		w.dst = codec.AppendValue(w.dst, c.Value)
	}
	return w.close()
}
