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

// deadline serves the message with the earliest deadline first, while it can still be met.
// A level whose oldest message is late is served by its level instead: after the levels
// above it, before those below. So the late levels divide the others, and a pick looks
// only above the highest late one:
//
//	level 9   due in 8 s     \  above: the earliest deadline is first
//	level 7   due in 3 s     /
//	level 5   late by 1 m       next, when nothing above it waits
//	level 3   due in 1 s        waits for level 5, until its oldest message is in time
//
// Without this rule a backlog that is long overdue would go ahead of every new message,
// however high. Levels without an objective come after all others, late or not.
type deadline struct {
	objective []time.Duration // by level
	late      bitmap          // levels whose head is late, as of the last refresh
}

func (*deadline) aged() bool                            { return true }
func (*deadline) served(ordering.Level, *bitmap) bool   { return false }
func (*deadline) rank(l ordering.Level, _, _ int64) int { return int(l) }

// score notes whether a level is late. Then, and without an objective, it is that of a
// level without a deadline.
func (d *deadline) score(l ordering.Level, k entries.OrderKey, now int64) (score, int64) {
	switch due := d.due(l, k.At); {
	case due == entries.Never:
		d.late.clear(l)
	case now > due:
		d.late.set(l)
	default:
		d.late.clear(l)
		return score{due, -int64(l), k.Seq}, due + 1
	}
	return score{entries.Never, -int64(l), k.Seq}, entries.Never
}

// due returns the deadline of a message, Never if its level has no objective.
func (d *deadline) due(l ordering.Level, since int64) int64 {
	if int(l) < len(d.objective) && d.objective[l] > 0 {
		return int64(entries.AddClamped(d.objective[l], since))
	}
	return entries.Never
}

// precedes reports whether o is delivered before e, if nothing else arrives and no time
// passes. That is so for the higher one of them if either is late, or a level is between
// whose late messages go before the lower one.
func (d *deadline) precedes(o, e *entries.Entry, now int64) bool {
	if o.Level < e.Level {
		return !d.precedes(e, o, now)
	}
	due, other := d.due(o.Level, o.OrderTime), d.due(e.Level, e.OrderTime)
	switch {
	case o.Level == e.Level:
		return o.Key().Before(e.Key())
	case other == entries.Never:
		return true
	case due == entries.Never:
		return false
	case now > due, now > other:
		return true
	}
	_, divided := d.late.highest(e.Level, o.Level-1)
	return divided || due <= other
}
