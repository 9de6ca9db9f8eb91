// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// modes is how a strict queue may choose: by level, or by shares because it is
// saturated. Both are possible if the queue may have been evaluated at an
// unknown moment: between half a limit and the whole limit the last evaluation
// decides.
type modes struct{ strict, shares bool }

var (
	onlyStrict = modes{strict: true}
	onlyShares = modes{shares: true}
)

// pressure is what makes a queue saturated.
type pressure struct {
	ready int64
	wait  time.Duration
}

// saturable reports whether the queue goes over to shares when there is too much.
func (q *modelQueue) saturable() bool {
	return q.order.Discipline == queue.Strict && q.order.Saturation != queue.Saturation{}
}

// shares reports whether levels have shares, always or at times.
func (q *modelQueue) shares() bool {
	return q.order.Discipline == queue.Weighted || q.saturable()
}

// reached reports whether there is too much: a limit is reached or, once it was,
// more than half of one.
func (p pressure) reached(s queue.Saturation, saturated bool) bool {
	if saturated {
		return s.Waiting > 0 && p.ready > s.Waiting/2 || s.Oldest > 0 && p.wait > s.Oldest/2
	}
	return s.Waiting > 0 && p.ready >= s.Waiting || s.Oldest > 0 && p.wait >= s.Oldest
}

// pressures returns the least and the most that there can be: what has expired may
// be there still, and what a pace lets go by now may be shut away still.
func (q *modelQueue) pressures(now time.Time) (least, most pressure) {
	for _, m := range q.messages {
		if m.state != queue.Ready {
			continue
		}
		most.ready++
		if !m.expired(now) {
			least.ready++
		} else if q.eligible(now, m.key) && q.held[m.session].nonce == 0 {
			most.wait = max(most.wait, now.Sub(m.since))
		}
	}
	for _, m := range q.candidates(now) {
		if !q.eligible(now, m.key) {
			continue
		}
		most.wait = max(most.wait, now.Sub(m.since))
		if !q.order.Fair || q.share(m.key).Rate == 0 {
			least.wait = max(least.wait, now.Sub(m.since))
		}
	}
	return least, most
}

// possibleModes returns how a message may be chosen now. Expired messages are
// removed one by one, with an evaluation after each, so there may be two
// changes in a row.
func (q *modelQueue) possibleModes(now time.Time) modes {
	if !q.saturable() {
		return onlyStrict
	}
	least, most := q.pressures(now)
	may := q.turns.mode
	for range 2 {
		var next modes
		for _, p := range [...]pressure{least, most} {
			for _, was := range [...]bool{false, true} {
				if was && !may.shares || !was && !may.strict {
					continue
				}
				if p.reached(q.order.Saturation, was) {
					next.shares = true
				} else {
					next.strict = true
				}
			}
		}
		may = next
	}
	return may
}

// mayBeEvaluated records that the queue may or may not have been evaluated in
// its present state.
func (q *modelQueue) mayBeEvaluated() {
	if q.saturable() {
		may := q.possibleModes(*q.now)
		q.turns.mode.strict = q.turns.mode.strict || may.strict
		q.turns.mode.shares = q.turns.mode.shares || may.shares
	}
}

// decide says that a message is chosen now. Shares begin anew each time that the
// queue becomes saturated.
func (q *modelQueue) decide(now time.Time) {
	if !q.saturable() {
		return
	}
	was := q.turns.mode
	q.turns.mode = q.possibleModes(now)
	if was != onlyShares || q.turns.mode != onlyShares {
		clear(q.turns.lags)
		clear(q.turns.waits)
	}
}

// shared reports whether it is certain that levels have shares.
func (q *modelQueue) shared() bool {
	return q.order.Discipline == queue.Weighted || q.saturable() && q.turns.mode == onlyShares
}

// mayShare reports whether levels can have shares for the next message.
func (q *modelQueue) mayShare(now time.Time) bool {
	return q.order.Discipline == queue.Weighted || q.possibleModes(now).shares
}
