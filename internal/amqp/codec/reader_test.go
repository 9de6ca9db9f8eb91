// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReaderTakesEveryEncoding(t *testing.T) {
	tests := []struct {
		in   string
		read func(*Reader) any
		want any
	}{
		{"41", func(r *Reader) any { return r.Bool() }, true},
		{"42", func(r *Reader) any { return r.Bool() }, false},
		{"5601", func(r *Reader) any { return r.Bool() }, true},
		{"5600", func(r *Reader) any { return r.Bool() }, false},
		{"50fe", func(r *Reader) any { return r.Ubyte() }, uint8(0xfe)},
		{"60fffe", func(r *Reader) any { return r.Ushort() }, uint16(0xfffe)},
		{"43", func(r *Reader) any { return r.Uint() }, uint32(0)},
		{"5280", func(r *Reader) any { return r.Uint() }, uint32(128)},
		{"7000000080", func(r *Reader) any { return r.Uint() }, uint32(128)},
		{"44", func(r *Reader) any { return r.Ulong() }, uint64(0)},
		{"53ff", func(r *Reader) any { return r.Ulong() }, uint64(255)},
		{"8000000000000000ff", func(r *Reader) any { return r.Ulong() }, uint64(255)},
		{"51ff", func(r *Reader) any { return r.Byte() }, int8(-1)},
		{"61fffe", func(r *Reader) any { return r.Short() }, int16(-2)},
		{"54fd", func(r *Reader) any { return r.Int() }, int32(-3)},
		{"71fffffffd", func(r *Reader) any { return r.Int() }, int32(-3)},
		{"55fc", func(r *Reader) any { return r.Long() }, int64(-4)},
		{"81fffffffffffffffc", func(r *Reader) any { return r.Long() }, int64(-4)},
		{"723fc00000", func(r *Reader) any { return r.Float() }, float32(1.5)},
		{"82c000000000000000", func(r *Reader) any { return r.Double() }, float64(-2)},
		{"73000020ac", func(r *Reader) any { return r.Char() }, '€'},
		{"830000013167adb8a1", func(r *Reader) any { return r.Timestamp().UTC() }, someTime},
		{"9800112233445566778899aabbccddeeff", func(r *Reader) any { return r.UUID() }, someID},
		{"a0020102", func(r *Reader) any { return string(r.Binary()) }, "\x01\x02"},
		{"b0000000020102", func(r *Reader) any { return string(r.Binary()) }, "\x01\x02"},
		{"a1026162", func(r *Reader) any { return r.Str() }, "ab"},
		{"b1000000026162", func(r *Reader) any { return r.Str() }, "ab"},
		{"a3026162", func(r *Reader) any { return r.Str() }, "ab"},
		{"b3000000026162", func(r *Reader) any { return r.Str() }, "ab"},
	}
	for _, tt := range tests {
		r := NewReader(unhex(t, tt.in))
		got := tt.read(&r)
		if got != tt.want || r.Err() != nil || r.Len() != 0 {
			t.Errorf("%s: got %v, want %v; error %v, %d bytes left", tt.in, got, tt.want, r.Err(), r.Len())
		}
		null := NewReader([]byte{codeNull})
		if tt.read(&null); null.Err() != nil || null.Len() != 0 {
			t.Errorf("null instead of %s: error %v, %d bytes left", tt.in, null.Err(), null.Len())
		}
		list := NewReader([]byte{codeList0})
		if tt.read(&list); !errors.Is(list.Err(), ErrType) {
			t.Errorf("list instead of %s: error %v, want %v", tt.in, list.Err(), ErrType)
		}
		for n := range len(tt.in) / 2 {
			short := NewReader(unhex(t, tt.in)[:n])
			if tt.read(&short); !errors.Is(short.Err(), ErrShort) {
				t.Errorf("%d bytes of %s: error %v, want %v", n, tt.in, short.Err(), ErrShort)
			}
		}
	}
}

