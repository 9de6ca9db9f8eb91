// SPDX-License-Identifier: Apache-2.0

package slots

import "cmp"

// Rank is how urgent a message is within a pool: first the position of its source,
// where 0 is the best, then its level, where higher is better.
type Rank struct {
	Source int
	Level  uint8
}

// Compare returns a positive number if r is more urgent than o.
func (r Rank) Compare(o Rank) int {
	return cmp.Or(cmp.Compare(o.Source, r.Source), cmp.Compare(r.Level, o.Level))
}

// Above reports whether r is more urgent than o.
func (r Rank) Above(o Rank) bool { return r.Compare(o) > 0 }
