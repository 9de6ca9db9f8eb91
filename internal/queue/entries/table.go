// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"iter"
	"maps"
	"unsafe"
)

// Table is a map that gives its memory back. A Go map keeps what its largest number of
// entries took, so that a queue would keep the memory of its largest backlog.
// The zero value is empty.
type Table[K comparable, V any] struct {
	m    map[K]V
	most int // entries that m had at most; it takes the memory of so many
}

// A table is made anew when an eighth of its entries is left, and not more than a step
// can copy.
const (
	leastShrunk = 64
	mostCopied  = 16 << 10
)

// Get returns the value of a key.
func (t *Table[K, V]) Get(k K) (V, bool) { v, ok := t.m[k]; return v, ok }

// Len returns how many entries there are.
func (t *Table[K, V]) Len() int { return len(t.m) }

// Set sets the value of a key.
func (t *Table[K, V]) Set(k K, v V) {
	if t.m == nil {
		t.m = make(map[K]V)
	}
	t.m[k] = v
	t.most = max(t.most, len(t.m))
}

// Delete removes a key, if it is there.
func (t *Table[K, V]) Delete(k K) {
	delete(t.m, k)
	n := len(t.m)
	switch {
	case t.most <= leastShrunk || n > t.most/8:
	case n == 0:
		t.m, t.most = nil, 0
	case n <= mostCopied:
		t.m, t.most = maps.Collect(maps.All(t.m)), n
	}
}

// All returns the entries, in no order.
func (t *Table[K, V]) All() iter.Seq2[K, V] { return maps.All(t.m) }

// Memory returns about how many bytes the table takes.
func (t *Table[K, V]) Memory() int64 {
	var k K
	var v V
	// A map that grows is between seven sixteenths and seven eighths full, and has a
	// byte for each slot.
	return int64(t.most) * int64(unsafe.Sizeof(k)+unsafe.Sizeof(v)+1) * 13 / 8
}
