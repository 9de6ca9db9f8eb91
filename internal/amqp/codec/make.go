// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math"
	"time"
)

// AppendValue appends v with its own type, numbers in the shortest encoding,
// compound values unchanged.
func AppendValue(dst []byte, v Value) []byte {
	switch v.kind {
	case KindNull:
		return AppendNull(dst)
	case KindBool:
		return AppendBool(dst, v.num != 0)
	case KindUbyte:
		return AppendUbyte(dst, uint8(v.num))
	case KindUshort:
		return AppendUshort(dst, uint16(v.num))
	case KindUint:
		return AppendUint(dst, uint32(v.num))
	case KindUlong:
		return AppendUlong(dst, v.num)
	case KindByte:
		return appendByte(dst, int8(v.num))
	case KindShort:
		return appendShort(dst, int16(v.num))
	case KindInt:
		return AppendInt(dst, int32(v.num))
	case KindLong:
		return AppendLong(dst, int64(v.num))
	case KindFloat: // the bits, as a signalling NaN does not survive a conversion
		return binary.BigEndian.AppendUint32(append(dst, codeFloat), uint32(v.num))
	case KindDouble:
		return binary.BigEndian.AppendUint64(append(dst, codeDouble), v.num)
	case KindDecimal32:
		return append(append(dst, codeDecimal32), v.data...)
	case KindDecimal64:
		return append(append(dst, codeDecimal64), v.data...)
	case KindDecimal128:
		return append(append(dst, codeDecimal128), v.data...)
	case KindChar:
		return appendChar(dst, rune(v.num))
	case KindTimestamp:
		return appendTimestampMilli(dst, int64(v.num))
	case KindUUID:
		return append(append(dst, codeUUID), v.data...)
	case KindBinary:
		return append(appendSize(dst, codeBinary8, len(v.data)), v.data...)
	case KindString:
		return append(appendSize(dst, codeString8, len(v.data)), v.data...)
	case KindSymbol:
		return append(appendSize(dst, codeSymbol8, len(v.data)), v.data...)
	default:
		return append(append(dst, v.code), v.data...)
	}
}

// ParseValue returns the value that b consists of, completely checked.
func ParseValue(b []byte) (Value, error) {
	r := NewReader(b)
	r.Check()
	if r.err == nil && len(r.rest) > 0 {
		r.err = ErrCount
	}
	if r.err != nil {
		return Value{}, r.err
	}
	return makeValue(b[0], b[1:]), nil
}

// Bool returns a boolean Value.
func Bool(v bool) Value {
	if v {
		return Value{kind: KindBool, num: 1}
	}
	return Value{kind: KindBool}
}

// Ubyte returns a ubyte Value.
func Ubyte(v uint8) Value { return Value{kind: KindUbyte, num: uint64(v)} }

// Ushort returns a ushort Value.
func Ushort(v uint16) Value { return Value{kind: KindUshort, num: uint64(v)} }

// Uint returns a uint Value.
func Uint(v uint32) Value { return Value{kind: KindUint, num: uint64(v)} }

// Ulong returns a ulong Value.
func Ulong(v uint64) Value { return Value{kind: KindUlong, num: v} }

// Byte returns a byte Value.
func Byte(v int8) Value { return Value{kind: KindByte, num: uint64(v)} }

// Short returns a short Value.
func Short(v int16) Value { return Value{kind: KindShort, num: uint64(v)} }

// Int returns an int Value.
func Int(v int32) Value { return Value{kind: KindInt, num: uint64(v)} }

// Long returns a long Value.
func Long(v int64) Value { return Value{kind: KindLong, num: uint64(v)} }

// Float returns a float Value.
func Float(v float32) Value { return Value{kind: KindFloat, num: uint64(math.Float32bits(v))} }

// Double returns a double Value.
func Double(v float64) Value { return Value{kind: KindDouble, num: math.Float64bits(v)} }

// Char returns a char Value.
func Char(v rune) Value { return Value{kind: KindChar, num: uint64(uint32(v))} }

// Timestamp returns a timestamp Value, precise to the millisecond.
func Timestamp(t time.Time) Value {
	return Value{kind: KindTimestamp, num: uint64(t.UnixMilli())}
}

// UUID returns a uuid Value; id is in the byte order of RFC 9562.
func UUID(id [16]byte) Value { return Value{kind: KindUUID, data: string(id[:])} }

// Binary returns a binary Value, which shares b.
func Binary(b []byte) Value { return Value{kind: KindBinary, data: stringOf(b)} }

// String returns a string Value.
func String(s string) Value { return Value{kind: KindString, data: s} }

// Symbol returns a symbol Value.
func Symbol(s string) Value { return Value{kind: KindSymbol, data: s} }

// List returns a list Value.
func List(vs ...Value) Value {
	b, at := BeginList(nil)
	for _, v := range vs {
		b = AppendValue(b, v)
	}
	b = EndList(b, at, len(vs))
	return makeValue(b[0], b[1:])
}

// Map returns a map Value from keys and values in turn. It panics if a key has no
// value, which is a mistake in the program.
func Map(pairs ...Value) Value {
	if len(pairs)%2 != 0 {
		panic("codec: map with a key without value")
	}
	b, at := BeginMap(nil)
	for _, v := range pairs {
		b = AppendValue(b, v)
	}
	b = EndMap(b, at, len(pairs)/2)
	return makeValue(b[0], b[1:])
}

// Raw returns the Value encoded in b, which our own code wrote: an array, say. It
// panics if b is not exactly one value.
func Raw(b []byte) Value {
	v, err := ParseValue(b)
	if err != nil {
		panic("codec: raw value: " + err.Error())
	}
	return v
}

// Describe returns inner described by a code.
func Describe(code uint64, inner Value) Value {
	b := AppendValue(AppendDescriptor(nil, code), inner)
	return makeValue(b[0], b[1:])
}
