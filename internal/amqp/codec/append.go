// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"math"
	"time"
)

// AppendNull appends null [AMQP 1.6.1].
func AppendNull(dst []byte) []byte { return append(dst, codeNull) }

// AppendBool appends v [AMQP 1.6.2].
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, codeTrue)
	}
	return append(dst, codeFalse)
}

// AppendUbyte appends v [AMQP 1.6.3].
func AppendUbyte(dst []byte, v uint8) []byte { return append(dst, codeUbyte, v) }

// AppendUshort appends v [AMQP 1.6.4].
func AppendUshort(dst []byte, v uint16) []byte {
	return append(dst, codeUshort, byte(v>>8), byte(v))
}

// AppendUint appends v in its shortest encoding [AMQP 1.6.5].
func AppendUint(dst []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(dst, codeUint0)
	case v <= math.MaxUint8:
		return append(dst, codeUint8, byte(v))
	default:
		return binary.BigEndian.AppendUint32(append(dst, codeUint), v)
	}
}

// AppendUlong appends v in its shortest encoding [AMQP 1.6.6].
func AppendUlong(dst []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(dst, codeUlong0)
	case v <= math.MaxUint8:
		return append(dst, codeUlong8, byte(v))
	default:
		return binary.BigEndian.AppendUint64(append(dst, codeUlong), v)
	}
}

// appendByte appends v [AMQP 1.6.7].
func appendByte(dst []byte, v int8) []byte { return append(dst, codeByte, byte(v)) }

// appendShort appends v [AMQP 1.6.8].
func appendShort(dst []byte, v int16) []byte {
	return append(dst, codeShort, byte(v>>8), byte(v))
}

// AppendInt appends v in its shortest encoding [AMQP 1.6.9].
func AppendInt(dst []byte, v int32) []byte {
	if v == int32(int8(v)) {
		return append(dst, codeInt8, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(dst, codeInt), uint32(v))
}

// AppendLong appends v in its shortest encoding [AMQP 1.6.10].
func AppendLong(dst []byte, v int64) []byte {
	if v == int64(int8(v)) {
		return append(dst, codeLong8, byte(v))
	}
	return AppendLong8(dst, v)
}

// AppendLong8 appends v in all its eight bytes, however small it is. The
// JavaScript SDK reads some longs, such as the end of a session lock, as a
// buffer of eight bytes.
func AppendLong8(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, codeLong), uint64(v))
}

// appendFloat appends v [AMQP 1.6.11].
func appendFloat(dst []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, codeFloat), math.Float32bits(v))
}

// appendDouble appends v [AMQP 1.6.12].
func appendDouble(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, codeDouble), math.Float64bits(v))
}

// appendChar appends v as UTF-32 [AMQP 1.6.16].
func appendChar(dst []byte, v rune) []byte {
	return binary.BigEndian.AppendUint32(append(dst, codeChar), uint32(v))
}

// AppendTimestamp appends t in milliseconds since 1970 [AMQP 1.6.17].
func AppendTimestamp(dst []byte, t time.Time) []byte {
	return appendTimestampMilli(dst, t.UnixMilli())
}

// appendTimestampMilli appends a timestamp in milliseconds since 1970.
func appendTimestampMilli(dst []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, codeTimestamp), uint64(ms))
}

// AppendUUID appends v, which is in the byte order of RFC 9562 [AMQP 1.6.18].
func AppendUUID(dst []byte, v [16]byte) []byte {
	return append(append(dst, codeUUID), v[:]...)
}

// AppendBinary appends v; nil is an empty binary, not null [AMQP 1.6.19].
func AppendBinary(dst, v []byte) []byte {
	return append(appendSize(dst, codeBinary8, len(v)), v...)
}

// AppendString appends v, which is UTF-8 [AMQP 1.6.20].
func AppendString(dst []byte, v string) []byte {
	return append(appendSize(dst, codeString8, len(v)), v...)
}

// AppendSymbol appends v, which is ASCII [AMQP 1.6.21].
func AppendSymbol(dst []byte, v string) []byte {
	return append(appendSize(dst, codeSymbol8, len(v)), v...)
}

// wide turns the constructor with 8-bit sizes into the one with 32-bit sizes:
// 0xa_ to 0xb_, 0xc_ to 0xd_, 0xe_ to 0xf_.
const wide = 0x10

// appendSize appends the constructor and length of n bytes of variable width;
// code is the constructor for short lengths.
func appendSize(dst []byte, code byte, n int) []byte {
	if n <= math.MaxUint8 {
		return append(dst, code, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, code+wide), uint32(n))
}

// AppendDescriptor begins a described value, which the caller appends next. Codes
// below 256 are always written 00 53 xx, the only form go-amqp understands.
func AppendDescriptor(dst []byte, code uint64) []byte {
	if code <= math.MaxUint8 {
		return append(dst, codeDescribed, codeUlong8, byte(code))
	}
	return binary.BigEndian.AppendUint64(append(dst, codeDescribed, codeUlong), code)
}
