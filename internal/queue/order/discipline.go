// SPDX-License-Identifier: Apache-2.0

package order

import (
	"time"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// newPicker returns the discipline of an order.
func newPicker(o ordering.Order) picker {
	switch o.Discipline {
	case ordering.Aging:
		return newWinnerTree(&aging{every: int64(o.AgingInterval), upTo: o.AgingMaxLevel})
	case ordering.Deadline:
		return newWinnerTree(&deadline{objective: o.Objective})
	case ordering.Weighted:
		return newWinnerTree(newWeighted(o.Weight))
	}
	if o.Saturation != (ordering.Saturation{}) {
		return &saturatingStrict{limit: o.Saturation, weight: o.Weight}
	}
	return strict{}
}

// strict serves the highest non-empty level. It has no state.
type strict struct{}

func (strict) headChanged(ordering.Level)              {}
func (strict) joined(ordering.Level, entries.OrderKey) {}
func (strict) served(*Index, ordering.Level)           {}
func (strict) aged() bool                              { return false }

func (strict) pick(x *Index, _ int64, lo, hi ordering.Level) (ordering.Level, bool) {
	return x.levels.open.highest(lo, hi)
}

func (strict) score(l ordering.Level, k entries.OrderKey, _ int64) (score, int64) {
	return score{-int64(l), k.At, k.Seq}, entries.Never
}

func (strict) rank(l ordering.Level, _, _ int64) int { return int(l) }

// ranking is a discipline that orders levels by a score of the head of each.
type ranking interface {
	score(l ordering.Level, k entries.OrderKey, now int64) (s score, until int64)
	rank(l ordering.Level, enqueued, now int64) int
	aged() bool
	// served says that a message of l was delivered. It reports whether the scores of all
	// levels have changed, not only that of l.
	served(l ordering.Level, open *bitmap) (all bool)
}

// aging raises a message by one level for every interval it waited. Inside a level the
// oldest is raised most, so only the oldest is compared.
type aging struct {
	every int64 // zero: no message is raised
	upTo  ordering.Level
}

func (*aging) aged() bool                          { return true }
func (*aging) entered(ordering.Level)              {}
func (*aging) served(ordering.Level, *bitmap) bool { return false }

func (a *aging) rank(l ordering.Level, enqueued, now int64) int {
	if now-enqueued < a.every || a.every <= 0 || l >= a.upTo {
		return int(l) // the usual case, without a division
	}
	return int(min(int64(l)+(now-enqueued)/a.every, int64(a.upTo)))
}

func (a *aging) score(l ordering.Level, k entries.OrderKey, now int64) (score, int64) {
	r := a.rank(l, k.At, now)
	until := int64(entries.Never)
	if a.every > 0 && r < int(a.upTo) {
		until = k.At + int64(r-int(l)+1)*a.every
	}
	return score{-int64(r), k.At, k.Seq}, until
}

// deadline serves the message with the earliest deadline first.
type deadline struct {
	objective []time.Duration // by level
}

func (*deadline) aged() bool                            { return true }
func (*deadline) served(ordering.Level, *bitmap) bool   { return false }
func (*deadline) rank(l ordering.Level, _, _ int64) int { return int(l) }
func (d *deadline) score(l ordering.Level, k entries.OrderKey, _ int64) (score, int64) {
	due := int64(entries.Never)
	if int(l) < len(d.objective) && d.objective[l] > 0 {
		due = int64(entries.AddClamped(d.objective[l], k.At))
	}
	return score{due, -int64(l), k.Seq}, entries.Never
}
