// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"
)

var (
	someTime = time.UnixMilli(1311704463521).UTC()
	someID   = [16]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
)

// encodings pairs values with their only right encoding: the shortest one. The
// bytes are from the specification, not from this package.
var encodings = []struct {
	name  string
	value Value
	want  string
}{
	{"null", Value{}, "40"},
	{"true", Bool(true), "41"},
	{"false", Bool(false), "42"},
	{"ubyte", Ubyte(255), "50ff"},
	{"ushort", Ushort(0x1234), "601234"},
	{"uint 0", Uint(0), "43"},
	{"uint 255", Uint(255), "52ff"},
	{"uint 256", Uint(256), "7000000100"},
	{"ulong 0", Ulong(0), "44"},
	{"ulong 255", Ulong(255), "53ff"},
	{"ulong max", Ulong(math.MaxUint64), "80ffffffffffffffff"},
	{"byte", Byte(-1), "51ff"},
	{"short", Short(-2), "61fffe"},
	{"int -128", Int(-128), "5480"},
	{"int 128", Int(128), "7100000080"},
	{"int min", Int(math.MinInt32), "7180000000"},
	{"long 127", Long(127), "557f"},
	{"long 128", Long(128), "810000000000000080"},
	{"long -1", Long(-1), "55ff"},
	{"int -1", Int(-1), "54ff"},
	{"long -129", Long(-129), "81ffffffffffffff7f"},
	{"float", Float(1.5), "723fc00000"},
	{"double", Double(-2), "82c000000000000000"},
	{"char", Char('€'), "73000020ac"},
	{"timestamp", Timestamp(someTime), "830000013167adb8a1"},
	{"uuid", UUID(someID), "9800112233445566778899aabbccddeeff"},
	{"binary", Binary([]byte{1, 2}), "a0020102"},
	{"empty binary", Binary(nil), "a000"},
	{"long binary", Binary(make([]byte, 256)), "b000000100" + strings.Repeat("00", 256)},
	{"string", String("é"), "a102c3a9"},
	{"empty string", String(""), "a100"},
	{"long string", String(strings.Repeat("a", 256)), "b100000100" + strings.Repeat("61", 256)},
	{"symbol", Symbol("ab"), "a3026162"},
	{"long symbol", Symbol(strings.Repeat("a", 300)), "b30000012c" + strings.Repeat("61", 300)},
	{"empty list", List(), "45"},
	{"list", List(Uint(1), Value{}), "c004025201" + "40"},
	{"long list", List(Binary(make([]byte, 252)), Uint(0)), "d00000010300000002a0fc" + strings.Repeat("00", 252) + "43"},
	{"empty map", Map(), "c10100"},
	{"map", Map(Symbol("k"), Int(1)), "c10602a3016b5401"},
	{"described", Describe(0x24, List()), "00532445"},
	{"described by a large code", Describe(0x137000000C, String("s")), "0080000000137000000ca10173"},
}

func TestAppendValueIsShortest(t *testing.T) {
	for _, tt := range encodings {
		t.Run(tt.name, func(t *testing.T) {
			prefix := []byte("before")
			got := AppendValue(prefix, tt.value)
			if !bytes.HasPrefix(got, prefix) {
				t.Fatalf("append lost what was there: % x", got)
			}
			if got := hex.EncodeToString(got[len(prefix):]); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestAppendLong8IsNeverShort(t *testing.T) {
	if got, want := hex.EncodeToString(AppendLong8(nil, 1)), "810000000000000001"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAppendDescriptor(t *testing.T) {
	for code, want := range map[uint64]string{
		0:              "005300",
		0x70:           "005370",
		0xff:           "0053ff",
		0x100:          "00800000000000000100",
		0x468C00000004: "00800000468c00000004",
	} {
		if got := hex.EncodeToString(AppendDescriptor(nil, code)); got != want {
			t.Errorf("%#x: got %s, want %s", code, got, want)
		}
	}
}

func TestAppendArrays(t *testing.T) {
	long := strings.Repeat("x", 256)
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"longs", AppendLongArray(nil, []int64{1, -1}), "e01202810000000000000001ffffffffffffffff"},
		{"ints", AppendIntArray(nil, []int32{1, -1}), "e00a0271" + "00000001" + "ffffffff"},
		{"no longs", AppendLongArray(nil, nil), "e0020081"},
		{"timestamps", AppendTimestampArray(nil, []time.Time{someTime}), "e00a01830000013167adb8a1"},
		{"uuids", AppendUUIDArray(nil, [][16]byte{someID}), "e0120198" + hex.EncodeToString(someID[:])},
		{"strings", AppendStringArray(nil, []string{"a", ""}), "e00502a1016100"},
		{"symbols", AppendSymbolArray(nil, []string{"PLAIN"}), "e00801a305504c41494e"},
		{"a long string", AppendStringArray(nil, []string{long, "a"}),
			"f00000010e00000002b100000100" + strings.Repeat("78", 256) + "0000000161"},
	}
	for _, tt := range tests {
		if got := hex.EncodeToString(tt.got); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestListsGrowWhenTheyMust(t *testing.T) {
	for _, n := range []int{1, 254, 255, 256, 70000} {
		b, at := BeginList([]byte{0xaa})
		for range n {
			b = AppendBool(b, true)
		}
		b = EndList(b, at, n)
		r := NewReader(b[1:])
		in := r.List()
		got := 0
		for in.More() {
			if in.Bool() {
				got++
			}
		}
		if b[0] != 0xaa || got != n || in.Err() != nil || r.Err() != nil || r.Len() != 0 {
			t.Errorf("list of %d: read %d, errors %v %v, %d bytes left", n, got, in.Err(), r.Err(), r.Len())
		}
	}
}
