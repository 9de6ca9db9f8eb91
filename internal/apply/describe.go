// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/entity"
)

// Describe says in one line what a rule takes and does.
func Describe(r entity.Rule) string {
	text := DescribeFilter(r.Filter)
	if r.Action.SQL != "" {
		text += "; " + r.Action.SQL + parameters(r.Action.Parameters)
	}
	return text
}

// DescribeFilter says in one line what a filter takes.
func DescribeFilter(f entity.Filter) string {
	switch (entity.Rule{Filter: f}).WithDefaults().Filter.Kind {
	case entity.TrueFilter:
		return "everything"
	case entity.FalseFilter:
		return "nothing"
	case entity.CorrelationFilter:
		return describeCorrelation(f.Correlation)
	}
	return f.SQL + parameters(f.Parameters)
}

func describeCorrelation(c *entity.Correlation) string {
	if c == nil {
		return "nothing"
	}
	var parts []string
	for _, f := range []struct{ name, value string }{
		{"correlationId", c.CorrelationID}, {"messageId", c.MessageID}, {"to", c.To}, {"replyTo", c.ReplyTo},
		{"label", c.Label}, {"sessionId", c.SessionID}, {"replyToSessionId", c.ReplyToSessionID},
		{"contentType", c.ContentType},
	} {
		if f.value != "" {
			parts = append(parts, fmt.Sprintf("%s is %q", f.name, f.value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		parts = append(parts, fmt.Sprintf("property %s is %s", name, value(c.Properties[name])))
	}
	return strings.Join(parts, " and ")
}

func parameters(ps map[string]entity.Value) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(ps)) {
		parts = append(parts, "@"+name+" = "+value(ps[name]))
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// value quotes texts, so that '5' and 5 differ.
func value(v entity.Value) string {
	if text, ok := v.Any().(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return v.String()
}
