// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/limits"
)

// What can be wrong with encoded values. Errors of a Reader wrap one of these.
var (
	// ErrShort says that a value claims more bytes than there are.
	ErrShort = errors.New("codec: value is cut short")
	// ErrType says that a value is of another type than the requested one.
	ErrType = errors.New("codec: unexpected type")
	// ErrCode says that a constructor does not exist [AMQP 1.6].
	ErrCode = errors.New("codec: unknown constructor")
	// ErrCount says that size and count of a compound value contradict each
	// other or its content.
	ErrCount = errors.New("codec: count does not match content")
	// ErrElements says that a value has more than maxEmpty elements that take no
	// bytes.
	ErrElements = errors.New("codec: too many elements without content")
	// ErrDepth says that values are nested deeper than maxDepth.
	ErrDepth = errors.New("codec: nested too deep")
)

const (
	// maxDepth is how deep values may be nested in one another.
	maxDepth = limits.Depth
	// maxEmpty is how many elements without bytes, such as nulls, an array may
	// have; Check counts those of all arrays inside a value. Every other count is
	// bounded by the received bytes, and so is the memory for decoded elements.
	maxEmpty = limits.EmptyElements
)

// Reader decodes values from the front of a byte slice. Its first error sticks
// and every later read returns a zero value, so a caller can decode a whole
// performative and check Err once.
//
// The Reader of a list yields null for fields that the list does not have,
// since a sender may leave out trailing fields [AMQP 1.4]. The zero Reader
// reads an empty list.
type Reader struct {
	rest []byte
	err  error
	left int  // values left; math.MaxInt when only the bytes bound them
	elem byte // constructor shared by all values of an array; 0 outside of one
}

// NewReader returns a Reader of the values in b, one after the other.
func NewReader(b []byte) Reader { return Reader{rest: b, left: math.MaxInt} }

// Err returns the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Len returns the number of bytes not read yet.
func (r *Reader) Len() int { return len(r.rest) }

// Rest returns the bytes not read yet, which for a frame is its payload.
func (r *Reader) Rest() []byte { return r.rest }

// More reports whether there is another value to read. It is false after an
// error, so that a loop over it always ends.
func (r *Reader) More() bool { return r.err == nil && r.left > 0 && (len(r.rest) > 0 || r.counted()) }

// Left returns the number of values left in a list, map (keys and values
// counted) or array. It bounds what a caller may allocate for them.
func (r *Reader) Left() int {
	if !r.counted() {
		return 0
	}
	return r.left
}

func (r *Reader) counted() bool { return r.left < math.MaxInt/2 }

// Fail makes err the error of r unless it has one already. It passes on an
// error of a nested Reader, or of a value that the caller rejects.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// wrong records that a value of type want was requested and code was found.
func (r *Reader) wrong(want Kind, code byte) {
	r.Fail(fmt.Errorf("%w: want %v, found %v", ErrType, want, kinds[code]))
}

// take returns the next value: its constructor and the data after it, whose
// length is checked. It returns null after an error and after the last field.
func (r *Reader) take() (code byte, data []byte) {
	if r.err != nil || r.left == 0 {
		return codeNull, nil
	}
	b := r.rest
	code = r.elem
	if code == 0 {
		if len(b) == 0 {
			r.err = ErrShort
			return codeNull, nil
		}
		code, b = b[0], b[1:]
	}
	n := int(widths[code])
	switch {
	case n == sized && len(b) > 0: // texts and small compounds, most of what comes
		n = 1 + int(b[0])
	case n > 16:
		n = math.MaxInt
	}
	if n > len(b) {
		var err error
		if n, err = width(code, b); err != nil {
			r.err = err
			return codeNull, nil
		}
	}
	r.left--
	r.rest = b[n:]
	return code, b[:n:n]
}

// peek returns the constructor that take would return, or null.
func (r *Reader) peek() byte {
	switch {
	case r.err != nil || r.left == 0:
		return codeNull
	case r.elem != 0:
		return r.elem
	case len(r.rest) == 0:
		return codeNull
	default:
		return r.rest[0]
	}
}

// Marks of constructors whose data has no fixed length.
const (
	sized    = 0xfe // the first byte of the data says how many follow
	variable = 0xff // longer sizes, descriptors, and what does not exist
)

// widths is the length of the data after each constructor, which its high half
// determines, or a mark.
var widths = func() (w [256]uint8) {
	fixed := [16]uint8{4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16, 0xa: sized, 0xc: sized, 0xe: sized}
	for code := range w {
		w[code] = variable
		if n := fixed[code>>4]; known(byte(code)) && (n > 0 || code>>4 == 0x4) {
			w[code] = n
		}
	}
	return w
}()

// width returns how many of the bytes in b are the data of a value with the
// constructor code. The result never exceeds len(b).
func width(code byte, b []byte) (int, error) {
	if !known(code) {
		return 0, fmt.Errorf("%w 0x%02x", ErrCode, code)
	}
	n := uint64(widths[code])
	switch code >> 4 {
	case 0x0:
		return describedWidth(b)
	case 0xa, 0xc, 0xe:
		if len(b) < 1 {
			return 0, ErrShort
		}
		n = 1 + uint64(b[0])
	case 0xb, 0xd, 0xf:
		if len(b) < 4 {
			return 0, ErrShort
		}
		n = 4 + uint64(binary.BigEndian.Uint32(b))
	}
	if n > uint64(len(b)) {
		return 0, ErrShort
	}
	return int(n), nil
}

// describedWidth returns the length of a descriptor and the value behind it,
// which may be described again. It is a loop, not a recursion, because a peer
// decides how often.
func describedWidth(b []byte) (int, error) {
	at := 0
	for range maxDepth {
		if at == len(b) {
			return 0, ErrShort
		}
		// [AMQP 1.3]: any value may be a descriptor, but all except ulong and symbol
		// are reserved. The SDKs for Python send a token as (binary, int).
		if k := kinds[b[at]]; k != KindUlong && k != KindSymbol && k != KindBinary {
			return 0, fmt.Errorf("%w: want ulong or symbol as descriptor, found %v", ErrType, k)
		}
		n, err := width(b[at], b[at+1:])
		if err != nil {
			return 0, err
		}
		at += 1 + n
		if at == len(b) {
			return 0, ErrShort
		}
		code := b[at]
		at++
		if code == codeDescribed {
			continue
		}
		n, err = width(code, b[at:])
		return at + n, err
	}
	return 0, ErrDepth
}
