// SPDX-License-Identifier: Apache-2.0

package queue

// newLane returns an empty lane for level l by the order of the index.
func (q *Queue) newLane(l Level) lane {
	if q.order.Fair {
		return &fairLane{level: l, aged: q.levels.picker.aged(), finish: q.order.FinishesFirst()}
	}
	p := new(plainLane)
	q.arrange(p)
	return p
}

// arrange tells a lane which end of it goes first.
func (q *Queue) arrange(p *plainLane) {
	p.newest = q.order.Within == Lifo && !q.levels.picker.aged()
	p.runs = !p.newest && !q.cfg.Sessions
	p.known = false
}

// precedes reports whether a goes before b, which is in the same level and has the
// same fair key.
func (q *Queue) precedes(a, b orderKey) bool {
	if p, ok := q.levels.all[q.msgs.get(b.seq).level].(*plainLane); ok && p.newest {
		return b.before(a)
	}
	return a.before(b)
}
