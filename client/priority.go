// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Priority says how urgent a message is: a level from 0 to 255 as made by
// [Level], a name such as [High], or "" for none, which the broker takes for level 4
// or, in a reply, for that of the request. Higher is served first.
//
// A level travels in the AMQP header. A name travels as the application
// property "Priority", where subscription rules and priority policies can see
// it. Send refuses every other text, with [ErrInvalid]: it would mean none. Names that
// only a policy knows go into [Message.Properties]; of a receiver's MinPriority and
// MaxPriority they are as good as any.
//
// A priority that is set replaces a property "Priority" that says something else, so
// that a received message can be sent on as more urgent.
type Priority string

// The names that every broker knows, case-blind, with their levels.
const (
	Critical   Priority = "critical"   // level 9
	High       Priority = "high"       // level 7
	Normal     Priority = "normal"     // level 4
	Low        Priority = "low"        // level 2
	Background Priority = "background" // level 0
)

// propertyPriority is the application property that carries a name.
const propertyPriority = "Priority"

// defaultLevel is what AMQP takes an absent priority for [AMQP 3.2.1]. go-amqp
// leaves the field out when it has this value.
const defaultLevel = 4

// Level returns the priority of the level n.
func Level(n uint8) Priority { return Priority(strconv.Itoa(int(n))) }

// split returns what p means on the wire: the header's level, and the name if
// it is one.
func (p Priority) split() (level uint8, name string, err error) {
	if p == "" {
		return defaultLevel, "", nil
	}
	n, err := strconv.Atoi(string(p))
	if err != nil {
		return defaultLevel, string(p), nil
	}
	if n < 0 || n > 255 {
		return 0, "", fmt.Errorf("%w: priority %d is outside 0..255", ErrInvalid, n)
	}
	return uint8(n), "", nil
}

// property returns the level for the header and what goes into the application
// property, nil for nothing. The broker looks at the property first, so it must not
// say something else than p.
func (p Priority) property(properties map[string]any) (level uint8, value any, err error) {
	level, name, err := p.split()
	if err != nil || p == "" {
		return level, nil, err
	}
	if name != "" {
		if !isKnown(name) {
			return 0, nil, fmt.Errorf("%w: priority %q is neither a level from 0 to 255 nor critical, high, normal, low or background; "+
				"a name for a policy goes into the property %s", ErrInvalid, name, propertyPriority)
		}
		return level, name, nil
	}
	own, has := properties[propertyPriority]
	if _, names := named(own); names || !has && level == defaultLevel {
		// go-amqp leaves the default out of the header, and a reply would inherit.
		return level, int32(level), nil
	}
	return level, nil, nil
}

// isKnown reports whether a name is one that every broker knows.
func isKnown(name string) bool {
	return slices.Contains([]Priority{Critical, High, Normal, Low, Background}, Priority(strings.ToLower(name)))
}

// named reads the application property: a name, or a level as a number or its text. Names that
// only a policy knows are not for us to judge.
func named(property any) (Priority, bool) {
	if text, ok := property.(string); ok {
		text = strings.TrimSpace(text)
		if isKnown(text) {
			return Priority(text), true
		}
		n, err := strconv.ParseUint(text, 10, 8)
		return Level(uint8(n)), err == nil
	}
	n, ok := integer(property)
	return Level(uint8(n)), ok && n >= 0 && n <= 255
}

// priorityOf is the way back, for a received message.
func priorityOf(level uint8, properties map[string]any) Priority {
	if p, ok := named(properties[propertyPriority]); ok {
		return p
	}
	if level == defaultLevel {
		return ""
	}
	return Level(level)
}

// integer widens any AMQP integer.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint64:
		return int64(v), v <= 1<<63-1
	}
	return 0, false
}
