// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// Filter is the condition of a rule: an [*Expr], a [*Correlation] or a
// [Constant].
type Filter interface {
	// Match reports whether the rule takes the message. An error, which is an
	// [*evalError], means that it does not.
	Match(v View) (bool, error)
	// Explain says what decided, for people.
	Explain(v View) Explanation
	// String returns the filter as a condition in SQL.
	String() string
}

// Constant is the filter that takes every message, or none.
type Constant bool

// The filters that do not depend on the message.
const (
	True  Constant = true
	False Constant = false
)

// Match returns the constant.
func (c Constant) Match(View) (bool, error) { return bool(c), nil }

// String returns the condition that Service Bus shows for such a filter.
func (c Constant) String() string {
	if c {
		return "1 = 1"
	}
	return "1 = 0"
}

// Correlation matches the messages whose fields all equal its fields exactly.
// Empty fields are not compared. Properties compare as = does in SQL: by type
// and value, numbers of any width by value.
type Correlation struct {
	CorrelationID    string
	MessageID        string
	To               string
	ReplyTo          string
	Subject          string
	SessionID        string
	ReplyToSessionID string
	ContentType      string
	Properties       map[string]value.Value
}

// equality is one field and the value it must have.
type equality struct {
	name  Name
	value value.Value
}

// Validate reports everything that would keep the filter from ever matching.
func (c *Correlation) Validate() error {
	var errs []error
	if len(c.fields(nil)) == 0 && len(c.Properties) == 0 {
		errs = append(errs, ErrNoCondition)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		if _, ok := c.Properties[name].Key(); !ok {
			errs = append(errs, fmt.Errorf("filter: property %s: %v equals nothing", quoteName(name), c.Properties[name]))
		}
		if name == "" {
			errs = append(errs, errors.New("filter: a property needs a name"))
		}
	}
	return errors.Join(errs...)
}

// fields appends the system fields that count.
func (c *Correlation) fields(dst []equality) []equality {
	for _, f := range [...]struct {
		name SystemName
		want string
	}{
		{MessageID, c.MessageID}, {CorrelationID, c.CorrelationID}, {ContentType, c.ContentType},
		{Subject, c.Subject}, {To, c.To}, {ReplyTo, c.ReplyTo},
		{SessionID, c.SessionID}, {ReplyToSessionID, c.ReplyToSessionID},
	} {
		if f.want != "" {
			dst = append(dst, equality{Name{System: f.name}, value.MakeString(f.want)})
		}
	}
	return dst
}

// equalities returns all conditions in a fixed order: fields, then properties by
// name.
func (c *Correlation) equalities() []equality {
	all := c.fields(nil)
	for _, name := range slices.Sorted(maps.Keys(c.Properties)) {
		all = append(all, equality{Name{User: name}, c.Properties[name]})
	}
	return all
}

// Match reports whether all fields match. A filter without fields matches
// nothing.
func (c *Correlation) Match(v View) (bool, error) {
	var space [8]equality
	fields := c.fields(space[:0])
	for _, f := range fields {
		if got := v.System(f.name.System); got == nil || value.Equal(got, &f.value) != value.Same {
			return false, nil
		}
	}
	for name, want := range c.Properties {
		if got := v.User(name); got == nil || value.Equal(got, &want) != value.Same {
			return false, nil
		}
	}
	return len(fields)+len(c.Properties) > 0, nil
}

// String returns the condition in SQL that takes the same messages.
func (c *Correlation) String() string {
	var parts []string
	for _, eq := range c.equalities() {
		parts = append(parts, eq.String())
	}
	if len(parts) == 0 {
		return False.String()
	}
	return strings.Join(parts, " AND ")
}

func (e equality) String() string { return e.name.String() + " = " + e.value.String() }
