// SPDX-License-Identifier: Apache-2.0

package order

import (
	"math"
	"math/bits"

	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
)

// score ranks the head of a level; the least is delivered first.
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

// noScore is the score of a level that is not in the tree. Every other score is before
// it, even one without a deadline, because no message has this sequence number.
var noScore = score{math.MaxInt64, math.MaxInt64, math.MaxUint64}

// winnerTree picks the level with the least score by a tournament. Node m of the array
// winner has the better of its children 2m and 2m+1; level l is the leaf size+l, so for
// 8 levels
//
//	                 1 (the best level)
//	        2                         3
//	   4         5               6         7
//	 8   9    10   11         12   13   14   15
//	L0   L1   L2   L3         L4   L5   L6   L7
//
// A new score of L5 recomputes nodes 6, 3 and 1: log2(size) comparisons. The tree starts
// with 8 levels and doubles when a higher one becomes non-empty. Only levels marked dirty
// are scored again, and at the time until all of them: with aging, time changes scores, and
// with deadlines it makes heads late.
//
// A level that becomes non-empty is kept outside the tree, in fastPath, while it is the
// only such level and beats winner[1]. Usually it is drained before another level
// changes, and the tree needs no update. It enters the tree when it does not win, or when
// a receiver accepts only a range of levels.
type winnerTree struct {
	ranking
	scores   [256]score
	heads    [256]entries.OrderKey // heads that the scores are of, if byAge
	winner   [512]ordering.Level   // the tree; winner[1] is the best level
	size     int                   // leaves, a power of two
	in       bitmap                // non-empty levels
	inTree   bitmap                // those of them that are in the tree; the others have noScore
	dirty    bitmap                // levels whose head may have changed
	until    int64                 // when scores change by time alone
	byAge    bool                  // scores depend on heads
	shares   *weighted             // the ranking, if that is what it is
	due      *deadline             // the same
	fastPath fastPath
}

// fastPath is the level outside the tree, if present.
type fastPath struct {
	level   ordering.Level
	present bool
	score   score
}

func newWinnerTree(by ranking) *winnerTree {
	r := &winnerTree{ranking: by, until: entries.Never, byAge: by.aged()}
	r.shares, _ = by.(*weighted)
	r.due, _ = by.(*deadline)
	for l := range r.scores {
		r.scores[l] = noScore
	}
	r.resize(8)
	return r
}

// resize builds the tree for so many levels.
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

// markAllDirty marks all levels: any score may have changed.
func (r *winnerTree) markAllDirty() {
	for w := range r.dirty {
		r.dirty[w] |= r.in[w]
	}
}

func (r *winnerTree) pick(x *Index, now int64, lo, hi ordering.Level) (ordering.Level, bool) {
	if r.shares != nil {
		if lo != 0 || hi != 255 {
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
	return r.pickAmong(x, now, lo, hi)
}

// pickAmong is pick for several levels. It updates the scores first.
func (r *winnerTree) pickAmong(x *Index, now int64, lo, hi ordering.Level) (ordering.Level, bool) {
	if now >= r.until { // time changes a score
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
	if r.due != nil && !r.due.late.empty() {
		if late, ok := r.due.late.highest(lo, hi); ok {
			return r.pickAbove(late, hi), true
		}
	}
	all := lo == 0 && hi == 255
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

// pickAbove returns the level to serve up to hi while late is the highest late one there:
// the one above it with the earliest deadline, or late itself if there is none. The scores
// of late levels are those without a deadline, so usually the root of the tree is the
// answer.
func (r *winnerTree) pickAbove(late, hi ordering.Level) ordering.Level {
	best := r.winner[1]
	if g := &r.fastPath; g.present {
		if g.level > late && g.level <= hi && g.score.a != entries.Never && g.score.before(r.scores[best]) {
			return g.level
		}
		g.present = false
		r.enterTree(g.level, g.score)
		best = r.winner[1]
	}
	if best <= late && r.scores[best].a != entries.Never || best > hi {
		best, _ = r.bestOf(late, hi)
	}
	if best < late || r.scores[best].a == entries.Never {
		return late
	}
	return best
}

// alone skips the tree while only one level is non-empty. Dirty levels stay dirty; the
// tree is updated when there is a second level.
func (r *winnerTree) alone(l ordering.Level) {
	r.in = bitmap{}
	r.in.set(l)
}

// bestOf returns the best level from lo to hi that is in the tree. It compares the roots
// of the subtrees that the range consists of.
func (r *winnerTree) bestOf(lo, hi ordering.Level) (best ordering.Level, found bool) {
	for a, b := r.size+int(lo), r.size+min(int(hi)+1, r.size); a < b; a, b = a>>1, b>>1 {
		if a&1 != 0 {
			best, found = r.better(best, found, r.winner[a])
			a++
		}
		if b&1 != 0 {
			b--
			best, found = r.better(best, found, r.winner[b])
		}
	}
	return best, found
}

// better returns the better one of best, if it was found, and l, if it is in the tree.
func (r *winnerTree) better(best ordering.Level, found bool, l ordering.Level) (ordering.Level, bool) {
	if r.inTree.has(l) && (!found || r.scores[l].before(r.scores[best])) {
		return l, true
	}
	return best, found
}

// refresh computes the score of a non-empty level, in the tree or as fastPath.
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

// close removes a level that became empty.
func (r *winnerTree) close(l ordering.Level) {
	r.in.clear(l)
	if r.due != nil {
		r.due.late.clear(l)
	}
	if r.fastPath.level == l {
		r.fastPath.present = false
	}
	if r.inTree.has(l) {
		r.inTree.clear(l)
		r.scores[l] = noScore
		r.update(l)
	}
}

// enterTree sets the score of a level in the tree.
func (r *winnerTree) enterTree(l ordering.Level, s score) {
	r.inTree.set(l)
	r.scores[l] = s
	for int(l) >= r.size {
		r.resize(2 * r.size)
	}
	r.update(l)
}

// update recomputes the nodes above a level whose score has changed. The outcome of a
// comparison cannot be predicted, so there is no branch unless scores start equal.
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
