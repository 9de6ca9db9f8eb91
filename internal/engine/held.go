// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
)

// Permit allows what depends on durable positions to leave the engine. Only the engine
// makes one that allows anything, after it has looked at what is durable and at the
// lease: so nothing is observable before it is durable. The zero value allows nothing.
type Permit struct {
	below journal.Position // what depends on less may leave
	tail  journal.Position // of what the step has appended; zero while that is not known
}

// Pending is the position of the open group, which has none yet.
const Pending = ^journal.Position(0)

// Held keeps values in order until what they depend on is durable. There are two ways
// out: Release, with a Permit, and Withdraw, for values that will not leave.
//
//	Hold ──► waiting ──Advance──► ready ──Release──► the outside
//	            └──────Withdraw──────┘
//
// Positions of what waits ascend, and what depends on the open group is at the end.
type Held[T any] struct {
	waiting []held[T]
	ready   []T
}

type held[T any] struct {
	at   journal.Position
	v    T
	mark bool // v is none: see Mark
}

// Hold adds a value that depends on a position: Pending is that of the open group, which
// is then committed at the end of the step. It reports whether the value is ready to
// leave when the step ends.
func (h *Held[T]) Hold(tx *Tx, at journal.Position, v T) (ready bool) {
	if len(h.waiting) == 0 && at <= tx.e.durable {
		h.ready = append(h.ready, v)
		return true
	}
	h.wait(tx, held[T]{at: at, v: v})
	return false
}

// Mark adds a place at which Advance stops once everything before it may leave.
func (h *Held[T]) Mark(tx *Tx) { h.wait(tx, held[T]{mark: true}) }

func (h *Held[T]) wait(tx *Tx, v held[T]) {
	if n := len(h.waiting); n > 0 {
		v.at = max(v.at, h.waiting[n-1].at) // it cannot leave before the one ahead of it
	}
	h.waiting = append(h.waiting, v)
	if v.at == Pending {
		tx.MustCommit()
	}
}

// Advance makes ready what p allows, and reports whether it has come to a mark, which
// is then removed: there may be more behind it. If values become ready and there is no slice
// for them, alloc makes one; nil is none.
func (h *Held[T]) Advance(p Permit, alloc func(n int) []T) (marked bool) {
	if p.tail != 0 {
		for i := len(h.waiting) - 1; i >= 0 && h.waiting[i].at == Pending; i-- {
			h.waiting[i].at = p.tail
		}
	}
	n := 0
	for n < len(h.waiting) && !marked && h.waiting[n].at < p.below {
		marked = h.waiting[n].mark
		n++
	}
	if n == 0 {
		return false
	}
	if h.ready == nil && alloc != nil {
		h.ready = alloc(n)
	}
	for i := range h.waiting[:n] {
		if w := &h.waiting[i]; !w.mark {
			h.ready = append(h.ready, w.v)
		}
	}
	rest := copy(h.waiting, h.waiting[n:])
	clear(h.waiting[rest:])
	h.waiting = h.waiting[:rest]
	return marked
}

// Release returns what is ready. The slice is the caller's.
func (h *Held[T]) Release(p Permit) []T {
	if p.below == 0 {
		return nil
	}
	out := h.ready
	h.ready = nil
	return out
}

// Reuse has the next values made ready be appended to buf, unless there are some.
func (h *Held[T]) Reuse(buf []T) {
	if h.ready == nil {
		h.ready = buf[:0]
	}
}

// Buffered reports whether there is a slice for the next values, of Reuse or of values
// before them.
func (h *Held[T]) Buffered() bool { return h.ready != nil }

// Waiting returns how many values and marks wait.
func (h *Held[T]) Waiting() int { return len(h.waiting) }

// Ready returns how many values are ready.
func (h *Held[T]) Ready() int { return len(h.ready) }

// Withdraw takes out the values for which take returns true, and returns how many.
func (h *Held[T]) Withdraw(take func(*T) bool) (n int) {
	before := len(h.ready) + len(h.waiting)
	h.ready = slices.DeleteFunc(h.ready, func(v T) bool { return take(&v) })
	h.waiting = slices.DeleteFunc(h.waiting, func(w held[T]) bool { return !w.mark && take(&w.v) })
	return before - len(h.ready) - len(h.waiting)
}

// Clear forgets everything, when no receiver is left.
func (h *Held[T]) Clear() { h.waiting, h.ready = nil, nil }
