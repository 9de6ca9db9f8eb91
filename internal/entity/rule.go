// SPDX-License-Identifier: Apache-2.0

package entity

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/limits"
)

// Rule is one reason for a subscription to take a message, and what to change in
// the copy it takes.
type Rule struct {
	Name   string `json:"name"`
	Filter Filter `json:"filter,omitzero"`
	Action Action `json:"action,omitzero"`

	// CreatedAt is when the broker created the rule. Changes of the rule keep it.
	// The caller's value is ignored.
	CreatedAt time.Time `json:"createdAt,omitzero"`
}

// FilterKind is the kind of a filter. The zero value is derived from the
// contents of the filter: an empty filter matches everything.
type FilterKind string

// The kinds of filter.
const (
	SQLFilter         FilterKind = "sql"
	CorrelationFilter FilterKind = "correlation"
	TrueFilter        FilterKind = "true"
	FalseFilter       FilterKind = "false"
)

// Filter chooses messages.
type Filter struct {
	Kind        FilterKind       `json:"kind,omitzero"`
	SQL         string           `json:"sql,omitzero"`
	Parameters  map[string]Value `json:"parameters,omitempty"` // of the SQL, without the @
	Correlation *Correlation     `json:"correlation,omitempty"`
}

// Correlation is a filter of exact matches, all of which must be true. An empty
// text is not compared.
type Correlation struct {
	CorrelationID    string           `json:"correlationId,omitzero"`
	MessageID        string           `json:"messageId,omitzero"`
	To               string           `json:"to,omitzero"`
	ReplyTo          string           `json:"replyTo,omitzero"`
	Label            string           `json:"label,omitzero"`
	SessionID        string           `json:"sessionId,omitzero"`
	ReplyToSessionID string           `json:"replyToSessionId,omitzero"`
	ContentType      string           `json:"contentType,omitzero"`
	Properties       map[string]Value `json:"properties,omitempty"`
}

// Action changes the copy that a rule creates. The zero value changes nothing,
// and then the rule creates no separate copy.
type Action struct {
	SQL        string           `json:"sql,omitzero"`
	Parameters map[string]Value `json:"parameters,omitempty"`
}

// WithDefaults returns r with the kind of its filter named.
func (r Rule) WithDefaults() Rule {
	r.Filter.Kind = cmp.Or(r.Filter.Kind, r.Filter.kind())
	return r
}

func (f Filter) kind() FilterKind {
	switch {
	case f.Correlation != nil:
		return CorrelationFilter
	case f.SQL != "":
		return SQLFilter
	}
	return TrueFilter
}

// Validate reports everything that is wrong with r, as [Faults], short of
// whether its SQL is any.
func (r Rule) Validate() error { return r.faults().err() }

func (r Rule) faults() Faults {
	var fs Faults
	fs.name("name", r.Name, checkRuleName)
	fs.nested("filter", r.Filter.faults())
	fs.length("action.sql", r.Action.SQL, limits.SQL)
	fs.nested("action.parameters", valueFaults(r.Action.Parameters))
	if r.Action.SQL == "" && len(r.Action.Parameters) > 0 {
		fs.addf("action.parameters", "there is no sql to use them")
	}
	return fs
}

func (f Filter) faults() Faults {
	var fs Faults
	switch f.Kind {
	case SQLFilter:
		if f.SQL == "" {
			fs.addf("sql", "missing")
		}
	case CorrelationFilter:
		if f.Correlation == nil || f.Correlation.empty() {
			fs.addf("correlation", "at least one field or property is needed")
		}
	case TrueFilter, FalseFilter:
	default:
		fs.addf("kind", "%q is not sql, correlation, true or false", string(f.Kind))
	}
	// The service returns an SQL text for true and false filters.
	if f.Kind == CorrelationFilter && f.SQL != "" {
		fs.addf("sql", "not possible together with correlation")
	}
	if f.Kind != CorrelationFilter && f.Correlation != nil {
		fs.addf("correlation", "not possible in a filter of kind %s", string(f.Kind))
	}
	fs.length("sql", f.SQL, limits.SQL)
	fs.nested("parameters", valueFaults(f.Parameters))
	if f.Correlation != nil {
		fs.nested("correlation", f.Correlation.faults())
	}
	return fs
}

// faults finds what is beyond a limit.
func (c *Correlation) faults() Faults {
	var fs Faults
	for _, f := range [...]struct{ field, text string }{
		{"correlationId", c.CorrelationID}, {"messageId", c.MessageID}, {"to", c.To}, {"replyTo", c.ReplyTo},
		{"label", c.Label}, {"sessionId", c.SessionID}, {"replyToSessionId", c.ReplyToSessionID}, {"contentType", c.ContentType},
	} {
		fs.length(f.field, f.text, limits.RuleText)
	}
	fs.nested("properties", valueFaults(c.Properties))
	return fs
}

// valueFaults finds which values of a rule are beyond a limit.
func valueFaults(values map[string]Value) Faults {
	var fs Faults
	if len(values) > limits.RuleValues {
		fs.addf("", "%d values, at most %d are allowed", len(values), limits.RuleValues)
		return fs
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(name) > limits.RuleText {
			fs.length("", name, limits.RuleText)
			continue // the name is too long to be part of the fault
		}
		fs.length(name, values[name].String(), limits.RuleText)
	}
	return fs
}

func (c Correlation) empty() bool {
	fields := cmp.Or(c.CorrelationID, c.MessageID, c.To, c.ReplyTo, c.Label, c.SessionID, c.ReplyToSessionID, c.ContentType)
	return fields == "" && len(c.Properties) == 0
}
