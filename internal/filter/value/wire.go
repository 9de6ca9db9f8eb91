// SPDX-License-Identifier: Apache-2.0

package value

import (
	"math"
	"time"
	"unsafe"

	"github.com/triagemq/triagemq/internal/amqp/codec"
)

// Descriptors that .NET clients use for types AMQP lacks. They are on the wire and
// never change.
const (
	descTimeSpan       = "com.microsoft:timespan"        // long, 100 ns
	descDateTimeOffset = "com.microsoft:datetime-offset" // long, 100 ns since year 1
	descURI            = "com.microsoft:uri"             // string
)

// ticksAtEpoch is 1970 on the scale that counts from year 1.
const ticksAtEpoch = 621_355_968_000_000_000

// FromWire returns an AMQP value as the language sees it. Strings share the bytes
// of v.
func FromWire(v codec.Value) (to Value) {
	to.Read(v)
	return to
}

// Read sets v, which must be zero, to the AMQP value from. It works in place
// because copying values is most of the cost of reading the properties of a
// message.
func (v *Value) Read(from codec.Value) {
	switch kind := from.Kind(); kind {
	case codec.KindNull:
		v.kind = Null
	case codec.KindString, codec.KindSymbol:
		v.kind = String
		v.text, _ = from.Str()
	case codec.KindByte, codec.KindShort, codec.KindInt, codec.KindLong,
		codec.KindUbyte, codec.KindUshort, codec.KindUint, codec.KindUlong:
		v.kind, v.width = Int, wireWidth[kind]
		n, fits := from.Int()
		v.bits = uint64(n)
		if !fits {
			v.bits, v.big = from.Uint()
		}
	case codec.KindFloat, codec.KindDouble:
		f, _ := from.Float()
		v.kind, v.width, v.bits = Double, wireWidth[kind], math.Float64bits(f)
	case codec.KindBool:
		v.kind = Bool
		if b, _ := from.Bool(); b {
			v.bits = 1
		}
	default:
		*v = fromOther(from)
	}
}

// ReadField sets v to a field of the properties section as text: ids of other
// types are converted to text, because expressions and correlation filters can
// only write strings.
func (v *Value) ReadField(from codec.Value) {
	if from.IsNull() {
		*v = MakeNull()
		return
	}
	text, ok := from.Str()
	if !ok {
		text = from.String()
	}
	*v = MakeString(text)
}

// fromOther reads the types that are rare in properties.
func fromOther(v codec.Value) Value {
	switch v.Kind() {
	case codec.KindChar:
		c, _ := v.Char()
		return charValue(c)
	case codec.KindTimestamp:
		t, _ := v.Time()
		return makeMilli(t.UnixMilli())
	case codec.KindUUID:
		id, _ := v.UUID()
		return MakeUUID(id)
	case codec.KindBinary:
		b, _ := v.Bytes()
		return MakeBinary(unsafe.String(unsafe.SliceData(b), len(b))) // messages never change
	case codec.KindDescribed:
		return fromDescribed(v)
	default:
		return MakeOpaque()
	}
}

// wireWidth returns the width of an AMQP type; a long is Widest.
var wireWidth = [...]Width{
	codec.KindInt: Int32, codec.KindShort: Int16, codec.KindByte: Int8,
	codec.KindUlong: Uint64, codec.KindUint: Uint32, codec.KindUshort: Uint16, codec.KindUbyte: Uint8,
	codec.KindFloat: Float32, codec.KindDescribed: Widest,
}

// charValue returns a string of one character, of ASCII without allocating.
func charValue(c rune) Value {
	if c >= 0 && int(c) < len(ascii) {
		return MakeString(ascii[c : c+1])
	}
	return MakeString(string(c))
}

var ascii = func() string {
	var b [128]byte
	for i := range b {
		b[i] = byte(i)
	}
	return string(b[:])
}()

func fromDescribed(v codec.Value) Value {
	descriptor, inner, _ := v.Described()
	name, _ := descriptor.Str()
	ticks, isInt := inner.Int()
	switch {
	case name == descTimeSpan && isInt:
		return MakeTicks(ticks)
	case name == descDateTimeOffset && isInt:
		return Value{kind: Time, bits: uint64(ticks - ticksAtEpoch)}
	case name == descURI && inner.Kind() == codec.KindString:
		return FromWire(inner)
	default:
		return MakeOpaque()
	}
}

// ToWire returns v as an AMQP value, in the type of its width. Unknown and
// opaque values become null.
func ToWire(v Value) codec.Value {
	switch v.kind {
	case Bool:
		return codec.Bool(v.Bool())
	case Int:
		return integerToWire(v)
	case Double:
		if v.width == Float32 {
			return codec.Float(float32(v.Double()))
		}
		return codec.Double(v.Double())
	case String:
		return codec.String(v.text)
	case Binary:
		return codec.Binary([]byte(v.text))
	case Time:
		return codec.Timestamp(time.UnixMilli(v.milli()))
	case Duration:
		b := codec.AppendSymbol([]byte{0}, descTimeSpan)
		return codec.Raw(codec.AppendLong(b, v.Ticks()))
	case UUID:
		return codec.UUID(v.UUID())
	default:
		return codec.Value{}
	}
}

func integerToWire(v Value) codec.Value {
	switch v.width {
	case Int32:
		return codec.Int(int32(v.bits))
	case Int16:
		return codec.Short(int16(v.bits))
	case Int8:
		return codec.Byte(int8(v.bits))
	case Uint32:
		return codec.Uint(uint32(v.bits))
	case Uint16:
		return codec.Ushort(uint16(v.bits))
	case Uint8:
		return codec.Ubyte(uint8(v.bits))
	}
	if v.width == Uint64 || v.big {
		return codec.Ulong(v.bits)
	}
	return codec.Long(int64(v.bits))
}

// milli returns a Time in milliseconds since 1970, rounded down.
func (v Value) milli() int64 {
	ticks := int64(v.bits)
	if ticks%ticksPerMilli < 0 {
		return ticks/ticksPerMilli - 1
	}
	return ticks / ticksPerMilli
}
