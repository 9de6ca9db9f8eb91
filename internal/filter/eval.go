// SPDX-License-Identifier: Apache-2.0

package filter

// cached is how many distinct properties one evaluation remembers. Looking a
// property up means reading through the message; a set of rules asks for the same
// few again and again.
const cached = 24

// env is one evaluation. It lives on the stack: nothing below may store a pointer
// to it or pass it through an interface.
type env struct {
	view  View
	remap []uint16 // slot of the expression -> slot of the rule set; nil: the same
	have  uint32   // bit per cache entry that is filled
	cache [cached]Value
	err   *EvalError // the first failure; once set, results mean nothing
}

func (e *env) fail(n *node, reason string) {
	if e.err == nil {
		e.err = &EvalError{Expr: shorten(n.String()), Reason: reason}
	}
}

// slot returns the property at a slot, looking it up the first time.
func (e *env) slot(slot int, name *Name) Value {
	if slot >= cached {
		return e.fetch(name)
	}
	if e.have&(1<<slot) == 0 {
		e.cache[slot] = e.fetch(name)
		e.have |= 1 << slot
	}
	return e.cache[slot]
}

// fetch returns a property of the message. Of a user property, unknown means that
// it is not there; of a system property, that it has no value yet.
func (e *env) fetch(name *Name) Value {
	var v Value
	var ok bool
	if name.System == NotSystem {
		v, ok = e.view.User(name.User)
	} else {
		v, ok = e.view.System(name.System)
	}
	if !ok {
		return Value{}
	}
	return v
}

// raw returns what a property or property(e) finds, without minding absence.
func (e *env) raw(n *node) Value {
	if n.op == opProperty {
		slot := n.slot
		if e.remap != nil {
			slot = int(e.remap[slot])
		}
		return e.slot(slot, &n.name)
	}
	arg := e.value(n.kids[0])
	if arg.kind != String {
		return Value{}
	}
	name, ok := scoped(arg.text)
	if !ok {
		e.fail(n, "there is no system property "+shorten(arg.text))
		return Value{}
	}
	v := e.fetch(&name)
	if name.System != NotSystem && v.kind == Unknown {
		e.noValue(n)
	}
	return v
}

func (e *env) noValue(n *node) { e.fail(n, "it has no value at this point") }

// value evaluates n.
func (e *env) value(n *node) Value {
	if n.fixed {
		return n.val
	}
	switch n.op {
	case opConst:
		return n.val
	case opProperty:
		v := e.raw(n)
		if v.kind == Unknown && n.name.System != NotSystem {
			e.noValue(n)
		}
		return v
	case opNamed:
		return e.raw(n)
	case opNewID:
		return UUIDValue(e.view.NewID())
	case opNegate:
		return negate(e.value(n.kids[0]))
	case opPlus:
		if v := e.value(n.kids[0]); v.isNumber() || v.kind == Duration {
			return v
		}
		return Value{}
	case opAdd, opSub, opMul, opDiv, opMod:
		v, ok := arithmetic(n.op, e.value(n.kids[0]), e.value(n.kids[1]))
		if !ok {
			e.fail(n, "division by zero")
		}
		return v
	default:
		return e.test(n).value()
	}
}

// test evaluates a condition.
func (e *env) test(n *node) verdict {
	if n.fixed {
		return truth(n.val)
	}
	switch n.op {
	case opAnd:
		all := yes
		for _, kid := range n.kids {
			if all = min(all, e.test(kid)); all == no || e.err != nil {
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
		return judge(n.op, compare(e.value(n.kids[0]), e.value(n.kids[1])))
	case opIsNull:
		return verdictOf(e.isNull(n.kids[0]) != n.negated)
	case opExists:
		return verdictOf(e.exists(n.kids[0]))
	case opIn:
		return e.in(n)
	case opLike:
		return e.matches(n)
	default:
		return truth(e.value(n))
	}
}

// truth reads a value as a condition.
func truth(v Value) verdict {
	if v.kind != Bool {
		return maybe
	}
	return verdictOf(v.bits == 1)
}

// isNull is about absence, so a system property without a value is no failure.
func (e *env) isNull(n *node) bool {
	if n.op == opProperty {
		return !e.raw(n).known()
	}
	return !e.value(n).known()
}

// exists is true for a user property that is there, be it null. The sender's
// system properties are always there; what counts is whether they have a value.
func (e *env) exists(n *node) bool {
	v := e.raw(n)
	if n.op == opProperty && n.name.System != NotSystem {
		return v.known()
	}
	return v.kind != Unknown
}

// in compares the first kid with the others. Only an unknown left side makes the
// result unknown; an unknown element is just not equal.
func (e *env) in(n *node) verdict {
	left := e.value(n.kids[0])
	if !left.known() {
		return maybe
	}
	found := false
	if n.set != nil {
		if key, ok := left.key(); ok {
			_, found = n.set[key]
		}
		return verdictOf(found != n.negated)
	}
	for _, kid := range n.kids[1:] {
		if compare(left, e.value(kid)) == same {
			found = true
			break
		}
	}
	return verdictOf(found != n.negated)
}

// matches evaluates LIKE.
func (e *env) matches(n *node) verdict {
	left := e.value(n.kids[0])
	if n.like != nil {
		if left.kind != String {
			return maybe
		}
		return verdictOf(n.like.match(left.text) != n.negated)
	}
	pat, escape := e.value(n.kids[1]), none
	if len(n.kids) > 2 {
		esc := e.value(n.kids[2])
		if esc.kind != String || !oneRune(esc.text) {
			return maybe
		}
		escape = escapeRune(esc.text)
	}
	if left.kind != String || pat.kind != String {
		return maybe
	}
	return verdictOf(walk(left.text, pat.text, escape) != n.negated)
}
