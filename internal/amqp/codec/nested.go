// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// List reads a list and returns a Reader of its values. Null is an empty list.
func (r *Reader) List() Reader { return r.nested(KindList) }

// Map reads a map and returns a Reader of its keys and values in turn. Null is an
// empty map.
func (r *Reader) Map() Reader { return r.nested(KindMap) }

// Array reads an array and returns a Reader of its elements. Null is an empty
// array.
func (r *Reader) Array() Reader { return r.nested(KindArray) }

// Multiple reads a field with several values of one type: an array, or a single
// value instead of an array of one, or null for none [AMQP 1.4].
func (r *Reader) Multiple() Reader {
	if r.Kind() == KindArray {
		return r.Array()
	}
	code, data := r.take()
	if code == codeNull {
		return Reader{}
	}
	return Reader{rest: data, left: 1, elem: code}
}

// Enter makes r, which must be a zero Reader, a reader of the values in the
// list, map or array that b begins with. Other values have none. It works in
// place because copying a Reader costs as much as reading a value or two.
func (r *Reader) Enter(b []byte) {
	if len(b) > 2 && (b[0] == codeList8 || b[0] == codeMap8) {
		// Nearly all values are of these forms and valid. Errors are handled below.
		size, count := int(b[1]), int(b[2])
		if size <= len(b)-2 && count < size && (count%2 == 0 || b[0] == codeList8) {
			r.rest, r.left = b[3:2+size:2+size], count
			return
		}
	}
	outer := NewReader(b)
	*r = outer.Value().Elements()
	r.Fail(outer.err)
}

func (r *Reader) nested(want Kind) Reader {
	code, data := r.take()
	if code == codeNull {
		return Reader{}
	}
	if kinds[code] != want {
		r.wrong(want, code)
		return Reader{}
	}
	in, elem, err := elements(code, data, maxEmpty)
	if err != nil {
		r.Fail(err)
	}
	return Reader{rest: in.rest, left: in.left, elem: elem}
}

// Composite reads a described list, the form of all performatives and of most
// structures inside them: the code of its descriptor, written as a number or as
// a symbol, and its fields. Null, an absent field and an unknown descriptor
// have the code 0 and no fields.
func (r *Reader) Composite() (code uint64, fields Reader) {
	if b := r.rest; len(b) > 3 && b[0] == codeDescribed && b[1] == codeUlong8 && r.left > 0 && r.elem == 0 && r.err == nil {
		r.rest = b[3:] // the form nearly all peers use, without detours
		return uint64(b[2]), r.List()
	}
	d, in := r.Described()
	fields = in.List()
	r.Fail(in.err)
	return d.Code(), fields
}

// Described reads a described value and returns its descriptor and a Reader of
// the value after it. Null has a null descriptor.
func (r *Reader) Described() (descriptor Value, value Reader) {
	code, data := r.take()
	switch code {
	case codeNull:
		return Value{}, Reader{}
	case codeDescribed:
		value = Reader{rest: data, left: 2}
		return value.Value(), value
	default:
		r.wrong(KindDescribed, code)
		return Value{}, Reader{}
	}
}

// Kind returns the type of the next value without reading it; null also if there
// is none.
func (r *Reader) Kind() Kind { return kinds[r.peek()] }

// Value reads the next value, of any type.
func (r *Reader) Value() Value { return makeValue(r.take()) }

// Pair reads a key of a map, which must be a string or a symbol, and the value
// behind it. The key shares its bytes; see [Value].
func (r *Reader) Pair() (key string, v Value) {
	b := r.rest
	n := shortText(b)
	if n == 0 || r.left < 2 || r.elem != 0 || r.err != nil {
		return stringOf(r.Text()), r.Value()
	}
	// Nearly all keys are short texts, and so are many values.
	key, b = stringOf(b[2:n]), b[n:]
	if n = shortText(b); n > 0 {
		r.rest, r.left = b[n:], r.left-2
		return key, Value{kind: kinds[b[0]], data: stringOf(b[2:n])}
	}
	r.rest, r.left = b, r.left-1
	return key, makeValue(r.take())
}

// shortText returns the length of the string or symbol that b begins with, its
// constructor and size included, or 0 if b begins with anything else.
func shortText(b []byte) int {
	if len(b) < 2 || b[0] != codeString8 && b[0] != codeSymbol8 || int(b[1]) > len(b)-2 {
		return 0
	}
	return 2 + int(b[1])
}

// Skip steps over the next value without checking its contents.
func (r *Reader) Skip() { r.take() }

// Raw reads the next value as it is encoded. Elements of an array are encoded
// without constructors; read them with Value.
func (r *Reader) Raw() []byte {
	if r.elem != 0 {
		r.Fail(fmt.Errorf("%w: element of an array has no constructor", ErrType))
		return nil
	}
	before := r.rest
	r.take()
	n := len(before) - len(r.rest)
	return before[:n:n]
}

