// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/triagemq/triagemq/internal/filter/value"

// What the parts of compiled filters take in memory, with what the allocator adds and what
// a RuleSet adds to them.
const (
	nodeCost        = 224 // a node, and its place in the kids of another
	memberCost      = 112 // a value in the set of an IN
	pieceCost       = 64  // of a LIKE
	exprCost        = 128 // an expression, and its sqlRule
	nameCost        = 48  // the name of a property, in an expression and in a set
	correlationCost = 400 // a correlation filter, and its entry
	propertyCost    = 200 // a property of a correlation filter, and its place in an entry
	entryCost       = 240 // a value by which an index finds a rule
	statementCost   = 96  // of an action
)

// Cost returns how much memory a compiled filter takes, about, together with what it adds
// to a [RuleSet].
func Cost(f Filter) int64 {
	switch f := f.(type) {
	case *Expr:
		n := f.size()
		if g, ok := guardOf(f.root); ok {
			n += entryCost * int64(len(g.keys))
		}
		return n
	case *Correlation:
		return f.size()
	}
	return 0
}

func (x *Expr) size() int64 {
	if x == nil {
		return 0
	}
	return exprCost + nameCost*int64(len(x.names)) + x.root.size()
}

func (n *node) size() int64 {
	size := nodeCost + int64(len(n.name.User)+len(n.param)+len(n.val.Str()))
	size += memberCost * int64(len(n.set))
	for key := range n.set {
		size += textSize(&key)
	}
	if n.like != nil {
		size += pieceCost * int64(1+len(n.like.pieces))
	}
	for _, kid := range n.kids {
		size += kid.size()
	}
	return size
}

func (c *Correlation) size() int64 {
	size := int64(correlationCost)
	for _, eq := range c.equalities() {
		size += propertyCost + int64(len(eq.name.User)) + textSize(&eq.value)
	}
	return size
}

func textSize(v *value.Value) int64 { return int64(len(v.Str())) }

// Cost returns how much memory an action takes, about.
func (a *Action) Cost() int64 {
	if a == nil {
		return 0
	}
	size := int64(0)
	for i := range a.statements {
		size += statementCost + int64(len(a.statements[i].name.User)) + a.statements[i].expr.size()
	}
	return size
}
