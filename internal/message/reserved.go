// SPDX-License-Identifier: Apache-2.0

package message

import (
	"fmt"
	"strings"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
)

// reservedAnnotations are the message annotations that only the broker writes: consumers,
// the API and the classification of messages trust them.
var reservedAnnotations = map[string]bool{
	AnnotationSequenceNumber:         true,
	AnnotationEnqueuedTime:           true,
	AnnotationLockedUntil:            true,
	AnnotationEnqueuedSequenceNumber: true,
	AnnotationDeadLetterSource:       true,
	AnnotationState:                  true,
	AnnotationOffset:                 true,
	names.AnnotationSource:           true,
	names.AnnotationLevel:            true,
	names.AnnotationClass:            true,
	names.AnnotationObjective:        true,
	names.AnnotationRetryAt:          true,
	annotationReplyLevel:             true,
	annotationReplyClass:             true,
	annotationReplySince:             true,
}

// reservedProperties are the application properties that only the holder of a lock writes,
// when it gives a message back: worker pools trust them. Case does not count: HTTP changes
// it.
var reservedProperties = [...]string{names.PropertyState, names.PropertyPreemptions}

// IsReserved reports whether senders and rules cannot set an application property of that
// name.
func IsReserved(property string) bool {
	for _, name := range reservedProperties {
		if len(name) == len(property) && strings.EqualFold(name, property) {
			return true
		}
	}
	return false
}

func isReservedAnnotation(name string) bool { return reservedAnnotations[name] }

// WithoutReserved returns a message from outside without the annotations and properties
// that senders cannot set. It is m itself if m has none of them, which costs no allocation;
// a copy takes no more memory than m.
func (m *Message) WithoutReserved() *Message {
	if !m.has(sectionAnnotations, isReservedAnnotation) && !m.has(sectionApplication, IsReserved) {
		return m
	}
	dst := append(make([]byte, 0, len(m.raw)), m.raw[:m.end[sectionDelivery]]...)
	dst = m.appendExcept(dst, sectionAnnotations, isReservedAnnotation)
	dst = append(dst, m.bytes(sectionProperties)...)
	dst = m.appendExcept(dst, sectionApplication, IsReserved)
	dst = append(dst, m.raw[m.end[sectionApplication]:]...)
	out, err := ParseStored(dst)
	if err != nil {
		panic(fmt.Sprintf("message: without reserved names: %v", err)) // see FuzzParse
	}
	return out
}

// has reports whether a section that is a map has a name.
func (m *Message) has(s section, named func(string) bool) bool {
	var r codec.Reader
	m.enter(s, &r)
	for r.More() {
		if r.Kind() == codec.KindUlong {
			r.Skip()
		} else if name, _ := r.Value().Str(); named(name) {
			return true
		}
		r.Skip()
	}
	return false
}

// appendExcept appends a section that is a map without some names.
func (m *Message) appendExcept(dst []byte, s section, except func(string) bool) []byte {
	w := openMap(dst, codeHeader+uint64(s))
	w.copyExcept(m.reader(s), except)
	return w.close()
}