// Check steps over the next value like Skip, but checks everything inside it:
// all constructors, sizes and counts.
func (r *Reader) Check() {
	empty := 0
	r.check(maxDepth, &empty)
}

// CheckStored is Check for values that were accepted earlier: they may have
// more than maxEmpty elements without bytes. Those cannot be read, but stepped
// over.
func (r *Reader) CheckStored() { r.check(maxDepth, nil) }

// check is Check with depth levels of nesting left to go into. empty counts the
// elements that take no bytes; nil for any number.
func (r *Reader) check(depth int, empty *int) {
	if depth == 0 {
		r.Fail(ErrDepth)
		return
	}
	code, data := r.take()
	var in Reader
	switch kinds[code] {
	default:
		return
	case KindDescribed:
		in = Reader{rest: data, left: 2}
	case KindList, KindMap, KindArray:
		most := uint32(maxEmpty)
		if empty == nil {
			most = math.MaxUint32
		}
		inside, elem, err := elements(code, data, most)
		if err != nil {
			r.Fail(err)
			return
		}
		in = Reader{rest: inside.rest, left: inside.left, elem: elem}
	}
	if n := widths[in.elem]; n < sized {
		// Elements of fixed width have nothing inside. Multiplying keeps an
		// array of many elements without bytes from costing more than it took
		// to send.
		if uint64(in.left)*uint64(n) != uint64(len(in.rest)) {
			r.Fail(ErrCount)
		}
		if n == 0 && empty != nil {
			if *empty += in.left; *empty > maxEmpty {
				r.Fail(ErrElements)
			}
		}
		return
	}
	for in.left > 0 && in.err == nil {
		in.check(depth-1, empty)
	}
	r.Fail(in.err)
	if len(in.rest) > 0 {
		r.Fail(ErrCount)
	}
}

// extent is where the elements of a compound value are. It has few enough words to
// be returned in registers, as a whole Reader has not.
type extent struct {
	rest []byte
	left int
}

// elements returns what is inside a list, map or array, and the constructor that
// the elements of an array share. Up to most of these may take no bytes.
func elements(code byte, data []byte, most uint32) (in extent, elem byte, err error) {
	var count uint32
	switch code >> 4 {
	case 0x4: // list0
		return extent{}, 0, nil
	case 0xc, 0xe:
		if len(data) < 2 {
			return extent{}, 0, ErrCount
		}
		count, data = uint32(data[1]), data[2:]
	default:
		if len(data) < 8 {
			return extent{}, 0, ErrCount
		}
		count, data = binary.BigEndian.Uint32(data[4:]), data[8:]
	}
	switch kind := kinds[code]; {
	case kind == KindArray:
		return arrayElements(data, count, most)
	case uint64(count) > uint64(len(data)), kind == KindMap && count%2 != 0:
		return extent{}, 0, ErrCount
	}
	return extent{data, int(count)}, 0, nil
}

// arrayElements reads the constructor shared by the elements of an array. A
// descriptor is dropped: the elements are the described values.
func arrayElements(data []byte, count, most uint32) (in extent, elem byte, err error) {
	if count == 0 {
		return extent{}, 0, nil // some senders leave out the constructor too
	}
	for range maxDepth {
		if len(data) == 0 {
			return extent{}, 0, ErrShort
		}
		code := data[0]
		data = data[1:]
		if code == codeDescribed {
			if len(data) == 0 {
				return extent{}, 0, ErrShort
			}
			n, err := width(data[0], data[1:])
			if err != nil {
				return extent{}, 0, err
			}
			data = data[1+n:]
			continue
		}
		switch {
		case code>>4 == 0x4 && count > most:
			return extent{}, 0, ErrElements
		case code>>4 != 0x4 && uint64(count) > uint64(len(data)):
			return extent{}, 0, ErrCount
		}
		return extent{data, int(count)}, code, nil
	}
	return extent{}, 0, ErrDepth
}

// Plain returns the type and the length of the value that b begins with, if it is one
// that has nothing inside: a number, a text, a null, an empty list. The length is 0 for other values
// and for what is no value. It is for callers that read many values and leave all that
// is rare to a Reader.
func Plain(b []byte) (k Kind, n int) {
	if len(b) == 0 {
		return KindNull, 0
	}
	code := b[0]
	switch w := int(widths[code]); {
	case w <= 16:
		n = 1 + w
	case w == sized && code>>4 == 0xa && len(b) > 1:
		n = 2 + int(b[1])
	case code>>4 == 0xb && len(b) > 4 && known(code):
		size := uint64(binary.BigEndian.Uint32(b[1:]))
		if size > uint64(len(b)-5) {
			return KindNull, 0
		}
		n = 5 + int(size)
	default:
		return KindNull, 0
	}
	if n > len(b) {
		return KindNull, 0
	}
	return kinds[code], n
}
