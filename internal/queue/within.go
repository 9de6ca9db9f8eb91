// SPDX-License-Identifier: Apache-2.0

package queue

// Within is the order inside a level.
type Within uint8

// The orders inside a level. They are on disk and never change.
const (
	// Fifo serves the oldest first or, with fair keys, lets them take turns.
	Fifo Within = iota
	// Lifo serves the newest first. It is for levels that are not ranked by the age
	// of what is in them: with Aging, Deadline, Saturation.Oldest or fair keys it
	// is Fifo.
	Lifo
	// FinishFirst serves the fair keys that were started before those that were
	// not, in the order in which they were; the others, and messages without a
	// key, by age. A key is started when a message of it is handed out, until no
	// message of it is left in any state. Without fair keys it is Fifo.
	FinishFirst
)

// finishes reports whether keys that were started go first.
func (o *Order) finishes() bool { return o.Fair && o.Within == FinishFirst }

// newLane returns an empty lane for level l by the order of the index.
func (q *Queue) newLane(l Level) lane {
	if q.order.Fair {
		return &fairLane{level: l, aged: q.levels.picker.aged(), finish: q.order.finishes()}
	}
	p := new(plainLane)
	q.arrange(p)
	return p
}

// arrange tells a lane which end of it goes first.
func (q *Queue) arrange(p *plainLane) {
	p.newest = q.order.Within == Lifo && !q.levels.picker.aged()
	p.rows = !p.newest && !q.cfg.Sessions
	p.known = false
}

// precedes reports whether a goes before b, which is in the same level and has the
// same fair key.
func (q *Queue) precedes(a, b key) bool {
	if p, ok := q.levels.all[q.msgs.get(b.seq).level].(*plainLane); ok && p.newest {
		return b.before(a)
	}
	return a.before(b)
}
