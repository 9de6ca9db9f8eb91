// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/binary"
	"math"
)

// kind is the first byte of a record. Kinds are on disk and never change; a new
// layout gets a new kind. The layouts are drawn in docs/format/queue-records.md.
type kind byte

const (
	kindEnqueue  kind = 0x01
	kindGone     kind = 0x02
	kindFailed   kind = 0x03
	kindDeferred kind = 0x04
	kindRewrite  kind = 0x05
	kindActivate kind = 0x06
	kindReclass  kind = 0x07
	kindState    kind = 0x08
	kindConfig   kind = 0x09
	kindSettings kind = 0x0a // kindConfig with more
	kindStarted  kind = 0x0b // keys that were started; also a chunk of a snapshot
	kindArrived  kind = 0x0c
	kindReasons  kind = 0x0d // why messages are dead letters; also a chunk of a snapshot
	kindReturned kind = 0x0e // a message that was gone is back under its number

	kindSnapshot kind = 0x10 // header
	kindWindow   kind = 0x11 // chunk of the duplicate window
	kindStates   kind = 0x12 // chunk of the session states
	kindEntries  kind = 0x13 // chunk of the messages
	kindEnd      kind = 0x14
	kindHeader   kind = 0x15 // kindSnapshot with more settings
)

// begin starts a record; the caller appends to e.buf and calls end.
func (e *Effects) begin(k kind) { e.buf = append(e.buf, byte(k)) }
func (e *Effects) end()         { e.ends = append(e.ends, len(e.buf)) }

func (e *Effects) uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *Effects) seq(s SeqNo)   { e.uint(uint64(s)) }
func (e *Effects) byte(b byte)   { e.buf = append(e.buf, b) }

// time appends a moment in full: a varint would take longer and as much space.
func (e *Effects) time(n int64) { e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(n)) }

func (e *Effects) ref(r Ref) {
	e.uint(r.At)
	e.uint(uint64(r.Size))
}

func (e *Effects) string(s string) {
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// reader decodes a record. Its first error sticks, and every later read returns
// a zero value.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) fail() { r.rest, r.bad = nil, true }

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// upTo reads a number and refuses one above max.
func (r *reader) upTo(max uint64) uint64 {
	v := r.uint()
	if v > max {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) uint32() uint32 { return uint32(r.upTo(math.MaxUint32)) }

// seq reads a number of a message, which is never zero and leaves room above.
func (r *reader) seq() SeqNo {
	v := r.upTo(math.MaxInt64)
	if v == 0 {
		r.fail()
	}
	return SeqNo(v)
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// fixed reads eight bytes as they are: a duration, a rate.
func (r *reader) fixed() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// time reads a moment; there is none before 1970.
func (r *reader) time() int64 {
	n := r.fixed()
	if n < 0 {
		r.fail()
		return 0
	}
	return n
}

func (r *reader) ref() Ref       { return Ref{At: r.uint(), Size: r.uint32()} }
func (r *reader) string() string { return string(r.take(r.uint())) }

// flags reads a byte and refuses bits outside mask.
func (r *reader) flags(mask byte) byte {
	b := r.byte()
	if b&^mask != 0 {
		r.fail()
		return 0
	}
	return b
}
