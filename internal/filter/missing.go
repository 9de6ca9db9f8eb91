// SPDX-License-Identifier: Apache-2.0

package filter

import "slices"

// Gap is a part of a condition that is unknown for messages without a property, where a
// reader expects it to be true: what is not there is not equal to anything, not in any
// list and not like any pattern. So the condition does not match messages that the reader
// expects it to match.
type Gap struct {
	Missing Name   // the property
	Part    string // as String has it, such as kind <> 'report'
	Fix     string // in its place, such as (kind IS NULL OR kind <> 'report')
}

// Gaps returns the gaps of a condition, in the order of the properties, then of the text.
// A part that is unknown is none if the condition is not true for another reason, as in
// EXISTS(kind) AND kind <> 'report', or true for another one.
func (x *Expr) Gaps() []Gap {
	var gaps []Gap
	for _, name := range x.names {
		if !name.mayBeMissing() {
			continue
		}
		a := absence{name: name}
		parts := a.parts(x.root, nil, affirmed, nil)
		if len(parts) == 0 || !a.outcomes(x.root, affirmed).has(true, maybe) {
			continue
		}
		needed := slices.DeleteFunc(slices.Clone(parts), func(p part) bool {
			alone := absence{name: name, mended: parts, but: p.node}
			return !alone.outcomes(x.root, affirmed).has(true, maybe)
		})
		if len(needed) == 0 { // to mend any of them is enough
			needed = parts
		}
		for _, p := range needed {
			gaps = append(gaps, p.gap(name))
		}
	}
	return gaps
}

// TrueWithout reports whether a condition is true for every message without a property.
func (x *Expr) TrueWithout(name Name) bool {
	a := absence{name: name}
	return a.outcomes(x.root, affirmed)&^(result(true, yes)|result(false, yes)) == 0
}

// mayBeMissing reports whether messages need not have a property when they arrive.
func (n Name) mayBeMissing() bool {
	return n.System == NotSystem || n.System.Settable() && n.System != TimeToLive && n.System != ForcePersistence
}

// absence evaluates conditions for messages without a property, twice: as the language
// does, and as a reader expects. The parts that do not depend on the property may be
// true or false, each for itself.
type absence struct {
	name   Name
	mended []part // parts that are taken to be mended, except but
	but    *node
}

// sense says whether a part is below an odd number of NOT.
type sense bool

const (
	affirmed sense = false
	denied   sense = true
)

// part is a comparison that a property is missing for, with the NOT above it, if it is
// directly above.
type part struct {
	node, not *node
	sense     sense
}

// gap returns the part as the gap of a property.
func (p part) gap(name Name) Gap {
	n, unless := p.node, name.String()+" IS NULL OR "
	switch {
	case p.not != nil:
		n = p.not
	case p.sense == denied:
		unless = name.String() + " IS NOT NULL AND "
	}
	text := n.String()
	return Gap{Missing: name, Part: text, Fix: "(" + unless + text + ")"}
}

// outcomes is a set of possible results: for each what the reader expects, and what it is.
type outcomes uint8

func result(reader bool, got ternary) outcomes {
	if reader {
		got += 3
	}
	return 1 << got
}

func (o outcomes) has(reader bool, got ternary) bool { return o&result(reader, got) != 0 }

// either is the result of a condition that does not depend on the property.
const either = outcomes(1<<no | 1<<(yes+3))

// combine returns the results of AND or OR of two conditions.
func (o outcomes) combine(p outcomes, by op) (all outcomes) {
	for a := range uint8(6) {
		for b := range uint8(6) {
			if o&(1<<a) == 0 || p&(1<<b) == 0 {
				continue
			}
			x, y := ternary(a%3), ternary(b%3)
			if by == opAnd {
				all |= result(a >= 3 && b >= 3, min(x, y))
			} else {
				all |= result(a >= 3 || b >= 3, max(x, y))
			}
		}
	}
	return all
}

func (o outcomes) not() (all outcomes) {
	for a := range uint8(6) {
		if o&(1<<a) != 0 {
			all |= result(a < 3, ternary(a%3).not())
		}
	}
	return all
}

// outcomes returns the possible results of a condition.
func (a *absence) outcomes(n *node, s sense) outcomes {
	if n.fixed || n.constant() {
		got := truth(n.val)
		return result(got == yes, got)
	}
	switch n.op {
	case opAnd, opOr:
		all := a.outcomes(n.kids[0], s)
		for _, kid := range n.kids[1:] {
			all = all.combine(a.outcomes(kid, s), n.op)
		}
		return all
	case opNot:
		return a.outcomes(n.kids[0], !s).not()
	case opIsNull, opExists:
		if !a.unknown(n.kids[0]) {
			return either
		}
		got := ternaryOf((n.op == opIsNull) != n.negated)
		return result(got == yes, got)
	}
	switch reader := n.different(); {
	case !a.missesIn(n):
		return either
	case a.isMended(n):
		return result(reader, ternaryOf(reader))
	default:
		return result(reader, maybe)
	}
}

// parts appends the parts of n that a reader expects to be true, or false below NOT, and
// that are unknown.
func (a *absence) parts(n, above *node, s sense, dst []part) []part {
	switch n.op {
	case opNot:
		return a.parts(n.kids[0], n, !s, dst)
	case opAnd, opOr:
		for _, kid := range n.kids {
			dst = a.parts(kid, nil, s, dst)
		}
		return dst
	}
	if !n.fixed && a.missesIn(n) && n.different() != bool(s) {
		dst = append(dst, part{node: n, not: above, sense: s})
	}
	return dst
}

func (a *absence) isMended(n *node) bool {
	return n != a.but && slices.ContainsFunc(a.mended, func(p part) bool { return p.node == n })
}

// different reports whether n asks whether two values differ.
func (n *node) different() bool {
	return n.op == opNotEqual || (n.op == opIn || n.op == opLike) && n.negated
}

// missesIn reports whether a condition, which is no combination of others, is unknown.
func (a *absence) missesIn(n *node) bool {
	switch {
	case n.op == opIsNull || n.op == opExists:
		return false
	case n.op == opIn:
		return a.unknown(n.kids[0])
	case n.op == opLike || n.op >= opEqual && n.op <= opGreaterEqual:
		return slices.ContainsFunc(n.kids, a.unknown)
	}
	return a.unknown(n)
}

// unknown reports whether a value is unknown because it needs the property.
func (a *absence) unknown(n *node) bool {
	switch n.op {
	case opProperty:
		return n.name.same(a.name)
	case opNamed:
		arg := n.kids[0]
		if !arg.constant() {
			return false // it is another property for each message
		}
		name, ok := scoped(arg.val.Str())
		return ok && name.same(a.name)
	case opNegate, opPlus, opAdd, opSub, opMul, opDiv, opMod:
		return slices.ContainsFunc(n.kids, a.unknown)
	}
	return false
}
