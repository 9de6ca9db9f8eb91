// SPDX-License-Identifier: Apache-2.0

package filter

import "slices"

// Expr is a parsed expression, ready to be evaluated. It never changes.
type Expr struct {
	root  *node
	names []Name // what opProperty.slot indexes
}

// Match reports whether the condition is true for the message. The error, if any,
// is an [*EvalError].
func (x *Expr) Match(v View) (bool, error) {
	e := env{view: v}
	got := e.test(x.root)
	if e.err != nil {
		return false, e.err
	}
	return got == yes, nil
}

// Eval returns the value of the expression for the message.
func (x *Expr) Eval(v View) (Value, error) {
	e := env{view: v}
	got := e.value(x.root)
	if e.err != nil {
		return Value{}, e.err
	}
	return got, nil
}

// String returns the canonical form: keywords in upper case, as few parentheses
// as needed, one spelling for each operator.
func (x *Expr) String() string { return x.root.String() }

// Names lists the properties the expression uses, each once, in the order of their
// first use. Those that property(…) computes are not among them.
func (x *Expr) Names() []Name { return slices.Clone(x.names) }

// compile numbers the properties and computes what the message cannot change.
func (x *Expr) compile() { x.prepare(x.root) }

func (x *Expr) prepare(n *node) {
	fixed := n.op != opProperty && n.op != opNamed && n.op != opNewID && n.op != opExists
	for _, kid := range n.kids {
		x.prepare(kid)
		fixed = fixed && (kid.fixed || kid.op == opConst)
	}
	switch {
	case n.op == opProperty:
		n.slot = x.slot(n.name)
	case n.op == opNamed && n.kids[0].constant():
		x.resolve(n)
	case fixed && n.op != opConst && !n.fixed:
		e := env{} // no view: nothing in n looks at the message
		v := e.value(n)
		n.val, n.fixed = v, e.err == nil
	case n.op == opIn:
		n.set = constantSet(n.kids[1:])
	case n.op == opLike:
		prepareLike(n)
	}
	if n.fixed || n.op == opConst {
		n.held = &n.val
	}
}

func (x *Expr) slot(name Name) int {
	if i := slices.Index(x.names, name); i >= 0 {
		return i
	}
	x.names = append(x.names, name)
	return len(x.names) - 1
}

// resolve notes the property that property('constant') names, for Names.
func (x *Expr) resolve(n *node) {
	if arg := n.kids[0].val; arg.kind == String {
		if name, ok := scoped(arg.text); ok {
			x.slot(name)
		}
	}
}

// linear is the longest list that is searched one by one.
const linear = 8

// constantSet returns the keys of a long list of constants, or nil.
func constantSet(kids []*node) map[Value]struct{} {
	if len(kids) <= linear {
		return nil
	}
	set := make(map[Value]struct{}, len(kids))
	for _, kid := range kids {
		if !kid.fixed && kid.op != opConst {
			return nil
		}
		if key, ok := kid.val.key(); ok {
			set[key] = struct{}{}
		}
	}
	return set
}

func prepareLike(n *node) {
	for _, kid := range n.kids[1:] {
		if !kid.constant() || kid.val.kind != String {
			return
		}
	}
	esc := (*node)(nil)
	if len(n.kids) > 2 {
		esc = n.kids[2]
	}
	if p, ok := compilePattern(n.kids[1].val.text, escapeOf(esc)); ok {
		n.like = &p
	}
}
