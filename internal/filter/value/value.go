// SPDX-License-Identifier: Apache-2.0

package value

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a [Value].
type Kind uint8

// The kinds of values. The zero Kind is Unknown.
const (
	Unknown  Kind = iota // no value: a property that is not there, or a result of one
	Null                 // a value that is null
	Bool                 // TRUE or FALSE
	Int                  // any integer of the wire, up to 64 bits
	Double               // float and double
	String               // string and symbol
	Time                 // an instant, to 100 ns
	Duration             // a time span, to 100 ns
	UUID                 // 16 bytes
	Binary               // bytes; they have no literal, but equal bytes are equal
	Opaque               // present, but not usable in this language: decimals, maps
)

var kindNames = [...]string{"unknown", "null", "boolean", "integer", "double", "string", "dateTime", "duration", "uuid", "binary", "opaque"}

// String returns the name of the kind in the words of error messages.
func (k Kind) String() string { return kindNames[k] }

// Width distinguishes the wire types that share one Kind, so that an action
// that counts up an AMQP int writes an int again. Evaluation ignores it.
type Width uint8

// The widths of integers and doubles. The zero Width is the widest of its Kind.
const (
	Widest Width = iota
	Int32
	Int16
	Int8
	Uint64
	Uint32
	Uint16
	Uint8
	Float32
)

// Value is one value of the language. The zero Value is unknown. A String shares
// memory with its source.
//
// Methods that every comparison calls have pointer receivers: the compiler would
// copy the 48 bytes of a Value for each such call, even where it inlines it.
type Value struct {
	kind  Kind
	width Width
	big   bool   // Int only: bits is a uint64 above math.MaxInt64
	bits  uint64 // Bool, Int, Double, Time and Duration (ticks); first half of UUID
	low   uint64 // second half of UUID
	text  string // String, Binary
}

// ticksPerSecond is the resolution of Time and Duration: 100 ns, the resolution
// of the .NET types behind dateTime and duration, so that their extremes fit.
const (
	ticksPerSecond = 10_000_000
	ticksPerMilli  = 10_000
	nanosPerTick   = 100
)

// Constructors, one per kind.

// MakeNull returns the null value.
func MakeNull() Value { return Value{kind: Null} }

// MakeOpaque returns a value that exists and equals nothing.
func MakeOpaque() Value { return Value{kind: Opaque} }

// MakeBool returns TRUE or FALSE.
func MakeBool(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.bits = 1
	}
	return v
}

// MakeInt returns an integer.
func MakeInt(n int64) Value { return Value{kind: Int, bits: uint64(n)} }

// MakeUint returns an unsigned integer.
func MakeUint(n uint64) Value { return Value{kind: Int, bits: n, big: n > math.MaxInt64} }

// MakeDouble returns a floating-point number.
func MakeDouble(f float64) Value { return Value{kind: Double, bits: math.Float64bits(f)} }

// MakeString returns a string.
func MakeString(s string) Value { return Value{kind: String, text: s} }

// MakeBinary returns a binary value; its bytes are passed as a string.
func MakeBinary(b string) Value { return Value{kind: Binary, text: b} }

// MakeTime returns an instant.
func MakeTime(t time.Time) Value {
	return Value{kind: Time, bits: uint64(t.Unix()*ticksPerSecond + int64(t.Nanosecond()/nanosPerTick))}
}

// makeMilli returns the instant of an AMQP timestamp, in milliseconds since
// 1970. Times outside the range of Time are clamped.
func makeMilli(ms int64) Value {
	const limit = math.MaxInt64 / ticksPerMilli
	return Value{kind: Time, bits: uint64(max(-limit, min(ms, limit)) * ticksPerMilli)}
}

// MakeDuration returns a time span.
func MakeDuration(d time.Duration) Value { return MakeTicks(int64(d / nanosPerTick)) }

// MakeTicks returns a time span of n times 100 ns. Its range is larger than
// that of time.Duration: the largest value means "no expiry" in Service Bus.
func MakeTicks(n int64) Value { return Value{kind: Duration, bits: uint64(n)} }

