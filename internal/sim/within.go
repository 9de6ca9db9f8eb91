// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/queue"
)

// The order inside a level, straight from its definition.

// finishes reports whether keys that were started go first.
func (q *modelQueue) finishes() bool { return finishes(q.order) }

func finishes(o queue.Order) bool { return o.Fair && o.LevelOrder == queue.FinishFirst }

// hand records that a message is delivered, and reports whether its key is
// started by that.
func (q *modelQueue) hand(m *modelMessage) (starts bool) {
	if m.key == "" || !q.finishes() || slices.Contains(q.started, m.key) {
		return false
	}
	q.change()
	q.started = append(q.started, m.key)
	return !q.void
}

// known returns the keys that were started, as far as a crash leaves them so.
func (q *modelQueue) known() []string {
	if q.void {
		return nil
	}
	return q.started
}

// forget drops the keys that have no messages left in any state.
func (q *modelQueue) forget() {
	q.started = slices.DeleteFunc(q.started, func(key string) bool {
		return !q.finishes() || !slices.ContainsFunc(q.messages, func(m *modelMessage) bool { return m.key == key })
	})
}

// turn is the position of the key of a message among those started.
func (q *modelQueue) turn(m *modelMessage) int {
	if i := slices.Index(q.started, m.key); i >= 0 {
		return i
	}
	return math.MaxInt
}

// ages compares two messages by their age, the oldest first.
func ages(a, b *modelMessage) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.seq, b.seq))
}

// inside compares two messages of one line.
func (q *modelQueue) inside(a, b *modelMessage) int {
	switch {
	case q.finishes():
		return cmp.Or(cmp.Compare(q.turn(a), q.turn(b)), ages(a, b))
	case q.order.LevelOrder == queue.Lifo:
		return ages(b, a)
	}
	return ages(a, b)
}

// catchUp removes what has expired and was cleared away, so that it is known which
// keys are left.
func (q *modelQueue) catchUp(real *queue.Queue) {
	for _, m := range slices.Clone(q.messages) {
		if _, ok := real.Lookup(m.seq); !ok && m.expired(*q.now) && !(q.cfg.DeadLetterExpired && !q.cfg.DeadLetterQueue) {
			q.remove(m)
		}
	}
}
