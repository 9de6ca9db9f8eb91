// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Priority says how urgent a message is: a level from 0 to 255 as made by
// [Level], a name such as [High], or "" for the broker's default, which is
// level 4. Higher is served first.
//
// A level travels in the AMQP header. A name travels as the application
// property "Priority", where subscription rules and priority policies can see
// it. To send one of the names below is all that is possible here; others would be
// taken for none. Names that only a policy knows go into [Message.Properties].
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
	text := strings.TrimSpace(string(p))
	if text == "" {
		return defaultLevel, "", nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return defaultLevel, text, nil
	}
	if n < 0 || n > 255 {
		return 0, "", fmt.Errorf("%w: priority %d is outside 0..255", ErrInvalid, n)
	}
	return uint8(n), "", nil
}

// isKnown reports whether a name is one that every broker knows.
func isKnown(name string) bool {
	return slices.Contains([]Priority{Critical, High, Normal, Low, Background}, Priority(strings.ToLower(strings.TrimSpace(name))))
}

// priorityOf is the way back, for a received message.
func priorityOf(level uint8, properties map[string]any) Priority {
	switch v := properties[propertyPriority].(type) {
	case string:
		if isKnown(v) {
			return Priority(v)
		}
	case nil:
	default:
		if n, ok := integer(v); ok && n >= 0 && n <= 255 {
			return Level(uint8(n))
		}
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
