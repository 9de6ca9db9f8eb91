// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"strings"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// cached is how many distinct properties one evaluation caches. A lookup reads
// through the message, and the rules of a set use the same few properties again
// and again.
const cached = 24

// env is one evaluation. It is on the stack: nothing below may store a pointer
// to it or pass it through an interface.
type env struct {
	view   View
	remap  []uint32 // slot of the expression -> slot of the rule set; nil: the same
	cache  [cached]*value.Value
	steps  int        // what is left of the work that the evaluation may do; below zero is too much
	shared int        // what is left of MessageSteps; below zero is too much
	failed int        // rules of the set
	err    *evalError // the first failure; once set, results mean nothing
}

func (e *env) fail(n *node, reason string) {
	if e.err == nil {
		e.err = &evalError{part: n, Reason: reason}
	}
}

// slot returns the property at a slot and looks it up the first time. For a
// user property, unknown means that it is absent; for a system property, that
// it has no value yet.
func (e *env) slot(slot int, name *Name) *value.Value {
	if slot < cached && e.cache[slot] != nil {
		return e.cache[slot]
	}
	return e.fetch(name, slot)
}

// fetch returns a property of the message and caches it in slot, if there is
// such a slot.
func (e *env) fetch(name *Name, slot int) *value.Value {
	var v *value.Value
	if name.System == NotSystem {
		v = e.view.User(name.User)
	} else {
		v = e.view.System(name.System)
	}
	if v == nil {
		v = &absent
	}
	if slot < cached {
		e.cache[slot] = v
	} else {
		e.chargeLookup(name)
	}
	return v
}

// raw returns what a property or property(e) finds, without minding absence.
func (e *env) raw(n *node) *value.Value {
	if n.op == opProperty {
		return e.slot(e.number(n), &n.name)
	}
	arg := e.value(n.kids[0])
	if arg.Kind() != value.String {
		return &absent
	}
	if !e.afford(n, stepsPerLookup+scanned*(len(arg.Str())/bytesPerStep)) {
		return &absent
	}
	name, ok := scoped(arg.Str())
	if !ok {
		e.fail(n, "there is no system property "+shorten(arg.Str()))
		return &absent
	}
	v := e.fetch(&name, cached)
	if name.System != NotSystem && v.Kind() == value.Unknown {
		e.noValue(n)
	}
	return v
}

// number returns the slot of a property in this evaluation.
func (e *env) number(n *node) int {
	if e.remap != nil {
		return int(e.remap[n.slot])
	}
	return n.slot
}

func (e *env) noValue(n *node) { e.fail(n, "it has no value at this point") }

// operandRef returns a pointer to the value of n, if n is a constant or a
// property, as most operands are; else nil. It must not call value: the
// compiler would move every operand of a recursive evaluation to the heap.
func (e *env) operandRef(n *node) *value.Value {
	if n.op != opProperty {
		return n.held
	}
	v := e.slot(e.number(n), &n.name)
	if v.Kind() == value.Unknown && n.name.System != NotSystem {
		e.noValue(n)
	}
	return v
}

// value evaluates n.
func (e *env) value(n *node) value.Value {
	if n.fixed {
		return n.val
	}
	switch n.op {
	case opConst:
		return n.val
	case opProperty:
		return *e.operandRef(n)
	case opNamed:
		return *e.raw(n)
	case opNewID:
		id, ok := e.view.NewID()
		if e.afford(n, stepsPerID) && !ok {
			e.fail(n, "there is no source of new ids here")
		}
		return value.MakeUUID(id)
	case opNegate:
		return value.Negate(e.value(n.kids[0]))
	case opPlus:
		if v := e.value(n.kids[0]); v.IsNumber() || v.Kind() == value.Duration {
			return v
		}
		return value.Value{}
	case opAdd, opSub, opMul, opDiv, opMod:
		a, b := e.value(n.kids[0]), e.value(n.kids[1])
		if a.Str() != "" && !e.afford(n, len(a.Str())+len(b.Str())) {
			return value.Value{}
		}
		v, ok := apply(n.op, &a, &b)
		if !ok {
			e.fail(n, "division by zero")
		}
		return v
	default:
		return e.test(n).value()
	}
}

// test evaluates a condition.
func (e *env) test(n *node) ternary {
	if n.fixed {
		return truth(n.val)
	}
	switch n.op {
	case opAnd:
		all := yes
		for _, kid := range n.kids {
			var got ternary
			if kid.comparison() { // as most parts are: one call less
				got = e.compare(kid)
			} else {
				got = e.test(kid)
			}
			if all = min(all, got); all == no || e.err != nil {
				break
			}
		}
		return all
	case opOr:
		any := no
		for _, kid := range n.kids {
			if any = max(any, e.test(kid)); any == yes || e.err != nil {
				break
			}
		}
		return any
	case opNot:
		return e.test(n.kids[0]).not()
	case opEqual, opNotEqual, opLess, opLessEqual, opGreater, opGreaterEqual:
		return e.compare(n)
	case opIsNull:
		return ternaryOf(e.isNull(n.kids[0]) != n.negated)
	case opExists:
		return ternaryOf(e.exists(n.kids[0]))
	case opIn:
		return e.in(n)
	case opLike:
		return e.matches(n)
	default:
		return truth(e.value(n))
	}
}

