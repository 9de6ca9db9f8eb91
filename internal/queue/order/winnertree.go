// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"
	"math/bits"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// score orders what is first in each level; the least goes first.
type score struct {
	a, b int64
	seq  entries.SeqNo
}

func (s score) before(t score) bool {
	if s.a != t.a {
		return s.a < t.a
	}
	if s.b != t.b {
		return s.b < t.b
	}
	return s.seq < t.seq
}

// last is the score of a level that does not take part. Whoever does is before
// it, also with a deadline that never comes, because no message has such a number.
var noScore = score{math.MaxInt64, math.MaxInt64, math.MaxUint64}

// winnerTree picks the level with the least score by a tournament: after a change in
// one level only its matches are played again, one for each doubling of the
// number of levels.
type winnerTree struct {
	ranking
	scores   [256]score
	heads    [256]entries.OrderKey // what the scores are of, if byAge
	winner   [512]ordering.Level   // winner of match m, whose players are those of 2m and 2m+1; level l begins at size+l
	size     int                   // levels that the tournament has room for, a power of two
	in       bitmap                // levels that take part
	inTree   bitmap                // those of them that are in the tournament; the others have the score last
	dirty    bitmap                // levels whose first may have changed
	until    int64                 // scores hold until
	byAge    bool                  // scores depend on heads
	shares   *weighted             // the ranking, if that is what it is
	fastPath fastPath
}

// fastPath is a level that has opened and ranks before all others. It does not play:
// most likely it is served and closed before anybody else has changed, and then
// no match has to be played again.
type fastPath struct {
	level   ordering.Level
	present bool
	score   score
}

func newWinnerTree(by ranking) *winnerTree {
	r := &winnerTree{ranking: by, until: entries.Never, byAge: by.aged()}
	r.shares, _ = by.(*weighted)
	for l := range r.scores {
		r.scores[l] = noScore
	}
	r.resize(8)
	return r
}

// resize plays all matches of a tournament of so many levels.
func (r *winnerTree) resize(size int) {
	r.size = size
	for l := range size {
		r.winner[size+l] = ordering.Level(l)
	}
	for m := size - 1; m > 0; m-- {
		a, b := r.winner[2*m], r.winner[2*m+1]
		if r.scores[b].before(r.scores[a]) {
			a = b
		}
		r.winner[m] = a
	}
}

func (r *winnerTree) headChanged(l ordering.Level) { r.dirty.set(l) }

func (r *winnerTree) joined(l ordering.Level, k entries.OrderKey) {
	if !r.in.has(l) || r.byAge && k.Before(r.heads[l]) {
		r.dirty.set(l)
	}
}

func (r *winnerTree) served(x *Index, l ordering.Level) {
	if r.ranking.served(l, &x.levels.open) {
		r.markAllDirty()
	}
	r.dirty.set(l)
}

// markAllDirty says that the score of every level may have changed.
func (r *winnerTree) markAllDirty() {
	for w := range r.dirty {
		r.dirty[w] |= r.in[w]
	}
}

func (r *winnerTree) pick(x *Index, now int64, lo, hi ordering.Level) (ordering.Level, bool) {
	all := lo == 0 && hi == 255
	if r.shares != nil {
		if !all {
			return r.shares.pickFrom(&x.levels.open, lo, hi)
		}
		r.shares.by = &r.shares.account
	}
	if open := &x.levels.open; !open.several() {
		if l, ok := open.only(); ok {
			r.alone(l)
			return l, lo <= l && l <= hi
		}
	}
	if now >= r.until { // somebody has risen
		r.until = entries.Never
		r.markAllDirty()
	}
	for w, set := range r.dirty {
		for ; set != 0; set &= set - 1 {
			if l := ordering.Level(w<<6 + bits.TrailingZeros64(set)); x.levels.open.has(l) {
				r.refresh(x, l, now)
			} else {
				r.close(l)
			}
		}
	}
	r.dirty = bitmap{}
	if g := &r.fastPath; g.present {
		if all && g.score.before(r.scores[r.winner[1]]) {
			return g.level, true
		}
		g.present = false
		r.enterTree(g.level, g.score)
	}
	if all {
		return r.winner[1], !r.in.empty()
	}
	return r.bestOf(lo, hi)
}

// alone spares the only open level its matches. If its first has changed it is
// dirty, as those are that have closed, and stays so: the matches are played when
// there is somebody to play against.
func (r *winnerTree) alone(l ordering.Level) {
	r.in = bitmap{}
	r.in.set(l)
}

// bestOf looks at every level between lo and hi: few receivers ask for a range.
func (r *winnerTree) bestOf(lo, hi ordering.Level) (best ordering.Level, found bool) {
	for l := int(lo); l <= int(hi); l++ {
		if r.in.has(ordering.Level(l)) && (!found || r.scores[l].before(r.scores[best])) {
			best, found = ordering.Level(l), true
		}
	}
	return best, found
}

// refresh works out the score of an open level, which plays its matches or is a guest.
func (r *winnerTree) refresh(x *Index, l ordering.Level, now int64) {
	r.in.set(l)
	if r.byAge {
		r.heads[l], _ = x.levels.all[l].rankKey(x)
	}
	s, until := r.score(l, r.heads[l], now)
	r.until = min(r.until, until)
	if !r.inTree.has(l) && (!r.fastPath.present || r.fastPath.level == l) {
		r.fastPath = fastPath{l, true, s}
		return
	}
	r.enterTree(l, s)
}

// close says that a level takes part no more.
func (r *winnerTree) close(l ordering.Level) {
	r.in.clear(l)
	if r.fastPath.level == l {
		r.fastPath.present = false
	}
	if r.inTree.has(l) {
		r.inTree.clear(l)
		r.scores[l] = noScore
		r.update(l)
	}
}

// enterTree gives a level its score in the tournament.
func (r *winnerTree) enterTree(l ordering.Level, s score) {
	r.inTree.set(l)
	r.scores[l] = s
	for int(l) >= r.size {
		r.resize(2 * r.size)
	}
	r.update(l)
}

// update plays the matches of a level whose score has changed. Who wins one cannot
// be guessed, so it is chosen without a branch unless the scores begin alike.
func (r *winnerTree) update(l ordering.Level) {
	best, a := l, r.scores[l].a
	for m := r.size + int(l); m > 1; m >>= 1 {
		o := r.winner[m^1]
		other := r.scores[o].a
		if other == a && r.scores[o].before(r.scores[best]) {
			best = o
		}
		if other < a {
			best = o
		}
		a = min(a, other)
		r.winner[m>>1] = best
	}
}
