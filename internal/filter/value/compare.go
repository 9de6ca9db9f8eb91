// SPDX-License-Identifier: Apache-2.0

package value

import (
	"cmp"
	"hash/maphash"
	"math"
	"strings"
)

// Order is the outcome of comparing two values.
type Order int8

// The orders. The first three are the results of cmp.Compare.
const (
	Less    Order = -1
	Same    Order = 0
	greater Order = 1
	apart   Order = 2 // not the same, and neither is the greater: NaN, booleans, ids
	unlike  Order = 3 // not comparable: types differ, or one is unknown or null
)

// Compare orders two values. Numbers of all types compare by their exact value:
// no rounding makes unlike numbers equal.
func Compare(a, b *Value) Order {
	if a.kind != b.kind {
		switch {
		case a.kind == Int && b.kind == Double:
			return compareIntDouble(a, b.Double())
		case a.kind == Double && b.kind == Int:
			return compareIntDouble(b, a.Double()).reversed()
		default:
			return unlike
		}
	}
	switch a.kind {
	case String:
		return Order(strings.Compare(a.text, b.text))
	case Int:
		return compareInts(a, b)
	case Double:
		return compareDoubles(a.Double(), b.Double())
	case Time, Duration:
		return Order(cmp.Compare(int64(a.bits), int64(b.bits)))
	case Bool, UUID, Binary:
		if a.bits == b.bits && a.low == b.low && a.text == b.text {
			return Same
		}
		return apart
	default:
		return unlike
	}
}

func (o Order) reversed() Order {
	if o == Less || o == greater {
		return -o
	}
	return o
}

func compareInts(a, b *Value) Order {
	if a.big || b.big { // a big one is above every other
		switch {
		case !b.big:
			return greater
		case !a.big:
			return Less
		}
		return Order(cmp.Compare(a.bits, b.bits))
	}
	return Order(cmp.Compare(int64(a.bits), int64(b.bits)))
}

func compareDoubles(a, b float64) Order {
	if a != a || b != b {
		return apart
	}
	return Order(cmp.Compare(a, b))
}

func compareIntDouble(a *Value, f float64) Order {
	if f != f {
		return apart
	}
	whole, ok := wholeValue(math.Floor(f))
	if !ok { // f is beyond every integer
		if f > 0 {
			return Less
		}
		return greater
	}
	if o := compareInts(a, &whole); o != Same {
		return o
	}
	if math.Floor(f) < f {
		return Less
	}
	return Same
}

// wholeValue returns f as an integer, if it is one in the range of Int.
func wholeValue(f float64) (Value, bool) {
	switch {
	case f != math.Floor(f) || f < math.MinInt64 || f >= 1<<64:
		return Value{}, false
	case f < 1<<63:
		return MakeInt(int64(f)), true
	default:
		return MakeUint(uint64(f)), true
	}
}

// Key returns v in the canonical form that all values equal to it share, for
// use in hash tables; ok is false when v equals nothing, not even itself.
func (v Value) Key() (k Value, ok bool) {
	v.width = Widest
	switch v.kind {
	case Unknown, Null, Opaque:
		return Value{}, false
	case Double:
		if f := v.Double(); f == math.Floor(f) {
			if whole, ok := wholeValue(f); ok {
				return whole, true
			}
		}
		return v, v.Double() == v.Double() // not NaN
	default:
		return v, true
	}
}

// Hash adds a key to the hash h. Kinds are not part of it.
func (v *Value) Hash(seed maphash.Seed, h uint64) uint64 {
	h ^= v.bits ^ v.low<<1
	if v.text != "" {
		h ^= maphash.String(seed, v.text)
	}
	h *= 0x9e3779b97f4a7c15 // odd, so that no information is lost
	return h ^ h>>29
}

// Equal is [Compare] for = and <>, which need not know which string is the greater.
func Equal(a, b *Value) Order {
	if a.kind != String || b.kind != String {
		return Compare(a, b)
	}
	if a.text == b.text {
		return Same
	}
	return apart
}