func TestNullIsReported(t *testing.T) {
	r := NewReader(unhex(t, "40 43"))
	if !r.Null() {
		t.Error("null not seen")
	}
	if r.Null() {
		t.Error("uint 0 taken for null")
	}
	if got := r.Uint(); got != 0 || r.Len() != 0 || r.Err() != nil {
		t.Errorf("after null: %d, %d bytes left, %v", got, r.Len(), r.Err())
	}
}

func TestNullTimeIsZero(t *testing.T) {
	r := NewReader(unhex(t, "40 830000000000000000"))
	if got := r.Timestamp(); !got.IsZero() {
		t.Errorf("null: %v, want the zero time", got)
	}
	if got := r.Timestamp(); !got.Equal(time.UnixMilli(0)) {
		t.Errorf("0 ms: %v, want 1970", got)
	}
}

func TestFirstErrorSticks(t *testing.T) {
	r := NewReader(unhex(t, "a10161 5201"))
	r.Uint()
	first := r.Err()
	if got := r.Uint(); got != 0 || r.Err() != first || first == nil {
		t.Errorf("after an error: read %d, error %v, want 0 and %v", got, r.Err(), first)
	}
	if r.More() {
		t.Error("More after an error")
	}
}

func TestAbsentFieldsAreNull(t *testing.T) {
	r := NewReader(unhex(t, "00 53 13 c0 03 01 5207 ff"))
	code, f := r.Composite()
	if code != 0x13 || f.Left() != 1 {
		t.Fatalf("code %#x with %d fields, want 0x13 with 1", code, f.Left())
	}
	if got := f.Uint(); got != 7 {
		t.Errorf("first field %d, want 7", got)
	}
	if got := f.Str(); got != "" || !f.Null() || f.Err() != nil {
		t.Errorf("absent fields: %q, error %v", got, f.Err())
	}
	if string(r.Rest()) != "\xff" || r.Err() != nil {
		t.Errorf("payload % x, error %v; want ff", r.Rest(), r.Err())
	}
}

func TestCompositeDescriptors(t *testing.T) {
	symbol := "a3" + "0e" + hex.EncodeToString([]byte("amqp:open:list"))
	for _, in := range []string{"00 53 10 45", "00 80 0000000000000010 45", "00" + symbol + "45"} {
		r := NewReader(unhex(t, in))
		if code, _ := r.Composite(); code != 0x10 || r.Err() != nil {
			t.Errorf("%s: code %#x, error %v; want open", in, code, r.Err())
		}
	}
	unknown := NewReader(unhex(t, "00 a3 01 78 45"))
	if code, _ := unknown.Composite(); code != 0 || unknown.Err() != nil {
		t.Errorf("unknown symbol: code %#x, error %v; want 0", code, unknown.Err())
	}
	absent := NewReader([]byte{codeNull})
	if code, f := absent.Composite(); code != 0 || absent.Err() != nil || !f.Null() {
		t.Errorf("null: code %#x, error %v", code, absent.Err())
	}
}

func TestMultiple(t *testing.T) {
	tests := []struct{ in, want string }{
		{"40", ""},
		{"a30161", "a"},
		{"e0 06 02 a3 0161 0162", "a,b"},
		{"f0 00000009 00000002 a3 0161 0162", "a,b"},
		{"e0 02 00 a3", ""},
		{"e0 01 00", ""},
	}
	for _, tt := range tests {
		r := NewReader(unhex(t, tt.in))
		var got []string
		in := r.Multiple()
		for in.More() {
			got = append(got, in.Str())
		}
		if strings.Join(got, ",") != tt.want || r.Err() != nil || in.Err() != nil {
			t.Errorf("%s: %q, errors %v %v; want %q", tt.in, got, r.Err(), in.Err(), tt.want)
		}
	}
}

