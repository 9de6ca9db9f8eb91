// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"slices"
)

// ranges are the rules that bound one property by whole numbers, such as
// amount > 100 AND amount <= 200. Of many such rules few take a message, so they
// are weeded out by their bounds, side by side in memory, before any is evaluated.
type ranges struct {
	slot  int // of the property, in the numbering of the set
	rules []ranged
}

type ranged struct {
	bounds
	sql sqlRule
}

// bounds are numbers outside of which an expression cannot be true.
type bounds struct{ low, high int64 }

// match evaluates the rules whose bounds contain the property.
func (g *ranges) match(e *env, names []Name, hit func(rule int, err error)) {
	v := e.slot(g.slot, &names[g.slot])
	if !v.IsNumber() {
		return // comparing it with a number is unknown, which no rule survives
	}
	n, whole := v.Int()
	for i := range g.rules {
		// Bounds do not exclude fractions and numbers beyond 64 bits.
		if r := &g.rules[i]; !whole || r.low <= n && n <= r.high {
			r.sql.match(e, hit)
		}
	}
}

// boundsOf finds a property that the whole expression demands to be within
// bounds, the one with most comparisons. As with guardOf there is none where a
// part can fail.
func boundsOf(n *node) (name Name, b bounds, ok bool) {
	if mayFail(n) {
		return Name{}, bounds{}, false
	}
	parts := []*node{n}
	if n.op == opAnd {
		parts = n.kids
	}
	type candidate struct {
		name Name
		bounds
		count int
	}
	var all []candidate
	for _, part := range parts {
		name, b, ok := boundsAt(part)
		if !ok {
			continue
		}
		at := slices.IndexFunc(all, func(c candidate) bool { return c.name == name })
		if at < 0 {
			at, all = len(all), append(all, candidate{name: name, bounds: b})
		}
		c := &all[at]
		c.low, c.high, c.count = max(c.low, b.low), min(c.high, b.high), c.count+1
	}
	if len(all) == 0 {
		return Name{}, bounds{}, false
	}
	best := slices.MaxFunc(all, func(a, b candidate) int { return a.count - b.count })
	return best.name, best.bounds, true
}

// boundsAt reads one comparison of a property with a whole number.
func boundsAt(n *node) (name Name, b bounds, ok bool) {
	if !n.comparison() {
		return Name{}, bounds{}, false
	}
	property, number, o := n.kids[0], n.kids[1], n.op
	if number.op == opProperty {
		property, number, o = number, property, mirrored[o]
	}
	if property.op != opProperty || number.held == nil {
		return Name{}, bounds{}, false
	}
	c, whole := number.held.Int()
	if !whole {
		return Name{}, bounds{}, false
	}
	b = bounds{math.MinInt64, math.MaxInt64}
	switch {
	case o == opGreater && c < math.MaxInt64:
		b.low = c + 1
	case o == opGreaterEqual:
		b.low = c
	case o == opLess && c > math.MinInt64:
		b.high = c - 1
	case o == opLessEqual:
		b.high = c
	default:
		return Name{}, bounds{}, false
	}
	return property.name, b, true
}

// mirrored is the equivalent comparison with its sides exchanged.
var mirrored = map[op]op{
	opLess: opGreater, opLessEqual: opGreaterEqual,
	opGreater: opLess, opGreaterEqual: opLessEqual,
}