// MakeUUID returns a uuid.
func MakeUUID(id [16]byte) Value {
	v := Value{kind: UUID}
	for i := range 8 {
		v.bits = v.bits<<8 | uint64(id[i])
		v.low = v.low<<8 | uint64(id[8+i])
	}
	return v
}

// WithWidth returns v marked as having come from, or going to, a wire type of w.
func (v Value) WithWidth(w Width) Value { v.width = w; return v }

// Kind returns the type of v.
func (v *Value) Kind() Kind { return v.kind }

// Width returns the wire width of a number.
func (v Value) Width() Width { return v.width }

// Accessors. Each answers the zero value when v is of another kind.

// Bool returns the value of a Bool.
func (v Value) Bool() bool { return v.kind == Bool && v.bits == 1 }

// Int returns the value of an Int; ok is false when it needs 64 unsigned bits.
func (v Value) Int() (n int64, ok bool) { return int64(v.bits), v.kind == Int && !v.big }

// Uint returns the value of an Int; ok is false when it is negative.
func (v Value) Uint() (n uint64, ok bool) {
	return v.bits, v.kind == Int && (v.big || int64(v.bits) >= 0)
}

// Double returns the value of a Double.
func (v Value) Double() float64 {
	if v.kind != Double {
		return 0
	}
	return math.Float64frombits(v.bits)
}

// Str returns the value of a String, or the bytes of a Binary.
func (v *Value) Str() string { return v.text }

// Time returns the value of a Time, in UTC.
func (v Value) Time() time.Time {
	if v.kind != Time {
		return time.Time{}
	}
	ticks := int64(v.bits)
	// Both parts keep the sign of ticks; time.Unix takes a negative fraction.
	return time.Unix(ticks/ticksPerSecond, ticks%ticksPerSecond*nanosPerTick).UTC()
}

// Ticks returns the value of a Duration in units of 100 ns, or of a Time in such
// units since 1970.
func (v Value) Ticks() int64 {
	if !v.isSpan() {
		return 0
	}
	return int64(v.bits)
}

// Duration returns the value of a Duration, clamped to the range of
// time.Duration.
func (v Value) Duration() time.Duration {
	if v.kind != Duration {
		return 0
	}
	const limit = math.MaxInt64 / nanosPerTick
	return time.Duration(max(-limit, min(v.Ticks(), limit)) * nanosPerTick)
}

// UUID returns the value of a UUID.
func (v Value) UUID() (id [16]byte) {
	if v.kind != UUID {
		return id
	}
	for i := range 8 {
		id[i] = byte(v.bits >> (56 - 8*i))
		id[8+i] = byte(v.low >> (56 - 8*i))
	}
	return id
}

// Known reports whether operators have something to work on.
func (v *Value) Known() bool { return v.kind > Null }

// String returns v as the language spells it, where it has a literal for it.
func (v Value) String() string {
	if v.kind == String {
		return "'" + strings.ReplaceAll(v.text, "'", "''") + "'"
	}
	return v.Text()
}

// Text returns v as plain text: a string without quotes, times and durations in
// ISO 8601.
func (v Value) Text() string {
	switch v.kind {
	case Null:
		return "NULL"
	case Bool:
		if v.bits == 1 {
			return "TRUE"
		}
		return "FALSE"
	case Int:
		if v.big {
			return strconv.FormatUint(v.bits, 10)
		}
		return strconv.FormatInt(int64(v.bits), 10)
	case Double:
		return formatDouble(v.Double())
	case String:
		return v.text
	case Time:
		return v.Time().Format("2006-01-02T15:04:05.9999999Z07:00")
	case Duration:
		return formatDuration(int64(v.bits))
	case UUID:
		return formatUUID(v.UUID())
	case Binary:
		return "0x" + hex.EncodeToString([]byte(v.text))
	default:
		return v.kind.String()
	}
}

// formatDouble writes f so that it reads as a double again, never as an integer.
func formatDouble(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") { // Inf and NaN have no literal
		return s
	}
	return s + ".0"
}

func formatUUID(id [16]byte) string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:], id[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