func TestRawIsTheEncodedValue(t *testing.T) {
	for _, tt := range encodings {
		in := unhex(t, tt.want)
		r := NewReader(append(in, 0x40))
		if got := r.Raw(); string(got) != string(in) || r.Len() != 1 {
			t.Errorf("%s: % x, %d bytes left; want % x", tt.name, got, r.Len(), in)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	tests := []struct {
		name, in string
		want     error
	}{
		{"nothing", "", ErrShort},
		{"unknown constructor", "3f", ErrCode},
		{"reserved constructor of known width", "57", ErrCode},
		{"string beyond the end", "a10261", ErrShort},
		{"huge string", "b1ffffffff61", ErrShort},
		{"list without space for its count", "c000", ErrCount},
		{"list32 without space for its count", "d0000000020000", ErrCount},
		{"more values than bytes", "c00302 40 5201", ErrShort},
		{"far more values than bytes", "d0 00000005 ffffffff 40", ErrCount},
		{"fewer values than bytes", "c00301 40 40", ErrCount},
		{"odd map", "c10201 40", ErrCount},
		{"map with a bad value", "c10402 5201 3f", ErrCode},
		{"array without constructor", "e00101", ErrShort},
		{"array of too little", "e00402 70 0000", ErrCount},
		{"array of too much", "e00401 50 0000", ErrCount},
		{"array of an unknown type", "e00402 57 0000", ErrCode},
		{"array of endless nulls", "f0 00000005 ffffffff 40", ErrElements},
		{"described nothing", "00 5324", ErrShort},
		{"described by a list", "00 45 45", ErrType},
		{"endlessly described", strings.Repeat("005301", 200) + "40", ErrDepth},
		{"deep lists", deepLists(maxDepth), ErrDepth},
	}
	for _, tt := range tests {
		r := NewReader(unhex(t, tt.in))
		if r.Check(); !errors.Is(r.Err(), tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, r.Err(), tt.want)
		}
	}
	ok := NewReader(unhex(t, deepLists(maxDepth-1)))
	if ok.Check(); ok.Err() != nil {
		t.Errorf("as deep as allowed: %v", ok.Err())
	}
}

// deepLists is null inside n lists.
func deepLists(n int) string {
	b := []byte{codeNull}
	for range n {
		list, at := BeginList(nil)
		b = EndList(append(list, b...), at, 1)
	}
	return hex.EncodeToString(b)
}

// TestShortCuts checks that Enter and Pair find in maps and lists of every
// form, valid and invalid, what the general method finds.
func TestShortCuts(t *testing.T) {
	for _, in := range []string{
		"c1 0a 04 a10161 5001 a30162 5002", "d1 0000000d 00000004 a10161 5001 a30162 5002",
		"c1 07 02 a10161 a30162", "c1 07 02 a30161 b1", "c1 01 00", "c1 09 02 b10000000161 5001", "c0 04 03 43 5001", "45", "e0 04 02 50 0102",
		"c1 08 03 a10161 5001 a3", "c1 ff 02 a10161 5001", "c1 04 02 a1ff61 40", "c1 04 06 a10161 40",
		"c1 05 02 5301 5001", "c1 04 02 a10561 40", "c1 00", "c1", "5001", "40", "", "c2 03 02 40 40", "c1 05 02 a10161 50",
	} {
		b := unhex(t, in)
		outer := NewReader(b)
		v := outer.Value()
		want, got := v.Elements(), Reader{}
		want.Fail(outer.Err())
		got.Enter(b)
		for range 3 {
			if got.Left() != want.Left() || got.More() != want.More() || got.Len() != want.Len() ||
				fmt.Sprint(got.Err()) != fmt.Sprint(want.Err()) {
				t.Fatalf("%s: %d left, %d bytes, %v; want %d, %d, %v", in, got.Left(), got.Len(), got.Err(), want.Left(), want.Len(), want.Err())
			}
			wantKey, wantValue := string(want.Text()), want.Value()
			if k, v := got.Pair(); k != wantKey || v != wantValue {
				t.Fatalf("%s: %q %v, want %q %v", in, k, v, wantKey, wantValue)
			}
		}
	}
}

// The SDKs for Python send a token and its expiry as a value described by a binary.
func TestDescribedByABinary(t *testing.T) {
	r := NewReader([]byte{0x00, 0xa0, 0x02, 't', 'o', 0x54, 0x07, 0x41})
	if r.Check(); r.Err() != nil {
		t.Fatal(r.Err())
	}
	if !r.Bool() || r.Err() != nil {
		t.Errorf("the value behind it was not found: %v", r.Err())
	}
}
