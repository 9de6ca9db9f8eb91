// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

// Value is one AMQP value of any type. The zero Value is null.
//
// A Value is a view: it shares the bytes that it was read from. Clone a Value
// that must outlive them.
//
// Its four fields are of four words because that is the most the compiler keeps in
// registers; a Value that is copied through memory costs several times as much to
// read.
type Value struct {
	kind Kind
	code byte   // constructor of a compound value
	num  uint64 // numbers, sign-extended or as bits; booleans; milliseconds
	// data is the content of texts, binaries, uuids and decimals. For compound and
	// described values it is everything after the constructor, so that they are
	// appended again unchanged.
	data string
}

func makeValue(code byte, data []byte) Value {
	switch kind := kinds[code]; kind {
	case KindNull:
		return Value{}
	case KindBinary, KindString, KindSymbol:
		return Value{kind: kind, data: stringOf(content(code, data))}
	case KindUUID, KindDecimal32, KindDecimal64, KindDecimal128:
		return Value{kind: kind, data: stringOf(data)}
	case KindList, KindMap, KindArray, KindDescribed:
		return Value{kind: kind, code: code, data: stringOf(data)}
	case KindBool:
		return Bool(fixed(code, data) != 0)
	default:
		return Value{kind: kind, num: fixed(code, data)}
	}
}

// stringOf returns b as a string without copying; see the assumptions of the
// package.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns the bytes of s without copying; they must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// Kind returns the type of v.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Bool returns a boolean.
func (v Value) Bool() (b, ok bool) { return v.num != 0, v.kind == KindBool }

// Int returns a number of any integer type, if it fits.
func (v Value) Int() (n int64, ok bool) {
	switch v.kind {
	case KindByte, KindShort, KindInt, KindLong, KindUbyte, KindUshort, KindUint:
		return int64(v.num), true
	case KindUlong:
		if v.num <= math.MaxInt64 {
			return int64(v.num), true
		}
	}
	return 0, false
}

// Uint returns a number of any integer type, if it is not negative.
func (v Value) Uint() (n uint64, ok bool) {
	switch v.kind {
	case KindUbyte, KindUshort, KindUint, KindUlong:
		return v.num, true
	case KindByte, KindShort, KindInt, KindLong:
		if int64(v.num) >= 0 {
			return v.num, true
		}
	}
	return 0, false
}

// Float returns a float or double.
func (v Value) Float() (f float64, ok bool) {
	switch v.kind {
	case KindFloat:
		return float64(math.Float32frombits(uint32(v.num))), true
	case KindDouble:
		return math.Float64frombits(v.num), true
	}
	return 0, false
}

// Char returns a char.
func (v Value) Char() (c rune, ok bool) {
	if v.kind != KindChar {
		return 0, false
	}
	return rune(v.num), true
}

// Str returns a string or a symbol, sharing its bytes; see [Value].
func (v Value) Str() (s string, ok bool) {
	if v.kind != KindString && v.kind != KindSymbol {
		return "", false
	}
	return v.data, true
}

// Bytes returns a binary, or the bytes of a string or symbol, sharing them.
func (v Value) Bytes() (b []byte, ok bool) {
	switch v.kind {
	case KindBinary, KindString, KindSymbol:
		return bytesOf(v.data), true
	}
	return nil, false
}

// Time returns a timestamp.
func (v Value) Time() (t time.Time, ok bool) {
	if v.kind != KindTimestamp {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(v.num)), true
}

// UUID returns a uuid, in the byte order of RFC 9562.
func (v Value) UUID() (id [16]byte, ok bool) {
	if v.kind != KindUUID {
		return id, false
	}
	copy(id[:], v.data)
	return id, true
}

// Elements returns a Reader of the values in a list or array, or of the keys and
// values of a map in turn. Other values have none.
func (v Value) Elements() Reader {
	switch v.kind {
	case KindList, KindMap, KindArray:
		in, elem, err := elements(v.code, bytesOf(v.data), maxEmpty)
		return Reader{rest: in.rest, err: err, left: in.left, elem: elem}
	}
	return Reader{}
}

// List yields the values of a list or array. It ends early at an invalid
// encoding; use Elements to get the error, or Check before.
func (v Value) List() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		r := v.Elements()
		for v.kind != KindMap && r.More() {
			e := r.Value()
			if r.err != nil || !yield(e) {
				return
			}
		}
	}
}

// Map yields the keys and values of a map, in the order they came. It ends
// early at an invalid encoding, like List.
func (v Value) Map() iter.Seq2[Value, Value] {
	return func(yield func(k, e Value) bool) {
		r := v.Elements()
		for v.kind == KindMap && r.More() {
			k, e := r.Value(), r.Value()
			if r.err != nil || !yield(k, e) {
				return
			}
		}
	}
}

// Lookup returns the value of a map under a key that is a string or symbol.
func (v Value) Lookup(key string) (Value, bool) {
	if v.kind != KindMap {
		return Value{}, false
	}
	r := v.Elements()
	for r.More() {
		k, e := r.Value(), r.Value()
		if s, ok := k.Str(); ok && s == key && r.err == nil {
			return e, true
		}
	}
	return Value{}, false
}

// Described returns descriptor and inner value of a described value.
func (v Value) Described() (descriptor, inner Value, ok bool) {
	if v.kind != KindDescribed {
		return Value{}, Value{}, false
	}
	r := Reader{rest: bytesOf(v.data), left: 2}
	descriptor, inner = r.Value(), r.Value()
	return descriptor, inner, r.err == nil
}

// Check reports what is wrong inside a compound value. Values of a Reader have
// their own extent checked, but not yet what they contain.
func (v Value) Check() error {
	var r Reader
	empty := 0
	switch v.kind {
	case KindDescribed:
		r = Reader{rest: bytesOf(v.data), left: 2}
		r.check(maxDepth-1, &empty)
		r.check(maxDepth-1, &empty)
	case KindList, KindMap, KindArray:
		r = Reader{rest: bytesOf(v.data), left: 1, elem: v.code}
		r.check(maxDepth, &empty)
	}
	return r.err
}

// Clone returns a Value that shares nothing.
func (v Value) Clone() Value {
	v.data = strings.Clone(v.data)
	return v
}

// String returns v as text for people: the content of texts, decimal numbers,
// UUIDs in their usual form, bytes in hexadecimal, times in RFC 3339. Compound
// values show their type and size only.
func (v Value) String() string {
	switch v.kind {
	case KindNull:
		return "null"
	case KindBool:
		return strconv.FormatBool(v.num != 0)
	case KindUbyte, KindUshort, KindUint, KindUlong:
		return strconv.FormatUint(v.num, 10)
	case KindByte, KindShort, KindInt, KindLong:
		return strconv.FormatInt(int64(v.num), 10)
	case KindFloat:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v.num))), 'g', -1, 32)
	case KindDouble:
		return strconv.FormatFloat(math.Float64frombits(v.num), 'g', -1, 64)
	case KindChar:
		return string(rune(v.num))
	case KindTimestamp:
		return time.UnixMilli(int64(v.num)).UTC().Format("2006-01-02T15:04:05.000Z07:00")
	case KindUUID:
		b := v.data
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	case KindString, KindSymbol:
		return v.data
	case KindBinary, KindDecimal32, KindDecimal64, KindDecimal128:
		return hex.EncodeToString(bytesOf(v.data))
	default:
		return fmt.Sprintf("%v of %d bytes", v.kind, len(v.data))
	}
}
