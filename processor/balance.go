// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"math/rand/v2"
	"slices"
)

// table is the records of one round, sorted. Its rules are those of the SDKs for Go and
// JavaScript, so that all of them agree on when a fleet is balanced.
type table struct {
	self    string
	parts   int
	resting int // free, but not for us now
	free    []Ownership
	owners  map[string][]Ownership // by owner, without what has expired
}

// claims returns the records to write: renewals of our own, and those to take.
func (t *table) claims(s Strategy) []Ownership {
	out := slices.Clone(t.owners[t.self])
	taken := t.wanted()
	if s == Balanced && len(taken) > 1 {
		taken = taken[:1]
	}
	out = append(out, taken...)
	for i := range out {
		out[i].Owner = t.self
	}
	return out
}

// wanted returns what would make our share whole, free ones first. An owner that has more
// than its share keeps its share.
func (t *table) wanted() []Ownership {
	own := len(t.owners[t.self])
	owners := len(t.owners)
	if own == 0 {
		owners++ // we are one of them already
	}
	least := t.parts / owners
	most := least
	if t.parts%owners > 0 && own >= least {
		most++
	}
	n := most - own
	if n <= 0 {
		return nil
	}
	shuffle(t.free)
	taken := t.free[:min(n, len(t.free))]
	if len(taken) == n {
		return taken
	}
	var surplus []Ownership
	for owner, records := range t.owners {
		if owner == t.self || len(records) <= most {
			continue
		}
		shuffle(records)
		surplus = append(surplus, records[most:]...)
	}
	shuffle(surplus)
	return append(slices.Clone(taken), surplus[:min(n-len(taken), len(surplus))]...)
}

func shuffle(records []Ownership) {
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
}
