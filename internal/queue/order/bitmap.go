// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math/bits"

	"github.com/triagemq/triagemq/internal/ordering"
)

// bitmap is a set of levels.
type bitmap [4]uint64

func (b *bitmap) set(l ordering.Level)      { b[l>>6] |= 1 << (l & 63) }
func (b *bitmap) clear(l ordering.Level)    { b[l>>6] &^= 1 << (l & 63) }
func (b *bitmap) has(l ordering.Level) bool { return b[l>>6]&(1<<(l&63)) != 0 }
func (b *bitmap) empty() bool               { return b[0]|b[1]|b[2]|b[3] == 0 }

// several reports that more than one level is set. It may return false although two are
// set (the same bit in different words); only is exact.
func (b *bitmap) several() bool {
	any := b[0] | b[1] | b[2] | b[3]
	return any&(any-1) != 0
}

// only returns the one level of a set of one.
func (b *bitmap) only() (ordering.Level, bool) {
	l, ok := b.highest(0, 255)
	rest := *b
	rest.clear(l)
	return l, ok && rest.empty()
}

// highest returns the highest level between lo and hi in the set.
func (b *bitmap) highest(lo, hi ordering.Level) (ordering.Level, bool) {
	for w := int(hi >> 6); w >= int(lo>>6); w-- {
		x := b[w]
		if w == int(hi>>6) {
			x &= ^uint64(0) >> (63 - hi&63)
		}
		if w == int(lo>>6) {
			x &= ^uint64(0) << (lo & 63)
		}
		if x != 0 {
			return ordering.Level(w<<6 + 63 - bits.LeadingZeros64(x)), true
		}
	}
	return 0, false
}
