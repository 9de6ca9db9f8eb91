// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"errors"
	"testing"
)

// emptyArray is an array of n elements that take no bytes.
func emptyArray(code byte, n int) []byte {
	b := append([]byte{codeArray8 + wide}, 0, 0, 0, 0, 0, 0, 0, 0, code)
	binary.BigEndian.PutUint32(b[1:], 5)
	binary.BigEndian.PutUint32(b[5:], uint32(n))
	return b
}

// Decoding needs memory for every
// element, also for those without bytes. So they are counted, in one array and
// in all arrays of a value together.
func TestElementsWithoutBytesAreCounted(t *testing.T) {
	many := func(arrays, each int) []byte {
		b, at := BeginList(nil)
		for range arrays {
			b = append(b, emptyArray(codeNull, each)...)
		}
		return EndList(b, at, arrays)
	}
	deep := emptyArray(codeNull, 2)
	for range 9 { // each contains the one before twice, as elements of an array do
		b := []byte{codeArray8 + wide, 0, 0, 0, 0, 0, 0, 0, 2, deep[0]}
		b = append(append(b, deep[1:]...), deep[1:]...)
		binary.BigEndian.PutUint32(b[1:], uint32(len(b)-5))
		deep = b
	}
	for _, tt := range []struct {
		name string
		b    []byte
		err  error
	}{
		{"a few nulls", emptyArray(codeNull, 3), nil},
		{"as many as may be", emptyArray(codeTrue, maxEmpty), nil},
		{"65,536 nulls", emptyArray(codeNull, 65536), ErrElements},
		{"65,536 empty lists", emptyArray(codeList0, 65536), ErrElements},
		{"one more", emptyArray(codeUint0, maxEmpty+1), ErrElements},
		{"many arrays of few", many(maxEmpty/2, 2), nil},
		{"many arrays of many", many(1000, maxEmpty), ErrElements},
		{"arrays in arrays", deep, ErrElements},
	} {
		r := NewReader(tt.b)
		if r.Check(); !errors.Is(r.Err(), tt.err) {
			t.Errorf("%s: %v, want %v", tt.name, r.Err(), tt.err)
		}
		if v, err := ParseValue(tt.b); !errors.Is(err, tt.err) || tt.err == nil && !errors.Is(v.Check(), tt.err) {
			t.Errorf("%s, as a value: %v, want %v", tt.name, err, tt.err)
		}
	}
	// A caller that does not check also gets at most that many of one array.
	v, _ := NewReader(emptyArray(codeNull, 65536)).valueOf()
	n := 0
	for range v.List() {
		n++
	}
	if n > maxEmpty {
		t.Errorf("an array of 40 bytes has %d elements", n)
	}
}

// valueOf reads one value without checking its contents.
func (r Reader) valueOf() (Value, error) { v := r.Value(); return v, r.Err() }

// An array with too many elements without bytes is not read, by any method:
// Left bounds what a caller allocates.
func TestTooManyEmptyElementsAreNotRead(t *testing.T) {
	b := emptyArray(codeNull, 1<<30)
	r := NewReader(b)
	in := r.Array()
	if in.Left() != 0 || in.More() || !errors.Is(r.Err(), ErrElements) {
		t.Errorf("%d elements are left: %v", in.Left(), r.Err())
	}
	r = NewReader(b)
	v := r.Value()
	if in := v.Elements(); in.Left() != 0 || in.More() || !errors.Is(in.Err(), ErrElements) {
		t.Errorf("%d elements are left: %v", in.Left(), in.Err())
	}
	r = NewReader(b)
	if r.CheckStored(); r.Err() != nil || r.Len() != 0 {
		t.Errorf("a stored value is rejected: %v", r.Err())
	}
}

// What is plain is read by Plain as by a Reader; all else is left to that.
func TestPlainAgreesWithReader(t *testing.T) {
	tail := []byte{0xaa, 0xbb, 0xcc, 0xdd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	for code := range 256 {
		for _, size := range [][]byte{nil, {0}, {3}, {0, 0, 0, 2}, {0xff, 0xff, 0xff, 0xff}} {
			b := append(append([]byte{byte(code)}, size...), tail...)
			for cut := range len(b) + 1 {
				k, n := Plain(b[:cut])
				r := NewReader(b[:cut])
				want := r.Kind()
				r.Skip()
				plain := (want < KindList || code == codeList0) && r.Err() == nil && cut > 0
				if n > 0 != plain || n > 0 && (k != want || n != cut-r.Len()) {
					t.Fatalf("% x: %v of %d bytes, want %v of %d, %v", b[:cut], k, n, want, cut-r.Len(), r.Err())
				}
			}
		}
	}
}
