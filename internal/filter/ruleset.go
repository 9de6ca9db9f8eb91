// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"encoding/binary"
	"math"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// RuleSet is all rules of a topic, compiled to be evaluated together. It is
// immutable; a new rule needs a new set.
//
// Rules that demand an equality (every correlation filter, and SQL such as
// Priority = 'High' AND …) are found through hash tables, one for each
// combination of properties that some rule compares. The cost of a message is
// one lookup per combination, however many rules there are, and the evaluation
// of the rules it finds. Rules that bound a property by integers are evaluated
// if it is within their bounds; other SQL rules are evaluated one by one.
type RuleSet struct {
	names   []Name    // the properties that rules use, numbered for all of them
	always  []int     // rules that take every message
	indexes []*index  // one per combination of properties
	ranges  []*ranges // one per property
	scan    []sqlRule
	foreign []foreignRule
}

// sqlRule is a rule to evaluate, with its numbering of properties translated.
type sqlRule struct {
	rule  int
	expr  *Expr
	remap []uint32
}

// foreignRule is a filter that is not one of ours.
type foreignRule struct {
	rule   int
	filter Filter
}

// Compile compiles a set of rules, which are identified by their index in
// filters.
func Compile(filters []Filter) *RuleSet {
	c := compiler{RuleSet: &RuleSet{}, numbers: map[Name]int{}, bySlots: map[string]*index{}, byBound: map[int]*ranges{}}
	for i, f := range filters {
		switch f := f.(type) {
		case Constant:
			if f {
				c.always = append(c.always, i)
			}
		case *Correlation:
			c.addCorrelation(i, f)
		case *Expr:
			c.addExpr(i, f)
		default:
			c.foreign = append(c.foreign, foreignRule{i, f})
		}
	}
	return c.RuleSet
}

// compiler is a set during compilation, with the tables that only the
// compilation needs.
type compiler struct {
	*RuleSet
	numbers map[Name]int
	bySlots map[string]*index
	byBound map[int]*ranges
}

func (c *compiler) addCorrelation(rule int, f *Correlation) {
	if f.Validate() != nil { // it can never match
		return
	}
	e := entry{rule: rule}
	var slots []int
	for _, eq := range f.equalities() {
		slots = append(slots, c.number(eq.name))
		key, _ := eq.value.Key()
		e.want = append(e.want, key)
	}
	c.indexOf(slots).add(e)
}

func (c *compiler) addExpr(rule int, x *Expr) {
	sql := sqlRule{rule: rule, expr: x, remap: make([]uint32, len(x.names))}
	for i, name := range x.names {
		sql.remap[i] = uint32(c.number(name))
	}
	g, ok := guardOf(x.root)
	if !ok {
		c.addScanned(sql)
		return
	}
	ix := c.indexOf([]int{c.number(g.name)})
	for _, key := range g.keys {
		e := entry{rule: rule, want: []value.Value{key}}
		if !g.whole {
			e.rest = &sql
		}
		ix.add(e)
	}
}

// addScanned adds a rule that no equality finds.
func (c *compiler) addScanned(sql sqlRule) {
	name, b, ok := boundsOf(sql.expr.root)
	if !ok {
		c.scan = append(c.scan, sql)
		return
	}
	slot := c.number(name)
	g, ok := c.byBound[slot]
	if !ok {
		g = &ranges{slot: slot}
		c.ranges, c.byBound[slot] = append(c.ranges, g), g
	}
	g.rules = append(g.rules, ranged{b, sql})
}

// number returns the slot of a property, and allocates it the first time.
// Spellings that differ in case are different slots, because a message may
// carry both.
func (c *compiler) number(name Name) int {
	n, ok := c.numbers[name]
	if !ok {
		n = len(c.names)
		c.names, c.numbers[name] = append(c.names, name), n
	}
	return n
}

// indexOf returns the index over a combination of properties. Correlation filters
// list theirs in one order, so the same combination is the same list.
func (c *compiler) indexOf(slots []int) *index {
	var key []byte
	for _, slot := range slots {
		key = binary.AppendUvarint(key, uint64(slot))
	}
	ix, ok := c.bySlots[string(key)]
	if !ok {
		ix = newIndex(slots)
		c.indexes, c.bySlots[string(key)] = append(c.indexes, ix), ix
	}
	return ix
}

// Match calls hit for every rule that matches the message, once and with a nil
// error, and for every rule whose evaluation failed, with its [*evalError]. The
// order of the calls is the same for the same set and message, but not the
// order of the rules. It returns about how many steps that took.
func (s *RuleSet) Match(v View, hit func(rule int, err error)) (steps int) {
	for _, rule := range s.always {
		hit(rule, nil)
	}
	// Each rule has its own limit of steps; finding the rules has none.
	e := env{view: v, steps: math.MaxInt, shared: MessageSteps}
	for _, ix := range s.indexes {
		e.shared -= len(ix.slots)
		for _, entry := range ix.find(&e, s.names) {
			switch {
			case !entry.agrees(&e, ix.slots, s.names):
			case entry.rest == nil:
				hit(entry.rule, nil)
			default:
				entry.rest.match(&e, hit)
			}
		}
	}
	for _, g := range s.ranges {
		g.match(&e, s.names, hit)
	}
	for i := range s.scan {
		s.scan[i].match(&e, hit)
	}
	for _, f := range s.foreign {
		if ok, err := f.filter.Match(v); ok || err != nil {
			hit(f.rule, err)
		}
	}
	return MessageSteps - e.shared + stepsPerFailure*e.failed
}

// match evaluates a rule with the properties that earlier rules looked up.
func (r *sqlRule) match(e *env, hit func(rule int, err error)) {
	given := min(r.expr.steps, max(e.shared, fewSteps))
	e.remap, e.err, e.steps = r.remap, nil, given
	got := e.test(r.expr.root)
	e.shared -= given - e.steps + r.expr.nodes
	switch {
	case e.err != nil:
		e.failed++
		hit(r.rule, e.err)
	case got == yes:
		hit(r.rule, nil)
	}
}
