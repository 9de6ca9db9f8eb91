// SPDX-License-Identifier: Apache-2.0

package filter

import "github.com/triagemq/triagemq/internal/filter/value"

// ternary is a truth value. The numbers make AND the smaller and OR the larger.
type ternary uint8

const (
	no ternary = iota
	maybe
	yes
)

var ternaryNames = [...]string{"false", "unknown", "true"}

// String returns true, false or unknown.
func (v ternary) String() string { return ternaryNames[v] }

func (v ternary) not() ternary { return yes - v }

func ternaryOf(b bool) ternary {
	if b {
		return yes
	}
	return no
}

// value returns the ternary as a value of the language.
func (v ternary) value() value.Value {
	if v == maybe {
		return value.Value{}
	}
	return value.MakeBool(v == yes)
}

// compareResult turns an order into the result of the comparison o.
func compareResult(o op, got value.Order) ternary { return compareResults[o-opEqual][got-value.Less] }

// compareResults has a row for each comparison, in the order of the operators,
// and in it a ternary for each order.
var compareResults = [...][5]ternary{
	//                  less same greater apart unlike
	opEqual - opEqual:        {no, yes, no, no, maybe}, //nolint:staticcheck // zero, spelt like the others
	opNotEqual - opEqual:     {yes, no, yes, yes, maybe},
	opLess - opEqual:         {yes, no, no, no, maybe},
	opLessEqual - opEqual:    {yes, yes, no, no, maybe},
	opGreater - opEqual:      {no, no, yes, no, maybe},
	opGreaterEqual - opEqual: {no, yes, yes, no, maybe},
}
