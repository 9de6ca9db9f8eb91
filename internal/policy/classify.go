// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/filter/value"
	"github.com/triagemq/triagemq/internal/message"
)

// Classification is the level, class and fair key that a policy gives a message.
type Classification struct {
	Class uint8 // from 1, in the order of the policy; zero is none
	Level uint8
	Key   string // fair key; empty if there is none
}

// Classify returns the class, level and fair key of the message in e. The first class
// whose condition is true has it; a condition that fails to be evaluated is not true.
// Use one envelope for each goroutine and refill it: then only a fair key costs an
// allocation.
//
// A reply that no condition matches has the class of its request, if there is one of
// that name here, or at least its level.
func (p *Policy) Classify(e *filter.Envelope) Classification {
	v, _ := p.ClassifyCounting(e)
	return v
}

// ClassifyCounting is Classify, which also returns about how many steps the conditions took.
func (p *Policy) ClassifyCounting(e *filter.Envelope) (v Classification, steps int) {
	v = Classification{Key: p.keyOf(e)}
	n, steps := p.first(e)
	request, isReply := inherited(e.Message)
	isReply = isReply && (n == len(p.Classes) || p.Classes[n].when == nil)
	if isReply {
		if named := p.named(request.Class); named >= 0 {
			n, isReply = named, false
		}
	}
	if n == len(p.Classes) {
		v.Level = Level(e.Message)
		return v, steps
	}
	c := &p.Classes[n]
	v.Class = uint8(n + 1)
	if v.Level = c.Level; c.LevelFromMessage || isReply {
		v.Level = Level(e.Message)
	}
	return v, steps
}

// UnknownPriority reports whether a message with that classification has a property
// Priority that is no level, and no class has matched it: the sender's priority is lost.
func (p *Policy) UnknownPriority(m *message.Message, v Classification) bool {
	if c := p.Class(v.Class); c != nil && c.when != nil {
		return false // the condition may have used the value
	}
	asked, ok := m.Property(PriorityProperty)
	if !ok || asked.IsNull() {
		return false
	}
	_, ok = levelOf(asked)
	return !ok
}

// named returns the index of the class of a name, in any case; -1 if there is none.
func (p *Policy) named(name string) int {
	return slices.IndexFunc(p.Classes, func(c Class) bool { return name != "" && strings.EqualFold(c.Name, name) })
}

// first returns the index of the first class that matches the message, or the number of
// classes if none does, and about how many steps that took. The conditions are evaluated
// together, which reads each property once; one that fails is not true.
func (p *Policy) first(e *filter.Envelope) (first, steps int) {
	first = len(p.Classes)
	if p.rules == nil {
		return first, 0
	}
	steps = p.rules.Match(e, func(rule int, err error) {
		if err == nil && rule < first {
			first = rule
		}
	})
	return first, steps
}

// chosen is first without the steps.
func (p *Policy) chosen(e *filter.Envelope) int {
	n, _ := p.first(e)
	return n
}

// compile compiles the conditions of all classes into one set.
func (p *Policy) compile() {
	var rules []filter.Filter
	for _, c := range p.Classes {
		if c.when == nil {
			rules = append(rules, filter.True)
			break // it matches every message, so later classes get none
		}
		rules = append(rules, c.when)
	}
	if len(rules) > 0 {
		p.rules = filter.Compile(rules)
	}
}

// keyOf returns the fair key of a message. Messages without one share the empty key.
func (p *Policy) keyOf(e *filter.Envelope) string {
	if p.fairKey == nil {
		return ""
	}
	v, err := p.fairKey.Eval(e)
	if err != nil {
		return ""
	}
	switch v.Kind() {
	case value.Unknown, value.Null, value.Opaque:
		return ""
	case value.String, value.Binary:
		return strings.Clone(v.Str()) // the key may be used longer than the message's buffer
	default:
		return v.Text()
	}
}

// Why explains how the message in e got its class, level and key.
func (p *Policy) Why(e *filter.Envelope) string {
	v := p.Classify(e)
	var b strings.Builder
	c := p.Class(v.Class)
	request, isReply := inherited(e.Message)
	switch {
	case isReply && c != nil && strings.EqualFold(c.Name, request.Class) && p.chosen(e) != int(v.Class)-1:
		fmt.Fprintf(&b, "class %q takes it, because it answers a request of that class", c.Name)
	case c == nil && len(p.Classes) == 0:
		b.WriteString("the queue has no classes; ")
	case c == nil:
		b.WriteString("no class takes it; ")
	case c.when == nil:
		fmt.Fprintf(&b, "class %q takes every message that no class before it takes", c.Name)
	default:
		fmt.Fprintf(&b, "class %q takes it, because %s", c.Name, c.when.Explain(e))
	}
	switch {
	case c == nil:
		fmt.Fprintf(&b, "level %d, because %s", v.Level, reason(e.Message))
	case c.LevelFromMessage:
		fmt.Fprintf(&b, "; the class has no fixed level, so it has level %d, because %s", v.Level, reason(e.Message))
	case v.Level != c.Level:
		fmt.Fprintf(&b, "; the class has level %d, but this one has %d, because %s", c.Level, v.Level, reason(e.Message))
	default:
		fmt.Fprintf(&b, "; the class has level %d", v.Level)
	}
	p.whyNot(&b, e, int(v.Class))
	if p.fairKey != nil {
		fmt.Fprintf(&b, "; it takes turns as %s = %q", p.fairKey, v.Key)
	}
	return b.String()
}

// whyNot explains why the classes before the chosen one did not match the message.
func (p *Policy) whyNot(b *strings.Builder, e *filter.Envelope, chosen int) {
	before := p.Classes
	if chosen > 0 {
		before = p.Classes[:chosen-1]
	}
	for _, c := range before {
		if c.when != nil {
			fmt.Fprintf(b, "; not %q, because %s", c.Name, c.when.Explain(e))
		}
	}
}
