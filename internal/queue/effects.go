// SPDX-License-Identifier: Apache-2.0

package queue

// Effects collects what one or more steps did. Its owner acts on it and then
// calls Reset; a step only ever appends. The zero value is ready for use.
type Effects struct {
	Dead    []Dead    // left for the dead letters, in order
	Expired []Expired // left for good because their lives ended, in order
	Placed  []Ref     // bodies that the queue began to need
	Freed   []Ref     // bodies that the queue needs no more

	buf  []byte   // records back to back
	ends []int    // where each record ends in buf
	recs [][]byte // handed out by Records
}

// Records returns the records of the steps in order. They are valid until the
// next step or Reset.
func (e *Effects) Records() [][]byte {
	e.recs = e.recs[:0]
	from := 0
	for _, to := range e.ends {
		e.recs = append(e.recs, e.buf[from:to:to])
		from = to
	}
	return e.recs
}

// Size returns the bytes of the records so far.
func (e *Effects) Size() int { return len(e.buf) }

// Reset forgets everything and keeps the memory.
func (e *Effects) Reset() {
	clear(e.Dead) // lets go of their strings
	e.Dead, e.Expired, e.Placed, e.Freed = e.Dead[:0], e.Expired[:0], e.Placed[:0], e.Freed[:0]
	e.buf, e.ends, e.recs = e.buf[:0], e.ends[:0], e.recs[:0]
}