// compare evaluates a comparison.
func (e *env) compare(n *node) ternary {
	a, b := n.kids[0].held, n.kids[1].held
	if a == nil {
		a = e.operandRef(n.kids[0])
	}
	if b == nil {
		b = e.operandRef(n.kids[1])
	}
	if a == nil || b == nil {
		return e.compareComputed(n)
	}
	if a.Kind() == value.String && b.Kind() == value.String {
		return e.compareTexts(n, a, b)
	}
	return compareResult(n.op, value.Compare(a, b))
}

// compareTexts is compare for two strings, which may be long.
func (e *env) compareTexts(n *node, a, b *value.Value) ternary {
	if len(a.Str()) > shortText && !e.affordText(n, a, b) {
		return maybe
	}
	switch n.op {
	case opEqual:
		return ternaryOf(a.Str() == b.Str())
	case opNotEqual:
		return ternaryOf(a.Str() != b.Str())
	}
	return compareResult(n.op, value.Order(strings.Compare(a.Str(), b.Str())))
}

// compareComputed is compare for operands that have to be computed. It is a
// separate function because the stack space for them would cost every
// comparison.
func (e *env) compareComputed(n *node) ternary {
	x, y := e.value(n.kids[0]), e.value(n.kids[1])
	if x.Kind() == value.String && y.Kind() == value.String {
		return e.compareTexts(n, &x, &y)
	}
	return compareResult(n.op, value.Compare(&x, &y))
}

// apply applies an operator to two values; false means a division by zero.
func apply(o op, a, b *value.Value) (value.Value, bool) {
	switch o {
	case opAdd:
		return value.Add(a, b), true
	case opSub:
		return value.Sub(a, b), true
	case opMul:
		return value.Mul(a, b), true
	case opDiv:
		return value.Div(a, b)
	default:
		return value.Mod(a, b)
	}
}

// truth reads a value as a condition.
func truth(v value.Value) ternary {
	if v.Kind() != value.Bool {
		return maybe
	}
	return ternaryOf(v.Bool())
}

// isNull is about absence, so a system property without a value is no failure.
func (e *env) isNull(n *node) bool {
	if n.op == opProperty {
		return !e.raw(n).Known()
	}
	v := e.value(n)
	return !v.Known()
}

// exists is true for a user property that is there, be it null. The sender's
// system properties are always there; what counts is whether they have a value.
func (e *env) exists(n *node) bool {
	v := e.raw(n)
	if n.op == opProperty && n.name.System != NotSystem {
		return v.Known()
	}
	return v.Kind() != value.Unknown
}

// in compares the first kid with the others. Only an unknown left side makes the
// result unknown; an unknown element is just not equal.
func (e *env) in(n *node) ternary {
	left := e.operandRef(n.kids[0])
	if left == nil {
		v := e.value(n.kids[0])
		left = &v
	}
	if !left.Known() || len(left.Str()) > shortText && !e.affordList(n, left) {
		return maybe
	}
	return ternaryOf(e.among(n, left) != n.negated)
}

func (e *env) among(n *node, left *value.Value) bool {
	if n.set != nil {
		key, ok := left.Key()
		if ok {
			_, ok = n.set[key]
		}
		return ok
	}
	for _, kid := range n.kids[1:] {
		element := e.operandRef(kid)
		if element == nil {
			v := e.value(kid)
			element = &v
		}
		if value.Equal(left, element) == value.Same {
			return true
		}
	}
	return false
}

// matches evaluates LIKE.
func (e *env) matches(n *node) ternary {
	left := e.operandRef(n.kids[0])
	if left == nil {
		v := e.value(n.kids[0])
		left = &v
	}
	if n.like != nil {
		if left.Kind() != value.String {
			return maybe
		}
		got := e.match(left.Str(), n.like)
		if e.steps < 0 {
			e.fail(n, tooManySteps)
		}
		return ternaryOf(got != n.negated)
	}
	pat, escape := e.value(n.kids[1]), none
	if len(n.kids) > 2 {
		esc := e.value(n.kids[2])
		if esc.Kind() != value.String || !oneRune(esc.Str()) {
			return maybe
		}
		escape = escapeRune(esc.Str())
	}
	if left.Kind() != value.String || pat.Kind() != value.String || !e.afford(n, len(pat.Str())) {
		return maybe
	}
	got := !endsInEscape(pat.Str(), escape) && e.like(left.Str(), pieces{text: pat.Str(), escape: escape})
	if e.steps < 0 {
		e.fail(n, tooManySteps)
	}
	return ternaryOf(got != n.negated)
}
