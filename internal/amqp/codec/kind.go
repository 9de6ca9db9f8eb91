// SPDX-License-Identifier: Apache-2.0

package codec

// Kind is the AMQP type of a value [AMQP 1.6]. The zero Kind is null.
type Kind uint8

// The primitive types, and described values of any kind.
const (
	KindNull Kind = iota
	KindBool
	KindUbyte
	KindUshort
	KindUint
	KindUlong
	KindByte
	KindShort
	KindInt
	KindLong
	KindFloat
	KindDouble
	KindDecimal32
	KindDecimal64
	KindDecimal128
	KindChar
	KindTimestamp
	KindUUID
	KindBinary
	KindString
	KindSymbol
	KindList
	KindMap
	KindArray
	KindDescribed
)

var kindNames = [...]string{
	"null", "boolean", "ubyte", "ushort", "uint", "ulong", "byte", "short", "int", "long",
	"float", "double", "decimal32", "decimal64", "decimal128", "char", "timestamp", "uuid",
	"binary", "string", "symbol", "list", "map", "array", "described",
}

// String returns the name of the type in the specification.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Constructors [AMQP 1.6]. They are on the wire and never change.
const (
	codeDescribed  = 0x00
	codeNull       = 0x40
	codeTrue       = 0x41
	codeFalse      = 0x42
	codeUint0      = 0x43
	codeUlong0     = 0x44
	codeList0      = 0x45
	codeUbyte      = 0x50
	codeByte       = 0x51
	codeUint8      = 0x52
	codeUlong8     = 0x53
	codeInt8       = 0x54
	codeLong8      = 0x55
	codeBool       = 0x56
	codeUshort     = 0x60
	codeShort      = 0x61
	codeUint       = 0x70
	codeInt        = 0x71
	codeFloat      = 0x72
	codeChar       = 0x73
	codeDecimal32  = 0x74
	codeUlong      = 0x80
	codeLong       = 0x81
	codeDouble     = 0x82
	codeTimestamp  = 0x83
	codeDecimal64  = 0x84
	codeDecimal128 = 0x94
	codeUUID       = 0x98
	codeBinary8    = 0xa0
	codeString8    = 0xa1
	codeSymbol8    = 0xa3
	codeBinary32   = 0xb0
	codeString32   = 0xb1
	codeSymbol32   = 0xb3
	codeList8      = 0xc0
	codeMap8       = 0xc1
	codeList32     = 0xd0
	codeMap32      = 0xd1
	codeArray8     = 0xe0
	codeArray32    = 0xf0
)

// kinds maps constructors to kinds. Codes that do not exist map to null like
// 0x40 itself; see known.
var kinds = [256]Kind{
	codeDescribed: KindDescribed,
	codeTrue:      KindBool, codeFalse: KindBool, codeBool: KindBool,
	codeUbyte: KindUbyte, codeUshort: KindUshort,
	codeUint0: KindUint, codeUint8: KindUint, codeUint: KindUint,
	codeUlong0: KindUlong, codeUlong8: KindUlong, codeUlong: KindUlong,
	codeByte: KindByte, codeShort: KindShort,
	codeInt8: KindInt, codeInt: KindInt,
	codeLong8: KindLong, codeLong: KindLong,
	codeFloat: KindFloat, codeDouble: KindDouble,
	codeDecimal32: KindDecimal32, codeDecimal64: KindDecimal64, codeDecimal128: KindDecimal128,
	codeChar: KindChar, codeTimestamp: KindTimestamp, codeUUID: KindUUID,
	codeBinary8: KindBinary, codeBinary32: KindBinary,
	codeString8: KindString, codeString32: KindString,
	codeSymbol8: KindSymbol, codeSymbol32: KindSymbol,
	codeList0: KindList, codeList8: KindList, codeList32: KindList,
	codeMap8: KindMap, codeMap32: KindMap,
	codeArray8: KindArray, codeArray32: KindArray,
}

// known reports whether code is a constructor of the specification.
func known(code byte) bool { return code == codeNull || kinds[code] != KindNull }
