// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"fmt"
	"math"
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// Explanation says why a filter matches or not.
type Explanation struct {
	Matched bool
	Result  string   // true, false, unknown or error
	Reasons []string // the comparisons that decided, in the order of the text
}

// String returns the reasons as one line.
func (x Explanation) String() string { return strings.Join(x.Reasons, "; ") }

// Explain evaluates the condition and names the comparisons that decided: of an
// AND that was false the first false part, of an OR that was true the first true
// one, and so on.
func (x *Expr) Explain(v View) Explanation {
	e := env{view: v, steps: x.steps}
	got := e.test(x.root)
	if e.err != nil {
		return Explanation{Result: "error", Reasons: []string{e.err.expr() + " failed: " + e.err.Reason}}
	}
	return Explanation{Matched: got == yes, Result: got.String(), Reasons: x.reasons(&e, x.root, nil)}
}

// reasons appends the reasons for the result of n.
func (x *Expr) reasons(e *env, n *node, dst []string) []string {
	switch n.op {
	case opNot:
		return x.reasons(e, n.kids[0], dst)
	case opAnd, opOr:
		return x.junction(e, n, dst)
	default:
		return append(dst, x.reason(e, n))
	}
}

// junction picks the parts of an AND or OR that count: one part with the deciding
// ternary is enough, and without one all parts that agree with the outcome are
// to blame.
func (x *Expr) junction(e *env, n *node, dst []string) []string {
	deciding := no
	if n.op == opOr {
		deciding = yes
	}
	got := x.again(e, n)
	for _, kid := range n.kids {
		if x.again(e, kid) != got {
			continue
		}
		dst = x.reasons(e, kid, dst)
		if got == deciding {
			break
		}
	}
	return dst
}

// again evaluates a part that was evaluated before, within the steps that the
// whole has.
func (x *Expr) again(e *env, n *node) ternary {
	e.steps = x.steps
	return e.test(n)
}

// reason describes one comparison: its text, its result, and the values of its
// properties.
func (x *Expr) reason(e *env, n *node) string {
	got := x.again(e, n)
	said := fmt.Sprintf("%s was %v", n, got)
	var facts []string
	listed := map[string]bool{}
	missing := false
	n.visit(func(p *node) {
		if p.op != opProperty && p.op != opNamed {
			return
		}
		v := *e.raw(p)
		missing = missing || !v.Known()
		if fact := p.String() + " is " + describe(v); !listed[fact] {
			listed[fact] = true
			facts = append(facts, fact)
		}
	})
	if len(facts) > 0 {
		said += ": " + strings.Join(facts, " and ")
	}
	if got == maybe && len(facts) > 0 && !missing {
		said += ", which is of another type"
	}
	return said
}

// describe formats the value of a property.
func describe(v value.Value) string {
	switch v.Kind() {
	case value.Unknown:
		return "not set"
	case value.Null:
		return "null"
	case value.String:
		return value.MakeString(shorten(v.Str())).String()
	case value.Binary, value.Opaque:
		return "of a type that cannot be compared"
	default:
		return v.String()
	}
}

// visit calls f for n and everything below, in the order of the text.
func (n *node) visit(f func(*node)) {
	f(n)
	for _, kid := range n.kids {
		kid.visit(f)
	}
}

// Explain says that no property is used.
func (c Constant) Explain(View) Explanation {
	if c {
		return Explanation{Matched: true, Result: yes.String(), Reasons: []string{"the filter takes every message"}}
	}
	return Explanation{Result: no.String(), Reasons: []string{"the filter takes no message"}}
}

// Explain names the first field that differs, or all when all agree.
func (c *Correlation) Explain(v View) Explanation {
	x := Explanation{Matched: true, Result: yes.String()}
	e := env{view: v, steps: math.MaxInt}
	for _, eq := range c.equalities() {
		got := e.fetch(&eq.name, cached)
		ternary := compareResult(opEqual, value.Equal(got, &eq.value))
		reason := fmt.Sprintf("%v was %v: %v is %s", eq, ternary, eq.name, describe(*got))
		if ternary != yes {
			return Explanation{Result: ternary.String(), Reasons: []string{reason}}
		}
		x.Reasons = append(x.Reasons, reason)
	}
	if len(x.Reasons) == 0 {
		return Explanation{Result: no.String(), Reasons: []string{"an empty filter matches nothing"}}
	}
	return x
}
