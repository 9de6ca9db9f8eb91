// SPDX-License-Identifier: Apache-2.0

package order

import (
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// newLane returns an empty lane for level l by the order of the index.
func (x *Index) newLane(l ordering.Level) lane {
	if x.order.Fair {
		return &fairLane{level: l, aged: x.levels.picker.aged(), finish: x.order.FinishesFirst()}
	}
	p := new(plainLane)
	x.arrange(p)
	return p
}

// arrange sets which end of a lane is served first.
func (x *Index) arrange(p *plainLane) {
	p.newest = x.order.LevelOrder == ordering.Lifo && !x.levels.picker.aged()
	p.runs = !p.newest && !x.sessionQueue
	p.known = false
}

// precedes reports whether a is delivered before b, which is in the same level and has
// the same fair key.
func (x *Index) precedes(a, b entries.OrderKey) bool {
	if p, ok := x.levels.all[x.Entries.Get(b.Seq).Level].(*plainLane); ok && p.newest {
		return b.Before(a)
	}
	return a.Before(b)
}
