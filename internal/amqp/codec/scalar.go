// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math"
	"time"
)

// Null reads the next value if it is null, or absent, and reports whether it was.
// Typed reads take null for the zero value; ask Null first where the two differ.
func (r *Reader) Null() bool {
	if r.peek() != codeNull {
		return false
	}
	r.take()
	return true
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	switch code, b := r.take(); code {
	case codeTrue:
		return true
	case codeBool:
		return b[0] != 0
	case codeFalse, codeNull:
	default:
		r.wrong(KindBool, code)
	}
	return false
}

// Ubyte reads a ubyte.
func (r *Reader) Ubyte() uint8 { return uint8(r.number(KindUbyte)) }

// Ushort reads a ushort.
func (r *Reader) Ushort() uint16 { return uint16(r.number(KindUshort)) }

// Uint reads a uint.
func (r *Reader) Uint() uint32 { return uint32(r.number(KindUint)) }

// Ulong reads a ulong.
func (r *Reader) Ulong() uint64 { return r.number(KindUlong) }

// Byte reads a byte.
func (r *Reader) Byte() int8 { return int8(r.number(KindByte)) }

// Short reads a short.
func (r *Reader) Short() int16 { return int16(r.number(KindShort)) }

// Int reads an int.
func (r *Reader) Int() int32 { return int32(r.number(KindInt)) }

// Long reads a long.
func (r *Reader) Long() int64 { return int64(r.number(KindLong)) }

// Float reads a float.
func (r *Reader) Float() float32 { return math.Float32frombits(uint32(r.number(KindFloat))) }

// Double reads a double.
func (r *Reader) Double() float64 { return math.Float64frombits(r.number(KindDouble)) }

// Char reads a char.
func (r *Reader) Char() rune { return rune(r.number(KindChar)) }

// Timestamp reads a timestamp; null is the zero Time.
func (r *Reader) Timestamp() time.Time {
	if r.Null() {
		return time.Time{}
	}
	ms := r.number(KindTimestamp)
	if r.err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

// UUID reads a uuid.
func (r *Reader) UUID() (id [16]byte) {
	switch code, b := r.take(); code {
	case codeUUID:
		copy(id[:], b)
	case codeNull:
	default:
		r.wrong(KindUUID, code)
	}
	return id
}

// Binary reads a binary without copying it. Null is nil.
func (r *Reader) Binary() []byte {
	code, b := r.take()
	switch kinds[code] {
	case KindBinary:
		return content(code, b)
	case KindNull:
	default:
		r.wrong(KindBinary, code)
	}
	return nil
}

// Text reads a string or a symbol without copying it. Senders mix the two, in map
// keys above all, so that no reader here insists on one. Null is nil.
func (r *Reader) Text() []byte {
	code, b := r.take()
	switch kinds[code] {
	case KindString, KindSymbol:
		return content(code, b)
	case KindNull:
	default:
		r.wrong(KindString, code)
	}
	return nil
}

// Str reads a string or a symbol. The result is a copy and may be kept.
func (r *Reader) Str() string { return string(r.Text()) }

// number reads a value of fixed width of that kind in any of its encodings;
// signed ones are sign-extended.
func (r *Reader) number(want Kind) uint64 {
	code, b := r.take()
	if kinds[code] == want {
		return fixed(code, b)
	}
	if code != codeNull {
		r.wrong(want, code)
	}
	return 0
}

// fixed decodes data of at most eight bytes. The short encodings of signed types
// and byte itself are sign-extended, so that a number is the same in all of them.
func fixed(code byte, b []byte) uint64 {
	switch len(b) {
	case 0:
		if code == codeTrue {
			return 1
		}
		return 0
	case 1:
		switch code {
		case codeByte, codeInt8, codeLong8:
			return uint64(int8(b[0]))
		}
		return uint64(b[0])
	case 2:
		v := binary.BigEndian.Uint16(b)
		if code == codeShort {
			return uint64(int16(v))
		}
		return uint64(v)
	case 4:
		v := binary.BigEndian.Uint32(b)
		if code == codeInt {
			return uint64(int32(v))
		}
		return uint64(v)
	default:
		return binary.BigEndian.Uint64(b)
	}
}

// content strips the length off data of variable width.
func content(code byte, data []byte) []byte {
	if code>>4 == 0xa {
		return data[1:]
	}
	return data[4:]
}
