// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/message"
)

// reason explains the result of Level.
func reason(m *message.Message) string {
	if l, ok := inherited(m); ok {
		return fmt.Sprintf("it answers a request of level %d and asks for none itself", l.Level)
	}
	v, given := m.Property(PriorityProperty)
	if given {
		if _, ok := levelOf(v); ok {
			return fmt.Sprintf("its property %s is %s", PriorityProperty, v)
		}
	}
	because := "it asks for none"
	if h := m.Header(); h.PrioritySet {
		because = fmt.Sprintf("its header has priority %d", h.Priority)
	}
	if given {
		because += fmt.Sprintf(" (its property %s is %s, which is no level and no name of one: critical, high, normal, low, background)", PriorityProperty, v)
	}
	return because
}
