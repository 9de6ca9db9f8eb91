// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Bounds on what a file may make of itself through aliases.
const (
	maxValues = 1_000_000
	maxDepth  = 100
)

// decoder walks the nodes of a file and records the position and the faults of
// each value.
type decoder struct {
	source  source
	faults  Faults
	anchors map[string]ast.Node
	budget  int // values that may still be visited
}

// node is a value of the file and its path.
type node struct {
	ast.Node
	path  string
	depth int
}

// fields are the keys of a mapping and what to do with their values.
type fields map[string]func(node)

func (d *decoder) root(body ast.Node) node { return d.child(node{}, "", body) }

// child returns the value at a step below parent: without its anchor or tag,
// and with aliases resolved.
func (d *decoder) child(parent node, step string, value ast.Node) node {
	n := node{path: join(parent.path, step), depth: parent.depth + 1}
	d.note(n.path, value)
	d.budget--
	if d.budget < 0 || n.depth > maxDepth {
		if d.budget != exhausted {
			d.faultf(n, "the file is nested too deeply, or has more than %d values", maxValues)
			d.budget = exhausted
		}
		return n // without a value: null
	}
	n.Node = d.resolve(n, value)
	return n
}

// exhausted is the budget of a decoder that has reported that it is used up.
const exhausted = -1 << 40

// resolve follows aliases as far as they go; one that goes in a circle ends
// with the depth.
func (d *decoder) resolve(n node, value ast.Node) ast.Node {
	for range maxDepth {
		switch v := value.(type) {
		case *ast.AnchorNode:
			value = v.Value
		case *ast.TagNode:
			value = v.Value
		case *ast.AliasNode:
			name := v.Value.GetToken().Value
			target, ok := d.anchors[name]
			if !ok {
				d.faultf(n, "there is no anchor &%s", name)
				return nil
			}
			value = target
		case *ast.NullNode:
			return nil
		default:
			return value
		}
	}
	return nil
}

// note records the position of the value at path.
func (d *decoder) note(path string, value ast.Node) {
	if value == nil {
		return
	}
	if t := firstToken(value); t != nil && t.Position != nil {
		d.source.at[path] = position{t.Position.Line, t.Position.Column}
	}
}

// firstToken returns where a value begins. The library's own token of a block
// mapping is the colon of its first key.
func firstToken(value ast.Node) *token.Token {
	switch v := value.(type) {
	case *ast.MappingNode:
		if !v.IsFlowStyle && len(v.Values) > 0 {
			return v.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return v.Key.GetToken()
	}
	return value.GetToken()
}

func (d *decoder) faultf(n node, format string, args ...any) {
	d.faults = append(d.faults, d.source.fault(n.path, fmt.Sprintf(format, args...)))
}

// expected reports a value of the wrong kind.
func (d *decoder) expected(n node, what string) {
	d.faultf(n, "expected %s, found %s", what, kindOf(n.Node))
}

// kindOf names a kind of value in the words of a user.
func kindOf(n ast.Node) string {
	switch n := n.(type) {
	case nil:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return fmt.Sprintf("%q", n.Value)
	default:
		return n.GetToken().Value
	}
}

// object reads a mapping, each key with its function. Unknown keys and
// duplicate keys are faults.
func (d *decoder) object(n node, known fields) {
	if n.Node == nil {
		return
	}
	pairs, ok := d.pairs(n)
	if !ok {
		d.expected(n, "keys with values")
		return
	}
	for _, pair := range pairs {
		value := d.child(n, pair.key, pair.value)
		read, ok := known[pair.key]
		if !ok {
			// The fault is the key's, not the value's.
			d.note(value.path, pair.at)
			d.faultf(value, "unknown key; %s", suggestion(pair.key, known))
			continue
		}
		read(value)
	}
}

// pair is a key of a mapping with its value.
type pair struct {
	key   string
	at    ast.Node
	value ast.Node
}

// pairs returns the keys of a mapping, with those of merge keys. The mapping's
// own pairs have precedence.
func (d *decoder) pairs(n node) ([]pair, bool) {
	var values []*ast.MappingValueNode
	switch m := n.Node.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, false
	}
	var own, merged []pair
	seen := map[string]bool{}
	for _, v := range values {
		if v.Key.IsMergeKey() {
			merged = append(merged, d.merged(n, v.Value)...)
			continue
		}
		key := v.Key.GetToken().Value
		if seen[key] {
			d.note(join(n.path, key), v.Key)
			d.faults = append(d.faults, d.source.fault(join(n.path, key), "is set twice"))
			continue
		}
		seen[key] = true
		own = append(own, pair{key, v.Key, v.Value})
	}
	for _, p := range merged {
		if !seen[p.key] {
			seen[p.key] = true
			own = append(own, p)
		}
	}
	return own, true
}

// merged returns the pairs of a merge key.
func (d *decoder) merged(n node, value ast.Node) []pair {
	from := d.child(n, "<<", value)
	if list, ok := from.Node.(*ast.SequenceNode); ok {
		var all []pair
		for i, item := range list.Values {
			all = append(all, d.merged(node{path: fmt.Sprintf("%s[%d]", n.path, i), depth: from.depth}, item)...)
		}
		return all
	}
	if from.Node == nil {
		return nil
	}
	pairs, ok := d.pairs(from)
	if !ok {
		d.expected(from, "keys with values")
	}
	return pairs
}

// suggestion names the key that was probably meant, else all there are.
func suggestion(key string, known fields) string {
	names := slices.Sorted(maps.Keys(known))
	for _, name := range names {
		if strings.EqualFold(name, key) || strings.HasPrefix(strings.ToLower(name), strings.ToLower(key)) || editDistance(name, key) <= 2 {
			return "did you mean " + name + "?"
		}
	}
	return "known are " + strings.Join(names, ", ")
}

// editDistance counts the letters to add, drop or change to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// list reads a sequence, each item with read.
func (d *decoder) list(n node, read func(node)) {
	if n.Node == nil {
		return
	}
	sequence, ok := n.Node.(*ast.SequenceNode)
	if !ok {
		d.expected(n, "a list")
		return
	}
	for i, item := range sequence.Values {
		read(d.child(n, fmt.Sprintf("[%d]", i), item))
	}
}
