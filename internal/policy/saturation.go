// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/ordering"
)

// saturable reports whether the policy switches to weights under load.
func (p *Policy) saturable() bool {
	return p.Discipline == ordering.Strict && p.Saturation != ordering.Saturation{}
}

// weighs reports whether the weights of classes count, always or when saturated.
func (p *Policy) weighs() bool { return p.Discipline == ordering.Weighted || p.saturable() }

func (r *reader) saturation(v node) (s ordering.Saturation) {
	r.object(v, fields{
		{"waiting", func(v node) { s.Waiting = r.integer(v, 1, maxInteger) }},
		{"oldest", func(v node) {
			if s.Oldest = r.duration(v); s.Oldest <= 0 {
				r.faultf(v, "must be longer than zero")
			}
		}},
	})
	if o, _ := v.any.(map[string]any); v.isObject() && len(o) == 0 {
		r.faultf(v, "needs waiting, oldest or both")
	}
	return s
}

// saturationBegins states what makes a queue saturated.
func saturationBegins(s ordering.Saturation) string {
	switch {
	case s.Oldest == 0:
		return fmt.Sprintf("%d messages wait", s.Waiting)
	case s.Waiting == 0:
		return fmt.Sprintf("one has waited %v", brief(s.Oldest))
	}
	return fmt.Sprintf("%d messages wait, or one has waited %v", s.Waiting, brief(s.Oldest))
}

// saturationEnds states when it ends.
func saturationEnds(s ordering.Saturation) string {
	switch {
	case s.Oldest == 0:
		return fmt.Sprintf("at most %d wait", s.Waiting/2)
	case s.Waiting == 0:
		return fmt.Sprintf("none has waited more than %v", brief(s.Oldest/2))
	}
	return fmt.Sprintf("at most %d wait and none has waited more than %v", s.Waiting/2, brief(s.Oldest/2))
}

// saturationWords returns the limits as text.
func saturationWords(s ordering.Saturation) words {
	if s == (ordering.Saturation{}) {
		return "none"
	}
	return words("when " + saturationBegins(s))
}

// waitBoundSaturable states what a class gets once the queue is saturated, and the bound
// that follows. A message that has waited for Oldest keeps the queue saturated until it
// is served. Until then the messages of its level before it are served, each with the
// deliveries of others between two of the class.
func (p *Policy) waitBoundSaturable(c *Class) []string {
	var t sentences
	above := p.names(func(o *Class) bool { return o.Level > c.Level })
	if above == "" {
		t.addf("class %s (level %d): served before all other classes; when saturated %s.", c.Name, c.Level, p.portion(c))
		return t
	}
	t.addf("class %s (level %d): served only when no message of %s is ready; when saturated %s.", c.Name, c.Level, above, p.portion(c))
	if p.Saturation.Oldest == 0 {
		t.addf("class %s (level %d): while fewer than %d messages are ready and those of %s keep arriving, there is no bound.",
			c.Name, c.Level, p.Saturation.Waiting, above)
		return t
	}
	n := p.between(c)
	t.addf("class %s (level %d): one that has waited %v has at most %d deliveries of other classes ahead of it, and %d for each older message of its level.",
		c.Name, c.Level, brief(p.Saturation.Oldest), n, n+1)
	return t
}

// warnShares warns of weights that were left at their default.
func (p *Policy) warnShares(w *Faults) {
	for _, c := range p.Classes {
		if c.Weight > 0 {
			return
		}
	}
	w.addf("saturation", "no class has a weight: when saturated all levels have the same share")
}
