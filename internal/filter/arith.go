// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"math"
	"math/bits"
)

// arithmetic applies o to two values. It reports false for a division of
// integers by zero. An operation without a meaning (unlike types) or beyond the
// range of 64 bits is unknown, so that no wrong number is ever compared.
func arithmetic(o op, a, b *Value) (Value, bool) {
	if !a.known() || !b.known() {
		return Value{}, true
	}
	switch {
	case a.kind == Int && b.kind == Int && !a.big && !b.big:
		return integers(o, int64(a.bits), int64(b.bits))
	case a.isNumber() && b.isNumber():
		return doubles(o, a.float(), b.float()), true
	case a.kind == String && b.kind == String && o == opAdd:
		return StringValue(a.text + b.text), true
	case a.isSpan() || b.isSpan():
		return spans(o, *a, *b)
	default:
		return Value{}, true
	}
}

func (v Value) isNumber() bool { return v.kind == Int || v.kind == Double }

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

func integers(o op, a, b int64) (Value, bool) {
	if o == opDiv || o == opMod {
		if b == 0 {
			return Value{}, false
		}
		if b == -1 && a == math.MinInt64 { // the only quotient that does not fit
			return Value{}, true
		}
	}
	switch o {
	case opAdd:
		sum := a + b
		return fits(sum, (a^sum)&(b^sum) >= 0), true
	case opSub:
		diff := a - b
		return fits(diff, (a^b)&(a^diff) >= 0), true
	case opMul:
		product, ok := multiply(a, b)
		return fits(product, ok), true
	case opDiv:
		return IntValue(a / b), true
	default:
		return IntValue(a % b), true
	}
}

func fits(n int64, ok bool) Value {
	if !ok {
		return Value{}
	}
	return IntValue(n)
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

func doubles(o op, a, b float64) Value {
	switch o {
	case opAdd:
		return DoubleValue(a + b)
	case opSub:
		return DoubleValue(a - b)
	case opMul:
		return DoubleValue(a * b)
	case opDiv:
		return DoubleValue(a / b)
	default:
		return DoubleValue(math.Mod(a, b))
	}
}

// spans is the arithmetic of instants and durations:
//
//	time - time = duration        time ± duration = time
//	duration ± duration           duration × number, duration ÷ number
//	duration ÷ duration = number
func spans(o op, a, b Value) (Value, bool) {
	switch {
	case o == opSub && a.kind == Time && b.kind == Time:
		return retype(o, a, b, Duration)
	case (o == opAdd || o == opSub) && a.kind == Time && b.kind == Duration:
		return retype(o, a, b, Time)
	case o == opAdd && a.kind == Duration && b.kind == Time:
		return retype(o, a, b, Time)
	case (o == opAdd || o == opSub || o == opMod) && a.kind == Duration && b.kind == Duration:
		return retype(o, a, b, Duration)
	case o == opDiv && a.kind == Duration && b.kind == Duration:
		return DoubleValue(float64(int64(a.bits)) / float64(int64(b.bits))), true
	case o == opMul && a.isNumber():
		return scale(o, b, a)
	case (o == opMul || o == opDiv) && b.isNumber():
		return scale(o, a, b)
	default:
		return Value{}, true
	}
}

// retype computes on ticks as integers and calls the result a value of kind.
func retype(o op, a, b Value, kind Kind) (Value, bool) {
	v, ok := integers(o, int64(a.bits), int64(b.bits))
	if v.kind == Int {
		v.kind = kind
	}
	return v, ok
}

func scale(o op, d, by Value) (Value, bool) {
	if d.kind != Duration {
		return Value{}, true
	}
	if by.kind == Int && !by.big {
		return retype(o, d, by, Duration)
	}
	f := doubles(o, float64(int64(d.bits)), by.float()).Double()
	if whole, ok := wholeValue(math.Trunc(f)); ok && !whole.big {
		return TicksValue(int64(whole.bits)), true
	}
	return Value{}, true
}

// negate returns -v.
func negate(v Value) Value {
	switch {
	case v.kind == Double:
		return DoubleValue(-v.Double())
	case v.kind == Int && v.big:
		return DoubleValue(-v.float())
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
