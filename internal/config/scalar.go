// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"

	"github.com/triagemq/triagemq/internal/entity"
)

// The functions below return readers for one value each, so that a table of keys
// reads like the documentation. A null leaves the value as it was.

func (d *decoder) text(into *string) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		text, ok := textOf(n.Node)
		if !ok {
			d.expected(n, "a text")
			return
		}
		*into = text
	}
}

// textOf returns a scalar as a text: a name may look like a number.
func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (d *decoder) boolean(into *bool) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		b, ok := n.Node.(*ast.BoolNode)
		if !ok {
			d.expected(n, "true or false")
			return
		}
		*into = b.Value
	}
}

// optional is boolean for a property whose default is true.
func (d *decoder) optional(into **bool) func(node) {
	return func(n node) {
		if n.Node != nil {
			*into = new(bool)
			d.boolean(*into)(n)
		}
	}
}

func number[T int | int32 | int64](d *decoder, into *T) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		v, ok := integer(n.Node)
		if !ok || int64(T(v)) != v {
			d.expected(n, "a whole number")
			return
		}
		*into = T(v)
	}
}

// deliveries reads a number of deliveries, of which there is at least one.
func deliveries(d *decoder, into *entity.Deliveries) func(node) {
	var v int32
	read := number(d, &v)
	return func(n node) {
		if n.Node == nil {
			return
		}
		if v, ok := integer(n.Node); ok && v == 0 {
			d.expected(n, "a whole number from 1")
			return
		}
		read(n)
		*into = entity.Deliveries(v)
	}
}

func integer(n ast.Node) (int64, bool) {
	i, ok := n.(*ast.IntegerNode)
	if !ok {
		return 0, false
	}
	switch v := i.Value.(type) {
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// parsed reads a scalar that has its own syntax.
func parsed[T any](d *decoder, into *T, parse func(string) (T, error)) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		text, ok := textOf(n.Node)
		if !ok {
			d.expected(n, "a text")
			return
		}
		v, err := parse(text)
		if err != nil {
			d.faultf(n, "%s", entity.Reason(err))
			return
		}
		*into = v
	}
}

func (d *decoder) duration(into *entity.Duration) func(node) {
	return parsed(d, into, entity.ParseDuration)
}

func (d *decoder) size(into *Size) func(node) { return parsed(d, into, parseSize) }

func (d *decoder) texts(into *[]string) func(node) {
	return func(n node) {
		*into = []string{}
		d.list(n, func(item node) {
			var text string
			d.text(&text)(item)
			*into = append(*into, text)
		})
	}
}

// raw keeps a value for another package as JSON, with the positions of all its
// parts.
func (d *decoder) raw(into *json.RawMessage) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		encoded, err := json.Marshal(d.plain(n))
		if err != nil {
			d.faultf(n, "%s", entity.Reason(err))
			return
		}
		*into = encoded
	}
}

// plain turns a value into what encoding/json knows.
func (d *decoder) plain(n node) any {
	switch v := n.Node.(type) {
	case nil:
		return nil
	case *ast.SequenceNode:
		items := []any{}
		d.list(n, func(item node) { items = append(items, d.plain(item)) })
		return items
	case *ast.MappingNode, *ast.MappingValueNode:
		object := map[string]any{}
		pairs, _ := d.pairs(n)
		for _, p := range pairs {
			object[p.key] = d.plain(d.child(n, p.key, p.value))
		}
		return object
	case *ast.BoolNode:
		return v.Value
	case *ast.IntegerNode:
		return v.Value
	case *ast.FloatNode:
		return v.Value
	case ast.ScalarNode:
		return fmt.Sprint(v.GetValue())
	}
	d.expected(n, "a value")
	return nil
}

// value reads a typed constant: a plain scalar, or {type: int, value: 5}.
func (d *decoder) value(n node) (v entity.Value, ok bool) {
	var in any
	switch s := n.Node.(type) {
	case nil:
		d.expected(n, "a value")
		return v, false
	case *ast.MappingNode, *ast.MappingValueNode:
		var typ, text string
		d.object(n, fields{"type": d.text(&typ), "value": d.text(&text)})
		v, err := entity.ParseValue(typ, text)
		if err != nil {
			d.faultf(n, "%s", entity.Reason(err))
		}
		return v, err == nil
	case *ast.BoolNode:
		in = s.Value
	case *ast.FloatNode:
		in = s.Value
	case *ast.IntegerNode:
		i, fits := integer(s)
		if !fits {
			d.expected(n, "a whole number of 64 bits")
			return v, false
		}
		in = i
	default:
		text, isText := textOf(n.Node)
		if !isText {
			d.expected(n, "a text, a number, true or false")
			return v, false
		}
		in = text
	}
	v, err := entity.NewValue(in)
	return v, err == nil
}

// values reads a mapping of typed constants.
func (d *decoder) values(into *map[string]entity.Value) func(node) {
	return func(n node) {
		if n.Node == nil {
			return
		}
		pairs, ok := d.pairs(n)
		if !ok {
			d.expected(n, "keys with values")
			return
		}
		*into = map[string]entity.Value{}
		for _, p := range pairs {
			if v, ok := d.value(d.child(n, p.key, p.value)); ok {
				(*into)[p.key] = v
			}
		}
	}
}
