// SPDX-License-Identifier: Apache-2.0

package servicebus

import "github.com/triagemq/triagemq/internal/queue"

// maxSpareEntries is how many unused entries a table keeps; more than that was a burst.
const maxSpareEntries = 1 << 13

// lockTable remembers the token behind each delivery of a link until the peer
// settles it. Deliveries carry the place in the table, so that nothing is
// allocated for one.
type lockTable struct {
	tokens  []queue.Token
	sources []int // beside tokens, if the link is one to a set
	free    []uint64
}

// from notes which source of a set a delivery came from.
func (t *lockTable) from(ref uint64, source int) {
	for uint64(len(t.sources)) <= ref {
		t.sources = append(t.sources, 0)
	}
	t.sources[ref] = source
}

func (t *lockTable) source(ref uint64) int { return t.sources[ref] }

func (t *lockTable) put(token queue.Token) (ref uint64) {
	if n := len(t.free); n > 0 {
		ref = t.free[n-1]
		t.free = t.free[:n-1]
		t.tokens[ref] = token
		return ref
	}
	t.tokens = append(t.tokens, token)
	return uint64(len(t.tokens) - 1)
}

// has reports whether a delivery is there still: a peer may settle one of which it has
// got a part only, and the link ends before the rest has left.
func (t *lockTable) has(ref uint64) bool {
	return ref < uint64(len(t.tokens)) && t.tokens[ref] != queue.Token{}
}

func (t *lockTable) take(ref uint64) queue.Token {
	token := t.tokens[ref]
	t.tokens[ref] = queue.Token{}
	t.free = append(t.free, ref)
	if len(t.free) == len(t.tokens) && len(t.free) > maxSpareEntries {
		*t = lockTable{} // frees the memory of the many there once were
	}
	return token
}
