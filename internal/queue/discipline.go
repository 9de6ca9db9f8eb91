// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// newPicker returns the discipline of an order.
func newPicker(o Order) picker {
	switch o.Discipline {
	case Aging:
		return newRanked(&aging{every: int64(o.Every), upTo: o.UpTo})
	case Deadline:
		return newRanked(&deadline{objective: o.Objective})
	case Weighted:
		return newRanked(newWeighted(o.Weight))
	}
	if o.Saturation != (Saturation{}) {
		return &saturable{limit: o.Saturation, weight: o.Weight}
	}
	return strict{}
}

// strict serves the highest open level. It remembers nothing.
type strict struct{}

func (strict) touch(Level)       {}
func (strict) joined(Level, key) {}
func (strict) served(Level)      {}
func (strict) aged() bool        { return false }

func (strict) pick(q *Queue, _ int64, lo, hi Level) (Level, bool) {
	return q.levels.open.highest(lo, hi)
}

func (strict) score(l Level, k key, _ int64) (score, int64) {
	return score{-int64(l), k.at, k.seq}, never
}

func (strict) rank(l Level, _, _ int64) int { return int(l) }

// ranking is a discipline whose order among levels follows from a score of what
// is first in each.
type ranking interface {
	score(l Level, k key, now int64) (s score, until int64)
	rank(l Level, enqueued, now int64) int
	aged() bool
	// entered says that a level has something to hand out again.
	entered(l Level)
	// served says that a message of l was handed out.
	served(l Level)
}

// aging lifts a message by one level for every interval it waited. Inside a
// level the oldest is lifted most, so it is enough to look at the oldest.
type aging struct {
	every int64 // zero: nobody rises
	upTo  Level
}

func (*aging) aged() bool    { return true }
func (*aging) entered(Level) {}
func (*aging) served(Level)  {}

func (a *aging) rank(l Level, enqueued, now int64) int {
	if now-enqueued < a.every || a.every <= 0 || l >= a.upTo {
		return int(l) // mostly so, and to divide takes long
	}
	return int(min(int64(l)+(now-enqueued)/a.every, int64(a.upTo)))
}

func (a *aging) score(l Level, k key, now int64) (score, int64) {
	r := a.rank(l, k.at, now)
	until := int64(never)
	if a.every > 0 && r < int(a.upTo) {
		until = k.at + int64(r-int(l)+1)*a.every
	}
	return score{-int64(r), k.at, k.seq}, until
}

// deadline serves what is due first.
type deadline struct {
	objective []time.Duration // by level
}

func (*deadline) aged() bool                   { return true }
func (*deadline) entered(Level)                {}
func (*deadline) served(Level)                 {}
func (*deadline) rank(l Level, _, _ int64) int { return int(l) }
func (d *deadline) score(l Level, k key, _ int64) (score, int64) {
	due := int64(never)
	if int(l) < len(d.objective) && d.objective[l] > 0 {
		due = int64(later(d.objective[l], k.at))
	}
	return score{due, -int64(l), k.seq}, never
}

// weighted gives every open level its share by letting time pass for it: a
// delivery costs a level time in inverse proportion to its weight, and the level
// for which least time has passed goes first. A level that was empty does not
// save up: it begins at the present of the others.
type weighted struct {
	cost [256]int64 // of a delivery
	time [256]int64 // passed for each level
	now  int64      // time of the level served last
}

const (
	weightUnit = 1 << 40 // cost at weight one: a share is exact to 0.4 % at any weight
	timeLimit  = 1 << 60 // time begins again before it overflows
)

func newWeighted(weights []uint32) *weighted {
	w := new(weighted)
	for l := range w.cost {
		w.cost[l] = weightUnit
		if l < len(weights) && weights[l] > 0 {
			w.cost[l] = weightUnit / int64(weights[l])
		}
	}
	return w
}

func (*weighted) aged() bool                   { return false }
func (*weighted) rank(l Level, _, _ int64) int { return int(l) }
func (w *weighted) entered(l Level)            { w.time[l] = max(w.time[l], w.now) }

func (w *weighted) score(l Level, k key, _ int64) (score, int64) {
	return score{w.time[l], -int64(l), k.seq}, never
}

func (w *weighted) served(l Level) {
	w.now = w.time[l]
	w.time[l] += w.cost[l]
	if w.now > timeLimit {
		for i := range w.time {
			w.time[i] = max(w.time[i]-w.now, 0)
		}
		w.now = 0
	}
}
