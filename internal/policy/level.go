// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"strings"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/message"
)

// noPriority is the level of a message without a priority, as in AMQP.
const noPriority = 4

// PriorityProperty is the application property in which a sender names the
// priority of a message.
const PriorityProperty = "Priority"

// names are the levels that have a name.
var names = map[string]uint8{
	"critical":   9,
	"high":       7,
	"normal":     4,
	"low":        2,
	"background": 0,
}

// ParseLevel reads a level: a number from 0 to 255, or a name in any case.
func ParseLevel(text string) (uint8, bool) {
	text = strings.TrimSpace(text)
	if l, ok := names[strings.ToLower(text)]; ok {
		return l, true
	}
	n, err := strconv.ParseUint(text, 10, 8)
	return uint8(n), err == nil
}

// Level returns the level of a message without regard to classes: that of the application
// property Priority, else of its header, else noPriority. A reply that had none when it
// arrived has that of its request.
func Level(m *message.Message) uint8 {
	if l, ok := inherited(m); ok {
		return l.Level
	}
	l, _ := RequestedLevel(m)
	return l
}

// inherited returns what a reply inherits from its request. A priority that a rule of a
// topic has set since takes precedence.
func inherited(m *message.Message) (message.Inherited, bool) {
	l, ok := m.Inherited()
	if ok {
		_, set := property(m)
		ok = !set
	}
	return l, ok
}

// property returns the level of the application property Priority.
func property(m *message.Message) (level uint8, ok bool) {
	v, ok := m.Property(PriorityProperty)
	if !ok {
		return 0, false
	}
	return levelOf(v)
}

// RequestedLevel returns the level that the sender of a message has set, and whether it
// has. A header with the default priority counts as not set.
func RequestedLevel(m *message.Message) (level uint8, ok bool) {
	if l, ok := property(m); ok {
		return l, true
	}
	h := m.Header()
	if !h.PrioritySet || h.Priority == noPriority {
		return noPriority, false
	}
	return h.Priority, true
}

// levelOf reads a level from a property; a value that is no level is the same as no
// property.
func levelOf(v codec.Value) (uint8, bool) {
	if text, ok := v.Str(); ok {
		if l, ok := shortNames(text); ok {
			return l, true
		}
		return ParseLevel(text)
	}
	if n, ok := v.Int(); ok && n >= 0 && n <= 255 {
		return uint8(n), true
	}
	return 0, false
}

// shortNames finds the spellings of the documents' own example without allocating.
func shortNames(text string) (uint8, bool) {
	switch text {
	case "High":
		return names["high"], true
	case "Low":
		return names["low"], true
	}
	l, ok := names[text]
	return l, ok
}
