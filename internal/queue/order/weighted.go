// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math/bits"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// weighted is stride scheduling. Each level has a virtual time; a delivery advances it by
// 1/weight; the level with the smallest virtual time is next, the higher one of equals.
// With weights 3 (level H) and 1 (level L), in thirds:
//
//	delivery      1  2  3  4  5  6  7  8
//	time of H, L  00 10 13 23 33 43 46 56
//	chosen        H  L  H  H  H  L  H  H     six of H, two of L
//
// A level that becomes non-empty starts at the current virtual time, so it accumulates no
// credit while empty. The cost is 2^40/weight, rounded down. At 2^60 the current time is
// subtracted from all times.
//
// Receivers that accept only a range of levels have an account of their own: the levels
// share the deliveries of these receivers. A delivery counts in every account that has
// its level. In an account that did not choose it, it delays the level by at most one
// delivery. Otherwise a receiver of one level alone could use up the share that the level
// has of all other deliveries. So in each account
//
//	now <= time of a non-empty level <= now + cost of a delivery of the level
//
// and another level precedes a ready level at most once more than the weights of the two
// say.
type weighted struct {
	cost    [256]int64 // of a delivery
	account            // of the receivers of all levels
	ranges  []*account // of receivers of some
	by      *account   // that made the last choice
	picks   uint64     // choices by ranges
}

// account has the virtual time of each level for the receivers of levels lo to hi.
type account struct {
	lo, hi ordering.Level
	time   [256]int64
	now    int64  // the least of a non-empty level at the last choice
	used   uint64 // of a range: number of the last choice
}

const (
	weightUnit = 1 << 40 // cost at weight one: a share is exact to 0.4 % at any weight
	timeLimit  = 1 << 60 // see beginAnew
	maxRanges  = 32      // accounts of ranges; the least recently used is replaced
)

func newWeighted(weights []uint32) *weighted {
	w := new(weighted)
	w.hi = 255
	for l := range w.cost {
		w.cost[l] = weightUnit
		if l < len(weights) && weights[l] > 0 {
			w.cost[l] = weightUnit / int64(weights[l])
		}
	}
	return w
}

func (*weighted) aged() bool                            { return false }
func (*weighted) rank(l ordering.Level, _, _ int64) int { return int(l) }

// score lets a level that was empty start at the current virtual time.
func (w *weighted) score(l ordering.Level, k entries.OrderKey, _ int64) (score, int64) {
	w.time[l] = max(w.time[l], w.now)
	return score{w.time[l], -int64(l), k.Seq}, entries.Never
}

func (w *weighted) served(l ordering.Level, open *bitmap) (all bool) {
	w.charge(w.by, l, w.cost[l], open)
	for _, r := range w.ranges {
		if l >= r.lo && l <= r.hi {
			r.charge(w.by, l, w.cost[l], open)
			r.beginAnew()
		}
	}
	return w.beginAnew()
}

// charge counts a delivery of l that the account by has chosen.
func (a *account) charge(by *account, l ordering.Level, cost int64, open *bitmap) {
	least := max(a.time[l], a.now)
	if by != a {
		for o := range open.between(a.lo, a.hi) {
			least = min(least, max(a.time[o], a.now))
		}
	}
	a.now = least
	a.time[l] = max(a.time[l], least+cost)
}

// beginAnew subtracts the current time from all times before they overflow.
func (a *account) beginAnew() bool {
	if a.now <= timeLimit {
		return false
	}
	for l := range a.time {
		a.time[l] = max(a.time[l]-a.now, 0)
	}
	a.now = 0
	return true
}

// pickFrom chooses for a receiver of a range. It compares every non-empty level in it.
func (w *weighted) pickFrom(open *bitmap, lo, hi ordering.Level) (best ordering.Level, found bool) {
	r := w.accountOf(lo, hi)
	w.by = r
	for l := range open.between(lo, hi) {
		r.time[l] = max(r.time[l], r.now)
		if !found || r.time[l] <= r.time[best] { // the highest of equals
			best, found = l, true
		}
	}
	if found {
		r.now = r.time[best]
	}
	return best, found
}

// accountOf returns the account of a range, which it creates if needed.
func (w *weighted) accountOf(lo, hi ordering.Level) *account {
	w.picks++
	oldest := 0
	for i, r := range w.ranges {
		if r.lo == lo && r.hi == hi {
			r.used = w.picks
			return r
		}
		if r.used < w.ranges[oldest].used {
			oldest = i
		}
	}
	r := &account{lo: lo, hi: hi, used: w.picks}
	if len(w.ranges) == maxRanges {
		w.ranges[oldest] = r
	} else {
		w.ranges = append(w.ranges, r)
	}
	return r
}

// between yields the levels from lo to hi in the set, the lowest first.
func (b *bitmap) between(lo, hi ordering.Level) func(func(ordering.Level) bool) {
	return func(yield func(ordering.Level) bool) {
		for w := int(lo >> 6); w <= int(hi>>6); w++ {
			for set := b[w]; set != 0; set &= set - 1 {
				l := ordering.Level(w<<6 + bits.TrailingZeros64(set))
				if l >= lo && l <= hi && !yield(l) {
					return
				}
			}
		}
	}
}
