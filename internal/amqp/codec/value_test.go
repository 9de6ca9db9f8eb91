// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"math"
	"testing"
)

func TestValueRoundTrip(t *testing.T) {
	for _, tt := range encodings {
		v, err := ParseValue(unhex(t, tt.want))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if v.Kind() != tt.value.Kind() || v.String() != tt.value.String() {
			t.Errorf("%s: got %v %v, want %v %v", tt.name, v.Kind(), v, tt.value.Kind(), tt.value)
		}
		if got := AppendValue(nil, v.Clone()); !bytes.Equal(got, unhex(t, tt.want)) {
			t.Errorf("%s: appended again % x, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDecimalsSurvive(t *testing.T) {
	for _, in := range []string{"7401020304", "840102030405060708", "94000102030405060708090a0b0c0d0e0f"} {
		v, err := ParseValue(unhex(t, in))
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendValue(nil, v); !bytes.Equal(got, unhex(t, in)) {
			t.Errorf("%s became % x", in, got)
		}
	}
}

func TestIntegersOfAnyType(t *testing.T) {
	tests := []struct {
		v   Value
		i   int64
		iok bool
		u   uint64
		uok bool
	}{
		{Ubyte(200), 200, true, 200, true},
		{Ushort(60000), 60000, true, 60000, true},
		{Uint(4e9), 4e9, true, 4e9, true},
		{Ulong(math.MaxUint64), 0, false, math.MaxUint64, true},
		{Byte(-1), -1, true, 0, false},
		{Short(-300), -300, true, 0, false},
		{Int(math.MinInt32), math.MinInt32, true, 0, false},
		{Int(5), 5, true, 5, true},
		{Long(math.MinInt64), math.MinInt64, true, 0, false},
		{Long(math.MaxInt64), math.MaxInt64, true, math.MaxInt64, true},
		{Double(1), 0, false, 0, false},
		{Char('a'), 0, false, 0, false},
		{Bool(true), 0, false, 0, false},
		{String("1"), 0, false, 0, false},
		{Value{}, 0, false, 0, false},
	}
	for _, tt := range tests {
		if i, ok := tt.v.Int(); i != tt.i || ok != tt.iok {
			t.Errorf("%v %v: Int %d %t, want %d %t", tt.v.Kind(), tt.v, i, ok, tt.i, tt.iok)
		}
		if u, ok := tt.v.Uint(); u != tt.u || ok != tt.uok {
			t.Errorf("%v %v: Uint %d %t, want %d %t", tt.v.Kind(), tt.v, u, ok, tt.u, tt.uok)
		}
	}
}

func TestAccessorsRefuseOtherTypes(t *testing.T) {
	for _, tt := range encodings {
		v, k := tt.value, tt.value.Kind()
		check := func(what string, ok bool, want ...Kind) {
			t.Helper()
			is := false
			for _, w := range want {
				is = is || w == k
			}
			if ok != is {
				t.Errorf("%s of %s: ok %t, want %t", what, tt.name, ok, is)
			}
		}
		_, ok := v.Bool()
		check("Bool", ok, KindBool)
		_, ok = v.Float()
		check("Float", ok, KindFloat, KindDouble)
		_, ok = v.Char()
		check("Char", ok, KindChar)
		_, ok = v.Str()
		check("Str", ok, KindString, KindSymbol)
		_, ok = v.Bytes()
		check("Bytes", ok, KindBinary, KindString, KindSymbol)
		_, ok = v.Time()
		check("Time", ok, KindTimestamp)
		_, ok = v.UUID()
		check("UUID", ok, KindUUID)
		_, _, ok = v.Described()
		check("Described", ok, KindDescribed)
		check("IsNull", v.IsNull(), KindNull)
	}
}

func TestNestedValues(t *testing.T) {
	v := Map(
		String("list"), List(Int(1), String("two"), List()),
		Symbol("array"), Raw(AppendLongArray(nil, []int64{3, 4})),
		Ulong(5), Describe(0x24, List(Uint(6))),
	)
	list, ok := v.Lookup("list")
	if !ok {
		t.Fatal("no list")
	}
	var kinds []Kind
	for e := range list.List() {
		kinds = append(kinds, e.Kind())
	}
	if len(kinds) != 3 || kinds[0] != KindInt || kinds[1] != KindString || kinds[2] != KindList {
		t.Errorf("list of %v", kinds)
	}
	array, _ := v.Lookup("array")
	sum := int64(0)
	for e := range array.List() {
		n, _ := e.Int()
		sum += n
	}
	if sum != 7 {
		t.Errorf("array adds up to %d, want 7", sum)
	}
	pairs := 0
	for k, e := range v.Map() {
		pairs++
		if d, inner, ok := e.Described(); ok {
			if n, _ := k.Uint(); n != 5 || d.Code() != 0x24 || inner.Kind() != KindList {
				t.Errorf("described: key %v, code %#x, inner %v", k, d.Code(), inner)
			}
		}
	}
	if pairs != 3 {
		t.Errorf("%d pairs, want 3", pairs)
	}
	if _, ok := v.Lookup("absent"); ok {
		t.Error("found what is not there")
	}
	if err := v.Check(); err != nil {
		t.Errorf("check: %v", err)
	}
}

func TestArraysOfCompoundsAndDescribed(t *testing.T) {
	// two list8 of one ubyte each, sharing their constructor
	v, err := ParseValue(unhex(t, "e0 0a 02 c0 03015001 03015002"))
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for e := range v.List() {
		got = AppendValue(got, e)
	}
	if want := unhex(t, "c003015001 c003015002"); !bytes.Equal(got, want) {
		t.Errorf("lists: % x, want % x", got, want)
	}
	// uints described by 0x24
	v, err = ParseValue(unhex(t, "e0 07 02 00 53 24 52 0102"))
	if err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for e := range v.List() {
		n, _ := e.Uint()
		sum += n
	}
	if sum != 3 {
		t.Errorf("described uints add up to %d, want 3", sum)
	}
}

func TestCheckIsDeep(t *testing.T) {
	for _, in := range []string{"c00302 3f40", "c10402 5201 3f", "005324 c00201 3f", "e00402 70 0000"} {
		r := NewReader(unhex(t, in))
		v := r.Value()
		if r.Err() != nil {
			t.Fatalf("%s: %v", in, r.Err())
		}
		if v.Check() == nil {
			t.Errorf("%s: nothing found wrong", in)
		}
	}
}

func TestCloneSharesNothing(t *testing.T) {
	in := unhex(t, "a1026162")
	r := NewReader(in)
	v := r.Value()
	c := v.Clone()
	in[2] = 'x'
	if s, _ := v.Str(); s != "xb" {
		t.Errorf("view shows %q, want xb", s)
	}
	if s, _ := c.Str(); s != "ab" {
		t.Errorf("clone shows %q, want ab", s)
	}
}
