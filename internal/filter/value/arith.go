// SPDX-License-Identifier: Apache-2.0

package value

import (
	"math"
	"math/bits"
)

// operator is an operation on two values.
type operator uint8

const (
	add operator = iota
	sub
	mul
	div
	mod
)

// The sum, difference, product, quotient and remainder of two values. An operation
// without a meaning (unlike types) or beyond the range of 64 bits is unknown, so
// that no wrong number is ever compared. Div and Mod report false for a division
// of integers by zero.

// Add returns a + b.
func Add(a, b *Value) Value { return always(add, a, b) }

// Sub returns a - b.
func Sub(a, b *Value) Value { return always(sub, a, b) }

// Mul returns a * b.
func Mul(a, b *Value) Value { return always(mul, a, b) }

// Div returns a / b.
func Div(a, b *Value) (Value, bool) { return arithmetic(div, a, b) }

// Mod returns a % b.
func Mod(a, b *Value) (Value, bool) { return arithmetic(mod, a, b) }

// always applies an operation that cannot fail.
func always(o operator, a, b *Value) Value {
	v, _ := arithmetic(o, a, b)
	return v
}

// arithmetic applies o. It reports false for a division of integers by zero.
func arithmetic(o operator, a, b *Value) (Value, bool) {
	if !a.Known() || !b.Known() {
		return Value{}, true
	}
	switch {
	case a.kind == Int && b.kind == Int && !a.big && !b.big:
		return integers(o, int64(a.bits), int64(b.bits))
	case a.IsNumber() && b.IsNumber():
		return doubles(o, a.float(), b.float()), true
	case a.kind == String && b.kind == String && o == add:
		return MakeString(a.text + b.text), true
	case a.isSpan() || b.isSpan():
		return spans(o, *a, *b)
	default:
		return Value{}, true
	}
}

// IsNumber reports an Int or a Double.
func (v *Value) IsNumber() bool { return v.kind == Int || v.kind == Double }

func (v Value) isSpan() bool { return v.kind == Time || v.kind == Duration }

// float returns a number as a double.
func (v Value) float() float64 {
	switch {
	case v.kind == Double:
		return v.Double()
	case v.big:
		return float64(v.bits)
	default:
		return float64(int64(v.bits))
	}
}

func integers(o operator, a, b int64) (Value, bool) {
	if o == div || o == mod {
		if b == 0 {
			return Value{}, false
		}
		if b == -1 && a == math.MinInt64 { // the only quotient that does not fit
			return Value{}, true
		}
	}
	switch o {
	case add:
		sum := a + b
		return fits(sum, (a^sum)&(b^sum) >= 0), true
	case sub:
		diff := a - b
		return fits(diff, (a^b)&(a^diff) >= 0), true
	case mul:
		product, ok := multiply(a, b)
		return fits(product, ok), true
	case div:
		return MakeInt(a / b), true
	default:
		return MakeInt(a % b), true
	}
}

func fits(n int64, ok bool) Value {
	if !ok {
		return Value{}
	}
	return MakeInt(n)
}

// multiply returns a*b and whether it fits.
func multiply(a, b int64) (int64, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if high != 0 || low > limit {
		return 0, false
	}
	return a * b, true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func doubles(o operator, a, b float64) Value {
	switch o {
	case add:
		return MakeDouble(a + b)
	case sub:
		return MakeDouble(a - b)
	case mul:
		return MakeDouble(a * b)
	case div:
		return MakeDouble(a / b)
	default:
		return MakeDouble(math.Mod(a, b))
	}
}

// spans is the arithmetic of instants and durations:
//
//	time - time = duration        time ± duration = time
//	duration ± duration           duration × number, duration ÷ number
//	duration ÷ duration = number
func spans(o operator, a, b Value) (Value, bool) {
	switch {
	case o == sub && a.kind == Time && b.kind == Time:
		return retype(o, a, b, Duration)
	case (o == add || o == sub) && a.kind == Time && b.kind == Duration:
		return retype(o, a, b, Time)
	case o == add && a.kind == Duration && b.kind == Time:
		return retype(o, a, b, Time)
	case (o == add || o == sub || o == mod) && a.kind == Duration && b.kind == Duration:
		return retype(o, a, b, Duration)
	case o == div && a.kind == Duration && b.kind == Duration:
		return MakeDouble(float64(int64(a.bits)) / float64(int64(b.bits))), true
	case o == mul && a.IsNumber():
		return scale(o, b, a)
	case (o == mul || o == div) && b.IsNumber():
		return scale(o, a, b)
	default:
		return Value{}, true
	}
}

// retype computes on ticks as integers and calls the result a value of kind.
func retype(o operator, a, b Value, kind Kind) (Value, bool) {
	v, ok := integers(o, int64(a.bits), int64(b.bits))
	if v.kind == Int {
		v.kind = kind
	}
	return v, ok
}

func scale(o operator, d, by Value) (Value, bool) {
	if d.kind != Duration {
		return Value{}, true
	}
	if by.kind == Int && !by.big {
		return retype(o, d, by, Duration)
	}
	f := doubles(o, float64(int64(d.bits)), by.float()).Double()
	if whole, ok := wholeValue(math.Trunc(f)); ok && !whole.big {
		return MakeTicks(int64(whole.bits)), true
	}
	return Value{}, true
}

// Negate returns -v.
func Negate(v Value) Value {
	switch {
	case v.kind == Double:
		return MakeDouble(-v.Double())
	case v.kind == Int && v.big:
		return MakeDouble(-v.float())
	case v.kind == Int || v.kind == Duration:
		if int64(v.bits) == math.MinInt64 {
			return Value{}
		}
		v.bits, v.width = -v.bits, Widest
		return v
	default:
		return Value{}
	}
}
