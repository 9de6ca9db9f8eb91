// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"slices"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// Expr is a parsed expression, ready to be evaluated. It never changes.
type Expr struct {
	root  *node
	names []Name // what opProperty.slot indexes
	steps int    // of an evaluation, beyond one for each node
	nodes int
}

// Match reports whether the condition is true for the message. The error, if any,
// is an [*evalError].
func (x *Expr) Match(v View) (bool, error) {
	e := env{view: v, steps: x.steps}
	var got ternary
	if x.root.comparison() { // one call less
		got = e.compare(x.root)
	} else {
		got = e.test(x.root)
	}
	if e.err != nil {
		return false, e.err
	}
	return got == yes, nil
}

// Eval returns the value of the expression for the message.
func (x *Expr) Eval(v View) (value.Value, error) {
	steps := x.steps
	return x.eval(v, &steps)
}

// eval is Eval with the steps that the caller has left.
func (x *Expr) eval(v View, steps *int) (value.Value, error) {
	e := env{view: v, steps: *steps}
	got := e.value(x.root)
	*steps = e.steps
	if e.err != nil {
		return value.Value{}, e.err
	}
	return got, nil
}

// String returns the canonical form: keywords in upper case, as few parentheses
// as needed, one spelling for each operator.
func (x *Expr) String() string { return x.root.String() }

// Names lists the properties the expression uses, each once, in the order of their
// first use. Those that property(…) computes are not among them.
func (x *Expr) Names() []Name { return slices.Clone(x.names) }

// compile numbers the properties and computes what the message cannot change. That
// too has to do with the steps of one evaluation; what is left over for lack of
// them is computed for each message, and fails.
func (x *Expr) compile(steps int) {
	p := preparation{numbers: map[Name]int{}, fixed: env{steps: steps}}
	p.prepare(x.root)
	x.names, x.steps, x.nodes = p.names, max(steps-p.nodes, 0), p.nodes
}

// preparation is an expression being compiled.
type preparation struct {
	fixed   env // has no view: constants do not depend on the message
	names   []Name
	numbers map[Name]int // index of each in names
	nodes   int
}

func (p *preparation) prepare(n *node) {
	p.nodes++
	fixed := n.op != opProperty && n.op != opNamed && n.op != opNewID && n.op != opExists
	for _, kid := range n.kids {
		p.prepare(kid)
		fixed = fixed && (kid.fixed || kid.op == opConst)
	}
	switch {
	case n.op == opProperty:
		n.slot = p.slotOf(n.name)
	case n.op == opNamed && n.kids[0].constant():
		p.resolve(n)
	case fixed && n.op != opConst && !n.fixed:
		p.fixed.err = nil
		v := p.fixed.value(n)
		n.val, n.fixed = v, p.fixed.err == nil
	case n.op == opIn:
		n.set = constantSet(n.kids[1:])
	case n.op == opLike:
		prepareLike(n)
	}
	if n.fixed || n.op == opConst {
		n.held = &n.val
	}
}

func (p *preparation) slotOf(name Name) int {
	i, ok := p.numbers[name]
	if !ok {
		i = len(p.names)
		p.names, p.numbers[name] = append(p.names, name), i
	}
	return i
}

// resolve records the property that property('constant') names, for Names.
func (p *preparation) resolve(n *node) {
	if arg := n.kids[0].val; arg.Kind() == value.String {
		if name, ok := scoped(arg.Str()); ok {
			p.slotOf(name)
		}
	}
}

// linear is the longest list that is searched one by one.
const linear = 8

// constantSet returns the keys of a long list of constants, or nil.
func constantSet(kids []*node) map[value.Value]struct{} {
	if len(kids) <= linear {
		return nil
	}
	set := make(map[value.Value]struct{}, len(kids))
	for _, kid := range kids {
		if !kid.fixed && kid.op != opConst {
			return nil
		}
		if key, ok := kid.val.Key(); ok {
			set[key] = struct{}{}
		}
	}
	return set
}

func prepareLike(n *node) {
	for _, kid := range n.kids[1:] {
		if !kid.constant() || kid.val.Kind() != value.String {
			return
		}
	}
	esc := (*node)(nil)
	if len(n.kids) > 2 {
		esc = n.kids[2]
	}
	if p, ok := compilePattern(n.kids[1].val.Str(), escapeOf(esc)); ok {
		n.like = &p
	}
}
