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

// newLane returns an empty lane for level l by the settings of the queue.
func (q *Queue) newLane(l Level) lane {
	aged := q.levels.picker.aged()
	if o := &q.cfg.Order; o.Fair {
		return &fairLane{level: l, aged: aged, finish: o.finishes()}
	}
	newest := q.cfg.Order.Within == Lifo && !aged
	return &plainLane{newest: newest, rows: !newest && !q.cfg.Sessions}
}

// precedes reports whether a goes before b, which is in the same level and has the
// same fair key.
func (q *Queue) precedes(a, b key) bool {
	if p, ok := q.levels.all[q.msgs.get(b.seq).level].lane.(*plainLane); ok && p.newest {
		return b.before(a)
	}
	return a.before(b)
}
