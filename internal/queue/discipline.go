// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// newPicker returns the discipline of an order.
func newPicker(o Order) picker {
	switch o.Discipline {
	case Aging:
		return newWinnerTree(&aging{every: int64(o.Every), upTo: o.UpTo})
	case Deadline:
		return newWinnerTree(&deadline{objective: o.Objective})
	case Weighted:
		return newWinnerTree(newWeighted(o.Weight))
	}
	if o.Saturation != (Saturation{}) {
		return &saturatingStrict{limit: o.Saturation, weight: o.Weight}
	}
	return strict{}
}

// strict serves the highest open level. It remembers nothing.
type strict struct{}

func (strict) headChanged(Level)      {}
func (strict) joined(Level, orderKey) {}
func (strict) served(*Index, Level)   {}
func (strict) aged() bool             { return false }

func (strict) pick(x *Index, _ int64, lo, hi Level) (Level, bool) {
	return x.levels.open.highest(lo, hi)
}

func (strict) score(l Level, k orderKey, _ int64) (score, int64) {
	return score{-int64(l), k.at, k.seq}, never
}

func (strict) rank(l Level, _, _ int64) int { return int(l) }

// ranking is a discipline whose order among levels follows from a score of what
// is first in each.
type ranking interface {
	score(l Level, k orderKey, now int64) (s score, until int64)
	rank(l Level, enqueued, now int64) int
	aged() bool
	// served says that a message of l was handed out. It reports whether the scores
	// of all levels have changed, not only that of l.
	served(l Level, open *bitmap) (all bool)
}

// aging lifts a message by one level for every interval it waited. Inside a
// level the oldest is lifted most, so it is enough to look at the oldest.
type aging struct {
	every int64 // zero: nobody rises
	upTo  Level
}

func (*aging) aged() bool                 { return true }
func (*aging) entered(Level)              {}
func (*aging) served(Level, *bitmap) bool { return false }

func (a *aging) rank(l Level, enqueued, now int64) int {
	if now-enqueued < a.every || a.every <= 0 || l >= a.upTo {
		return int(l) // mostly so, and to divide takes long
	}
	return int(min(int64(l)+(now-enqueued)/a.every, int64(a.upTo)))
}

func (a *aging) score(l Level, k orderKey, now int64) (score, int64) {
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
func (*deadline) served(Level, *bitmap) bool   { return false }
func (*deadline) rank(l Level, _, _ int64) int { return int(l) }
func (d *deadline) score(l Level, k orderKey, _ int64) (score, int64) {
	due := int64(never)
	if int(l) < len(d.objective) && d.objective[l] > 0 {
		due = int64(addClamped(d.objective[l], k.at))
	}
	return score{due, -int64(l), k.seq}, never
}
