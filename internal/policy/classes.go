// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"unicode"

	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/limits"
)

// maxName is the length limit of a class name: it is a label of metrics and part of
// errors.
const maxName = 64

func (r *reader) classes(v node, p *Policy) {
	first := map[string]string{} // path by name
	r.list(v, func(v node) {
		c := r.class(v)
		name := strings.ToLower(c.Name)
		if earlier, ok := first[name]; ok && name != "" {
			r.faultf(node{join(v.path, "name"), nil}, "%q is the name of %s already", c.Name, earlier)
		} else {
			first[name] = v.path
		}
		p.Classes = append(p.Classes, c)
	})
	if len(p.Classes) > maxClasses {
		r.faultf(v, "%d classes, at most %d are allowed", len(p.Classes), maxClasses)
	}
}

func (r *reader) class(v node) (c Class) {
	c.LevelFromMessage = true
	r.object(v, fields{
		{"name", func(v node) { c.Name = r.className(v) }},
		{"level", func(v node) {
			l, ok := r.level(v)
			c.Level, c.LevelFromMessage = l, !ok
		}},
		{"when", func(v node) { c.When, c.when = r.condition(v) }},
		{"objective", func(v node) { c.Objective = r.objective(v) }},
		{"weight", func(v node) { c.Weight = r.weight(v) }},
		{"rate", func(v node) { c.Rate = r.rate(v) }},
		{"maxMessages", func(v node) { c.MaxMessages = r.integer(v, 1, maxInteger) }},
		{"maxBytes", func(v node) { c.MaxBytes = r.size(v) }},
		{"overflow", func(v node) { c.Overflow = Overflow(r.word(v, overflows)) }},
		{"expectedRate", func(v node) { c.ExpectedRate = r.rate(v) }},
	})
	if _, ok := v.child("name"); !ok && v.isObject() {
		r.faultf(node{join(v.path, "name"), nil}, "missing")
	}
	return c
}

func (r *reader) className(v node) string {
	name := r.text(v)
	if _, isText := v.any.(string); !isText {
		return "" // the fault is recorded
	}
	bad := strings.ContainsFunc(name, func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) })
	if name == "" || len(name) > maxName || bad || strings.HasPrefix(name, "$") {
		r.faultf(v, "%q is no name: it must have 1 to %d letters, no spaces, and no $ in front", name, maxName)
	}
	return name
}

// condition reads SQL. Blanks are the same as no condition: the class matches all.
func (r *reader) condition(v node) (string, *filter.Expr) {
	text := r.text(v)
	if strings.TrimSpace(text) == "" {
		return "", nil
	}
	if err := r.checkSQL(text); err != nil { // before memory is taken for it
		r.faultf(v, "%s", sqlProblem(err))
		return text, nil
	}
	x, err := filter.Parse(text, nil)
	if err != nil {
		r.faultf(v, "%s", sqlProblem(err))
	}
	return text, x
}

// checkSQL rejects a text that is longer than the limit of SQL.
func (r *reader) checkSQL(text string) error {
	if r.stored {
		return nil
	}
	return limits.CheckText("SQL", text, limits.SQL)
}

// sqlProblem returns what is wrong with SQL: the position in it, then the text. The path
// of the fault shows that it is SQL.
func sqlProblem(err error) string { return strings.TrimPrefix(err.Error(), "filter: ") }

func (r *reader) objective(v node) (o Objective) {
	o.Target = defaultTarget
	r.object(v, fields{
		{"wait", func(v node) {
			if o.Wait = r.duration(v); o.Wait <= 0 {
				r.faultf(v, "must be longer than zero")
			}
		}},
		{"target", func(v node) {
			if o.Target = r.number(v); o.Target <= 0 || o.Target >= 1 {
				r.faultf(v, "%v is outside 0..1: a share of 1 would leave no message to be late", o.Target)
			}
		}},
	})
	if _, ok := v.child("wait"); !ok && v.isObject() {
		r.faultf(node{join(v.path, "wait"), nil}, "missing")
	}
	return o
}
