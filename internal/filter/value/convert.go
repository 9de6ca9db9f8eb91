// SPDX-License-Identifier: Apache-2.0

package value

import (
	"math"
	"strconv"
	"strings"
)

// Convert returns v as a value of that kind, if there is an obvious one.
func Convert(v Value, kind Kind) (Value, bool) {
	switch {
	case v.kind == kind:
		return v, true
	case !v.Known() || v.kind == Opaque || v.kind == Binary:
		return Value{}, false
	}
	switch kind {
	case String:
		return MakeString(v.Text()), true
	case Double:
		if v.kind == Int {
			return MakeDouble(v.float()), true
		}
	case Int:
		if v.kind == Double {
			whole, ok := wholeValue(math.Trunc(v.Double()))
			return whole, ok
		}
	}
	if v.kind != String {
		return Value{}, false
	}
	return fromText(strings.TrimSpace(v.text), kind)
}

// fromText reads a value of that kind.
func fromText(text string, kind Kind) (Value, bool) {
	var v Value
	var err error
	switch kind {
	case Int:
		v, err = parseInt(text, 64, Widest)
	case Double:
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		v = MakeDouble(f)
	case Bool:
		var b bool
		b, err = strconv.ParseBool(strings.ToLower(text))
		v = MakeBool(b)
	case Time:
		v, err = parseTime(text)
	case Duration:
		var ticks int64
		ticks, err = parseDuration(text)
		v = MakeTicks(ticks)
	case UUID:
		v, err = parseUUID(text)
	default:
		return Value{}, false
	}
	return v, err == nil
}

// As returns v with the type of an existing property where v can have it, so
// that SET n = n + 1 does not turn an AMQP int into a long, or a number into a
// string; otherwise v itself.
func (v Value) As(existing Value) Value {
	if !existing.Known() {
		return v
	}
	c, ok := Convert(v, existing.kind)
	if !ok {
		return v
	}
	if c.inRange(existing.width) {
		c.width = existing.width
	} else {
		c.width = Widest
	}
	return c
}

// inRange reports whether a number can be written in a wire type of width w.
func (v Value) inRange(w Width) bool {
	n, signed := v.Int()
	u, unsigned := v.Uint()
	switch w {
	case Int32:
		return signed && n == int64(int32(n))
	case Int16:
		return signed && n == int64(int16(n))
	case Int8:
		return signed && n == int64(int8(n))
	case Uint64:
		return unsigned
	case Uint32:
		return unsigned && u <= math.MaxUint32
	case Uint16:
		return unsigned && u <= math.MaxUint16
	case Uint8:
		return unsigned && u <= math.MaxUint8
	case Float32:
		return v.kind == Double && float64(float32(v.Double())) == v.Double()
	default:
		return true
	}
}
