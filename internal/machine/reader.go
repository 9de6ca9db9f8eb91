// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"math"
)

// Reader takes a record apart. Its first error sticks, and every later read returns
// a zero value, so that a caller reads all fields and looks at Bad once.
type Reader struct {
	rest []byte
	bad  bool
}

// NewReader returns a reader of what Effects has written.
func NewReader(rec []byte) Reader { return Reader{rest: rec} }

// Bad reports whether a field was cut short or out of range.
func (r *Reader) Bad() bool { return r.bad }

// Len returns how many bytes are left.
func (r *Reader) Len() int { return len(r.rest) }

// Rest returns the bytes that are left, as part of the record.
func (r *Reader) Rest() []byte { return r.rest }

// Fail makes the record bad: the caller has found a value that cannot be.
func (r *Reader) Fail() { r.rest, r.bad = nil, true }

// Take reads n bytes as they are. They are part of the record.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Uint reads a number.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// UpTo reads a number and refuses one above limit.
func (r *Reader) UpTo(limit uint64) uint64 {
	v := r.Uint()
	if v > limit {
		r.Fail()
		return 0
	}
	return v
}

// Uint32 reads a number of 32 bits.
func (r *Reader) Uint32() uint32 { return uint32(r.UpTo(math.MaxUint32)) }

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if b := r.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// Flags reads a byte and refuses bits outside mask.
func (r *Reader) Flags(mask byte) byte {
	b := r.Byte()
	if b&^mask != 0 {
		r.Fail()
		return 0
	}
	return b
}

// Fixed reads a number of eight bytes.
func (r *Reader) Fixed() int64 {
	if b := r.Take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// Time reads a moment in nanoseconds; there is none before 1970.
func (r *Reader) Time() int64 {
	n := r.Fixed()
	if n < 0 {
		r.Fail()
		return 0
	}
	return n
}

// Ref reads the place of a body.
func (r *Reader) Ref() Ref { return Ref{At: r.Uint(), Size: r.Uint32()} }

// Bytes reads bytes with their length. They are part of the record.
func (r *Reader) Bytes() []byte { return r.Take(r.Uint()) }

// String reads a string with its length.
func (r *Reader) String() string { return string(r.Bytes()) }
