// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"encoding/binary"
)

// Effects collects what commands did: the records they wrote, and the bodies they
// began or ceased to refer to. Commands only append. The zero value is ready for use.
//
// All machines of an engine write into one of them, so a record is written once: the
// engine sets a prefix, which tells it whose record it is, and appends the arena to the
// journal as it is.
//
//	arena   [prefix kind …][prefix kind …][prefix kind …
//	ends                   ^              ^
type Effects struct {
	Added []Ref // bodies that a machine began to refer to
	Freed []Ref // bodies that a machine refers to no more

	prefix   []byte   // put before each record
	prefixes int      // bytes of prefixes in arena
	arena    []byte   // records back to back
	ends     []int    // where each record ends in arena
	recs     [][]byte // returned by Records
}

// Begin starts a record of a kind. The caller appends its fields and calls End.
func (e *Effects) Begin(kind byte) {
	e.arena = append(append(e.arena, e.prefix...), kind)
	e.prefixes += len(e.prefix)
}

// maxExtended is the size at which a record is not extended any more.
const maxExtended = 4 << 10

// Extend opens the last record again, if it is of the same machine and of this kind, for
// kinds whose records are a list. Otherwise it is Begin.
func (e *Effects) Extend(kind byte) {
	n := len(e.ends)
	if n == 0 {
		e.Begin(kind)
		return
	}
	start := 0
	if n > 1 {
		start = e.ends[n-2]
	}
	last := e.arena[start:e.ends[n-1]]
	if p := len(e.prefix); len(last) > maxExtended || len(last) <= p || last[p] != kind || !bytes.Equal(last[:p], e.prefix) {
		e.Begin(kind)
		return
	}
	e.ends = e.ends[:n-1]
}

// BeginPlain starts a record without the prefix: one that belongs to no machine.
func (e *Effects) BeginPlain(kind byte) { e.arena = append(e.arena, kind) }

// End ends the record that Begin started.
func (e *Effects) End() { e.ends = append(e.ends, len(e.arena)) }

// Byte appends a byte.
func (e *Effects) Byte(b byte) { e.arena = append(e.arena, b) }

// Raw appends bytes as they are.
func (e *Effects) Raw(b []byte) { e.arena = append(e.arena, b...) }

// Uint appends a number in its shortest form.
func (e *Effects) Uint(v uint64) { e.arena = binary.AppendUvarint(e.arena, v) }

// Fixed appends a number in eight bytes. A moment in nanoseconds as a varint would
// take longer to write, and as much space.
func (e *Effects) Fixed(n int64) { e.arena = binary.LittleEndian.AppendUint64(e.arena, uint64(n)) }

// Ref appends the place of a body.
func (e *Effects) Ref(r Ref) {
	e.Uint(r.At)
	e.Uint(uint64(r.Size))
}

// String appends a string with its length.
func (e *Effects) String(s string) {
	e.Uint(uint64(len(s)))
	e.arena = append(e.arena, s...)
}

// Bytes appends bytes with their length.
func (e *Effects) Bytes(b []byte) {
	e.Uint(uint64(len(b)))
	e.arena = append(e.arena, b...)
}

// Size is how many bytes were written, prefixes included.
func (e *Effects) Size() int { return len(e.arena) }

// Payload is how many bytes the machines wrote: without the prefixes, which they do not
// know.
func (e *Effects) Payload() int { return len(e.arena) - e.prefixes }

// Count is how many records were written. Compared with an earlier value it tells
// whether a command wrote any.
func (e *Effects) Count() int { return len(e.ends) }

// SetPrefix has p put before each record from now on. It is kept, not copied.
func (e *Effects) SetPrefix(p []byte) { e.prefix = p }

// Written returns all records back to back and where each one ends, valid until the
// next command or Reset.
func (e *Effects) Written() (arena []byte, ends []int) { return e.arena, e.ends }

// Records returns the records in order, valid until the next command or Reset.
func (e *Effects) Records() [][]byte {
	e.recs = e.recs[:0]
	from := 0
	for _, to := range e.ends {
		e.recs = append(e.recs, e.arena[from:to:to])
		from = to
	}
	return e.recs
}

// ResetRecords forgets the records.
func (e *Effects) ResetRecords() {
	e.arena, e.ends, e.recs, e.prefixes = e.arena[:0], e.ends[:0], e.recs[:0], 0
}

// ResetRefs forgets the bodies.
func (e *Effects) ResetRefs() { e.Added, e.Freed = e.Added[:0], e.Freed[:0] }

// Reset forgets everything but the prefix, and keeps the memory.
func (e *Effects) Reset() {
	e.ResetRecords()
	e.ResetRefs()
}
