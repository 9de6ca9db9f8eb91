// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"hash/maphash"
	"slices"

	"github.com/triagemq/triagemq/internal/filter/value"
)

// index finds the rules that demand certain values of one combination of
// properties.
type index struct {
	slots   []int // of the properties, in the numbering of the set
	seed    maphash.Seed
	start   uint64             // of every hash
	buckets map[uint64][]entry // by the hash of the values
	longest int                // text that any rule demands, in bytes
}

// entry is a rule in an index.
type entry struct {
	rule int
	want []value.Value // in the order of slots; each its own key
	rest *sqlRule      // to be evaluated as well, if not nil
}

func newIndex(slots []int) *index {
	// The seed is random so that a sender cannot choose values that share a bucket.
	// It does not affect results: buckets keep the order in which rules were added.
	seed := maphash.MakeSeed()
	return &index{slots: slots, seed: seed, start: maphash.String(seed, "start"), buckets: map[uint64][]entry{}}
}

func (ix *index) add(e entry) {
	h := ix.start
	for _, v := range e.want {
		h = v.Hash(ix.seed, h)
		ix.longest = max(ix.longest, len(v.Str()))
	}
	ix.buckets[h] = append(ix.buckets[h], e)
}

// find returns the rules that may want the message, judging by the hash alone,
// which does not distinguish keys that differ only in kind.
func (ix *index) find(e *env, names []Name) []entry {
	h := ix.start
	for _, slot := range ix.slots {
		key, ok := e.slot(slot, &names[slot]).Key()
		if !ok || len(key.Str()) > ix.longest { // cannot match: skip the hash
			return nil
		}
		h = key.Hash(ix.seed, h)
	}
	return ix.buckets[h]
}

// agrees reports whether the message has the very values.
func (en *entry) agrees(e *env, slots []int, names []Name) bool {
	for i, slot := range slots {
		if value.Equal(e.slot(slot, &names[slot]), &en.want[i]) != value.Same {
			return false
		}
	}
	return true
}

// guard is an equality without which an expression cannot be true.
type guard struct {
	name  Name
	keys  []value.Value // any of these
	whole bool          // there is nothing else in the expression
}

// guardOf finds an equality (property = constant, or property IN (constants))
// that the whole expression depends on. There is none where a part can fail: a
// rule that fails must be heard of, and even behind an equality that is unknown
// the parts after it are evaluated.
func guardOf(n *node) (guard, bool) {
	if n.op != opAnd {
		g, ok := guardAt(n)
		g.whole = true
		return g, ok
	}
	if mayFail(n) {
		return guard{}, false
	}
	for _, kid := range n.kids {
		if g, ok := guardAt(kid); ok {
			return g, true
		}
	}
	return guard{}, false
}

func guardAt(n *node) (guard, bool) {
	if n.negated || n.fixed || n.op != opEqual && n.op != opIn {
		return guard{}, false
	}
	kids := n.kids
	if n.op == opEqual && kids[1].op == opProperty {
		kids = []*node{kids[1], kids[0]}
	}
	if kids[0].op != opProperty || mayFail(kids[0]) {
		return guard{}, false
	}
	g := guard{name: kids[0].name}
	for _, kid := range kids[1:] {
		if !kid.fixed && kid.op != opConst {
			return guard{}, false
		}
		if key, ok := kid.val.Key(); ok && !slices.Contains(g.keys, key) {
			g.keys = append(g.keys, key)
		}
	}
	return g, true
}

// mayFail reports whether evaluating n can end in an error.
func mayFail(n *node) bool {
	if n.fixed {
		return false
	}
	switch {
	case n.op == opDiv, n.op == opMod, n.op == opNamed, n.op == opNewID:
		return true
	case n.op == opProperty && n.name.System != NotSystem:
		return !n.name.System.Settable() // the sender's are null at worst
	}
	return slices.ContainsFunc(n.kids, mayFail)
}
