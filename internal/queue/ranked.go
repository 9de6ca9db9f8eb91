// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"math/bits"
)

// score orders what is first in each level; the least goes first.
type score struct {
	a, b int64
	seq  SeqNo
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
var last = score{math.MaxInt64, math.MaxInt64, math.MaxUint64}

// ranked picks the level with the least score by a tournament: after a change in
// one level only its matches are played again, one for each doubling of the
// number of levels.
type ranked struct {
	ranking
	scores [256]score
	heads  [256]orderKey // what the scores are of, if byAge
	wins   [512]Level    // winner of match m, whose players are those of 2m and 2m+1; level l begins at size+l
	size   int           // levels that the tournament has room for, a power of two
	in     bitmap        // levels that take part
	plays  bitmap        // those of them that are in the tournament; the others have the score last
	dirty  bitmap        // levels whose first may have changed
	until  int64         // scores hold until
	byAge  bool          // scores depend on heads
	shares *weighted     // the ranking, if that is what it is
	guest  guest
}

// guest is a level that has opened and ranks before all others. It does not play:
// most likely it is served and closed before anybody else has changed, and then
// no match has to be played again.
type guest struct {
	level   Level
	present bool
	score   score
}

func newRanked(by ranking) *ranked {
	r := &ranked{ranking: by, until: never, byAge: by.aged()}
	r.shares, _ = by.(*weighted)
	for l := range r.scores {
		r.scores[l] = last
	}
	r.resize(8)
	return r
}

// resize plays all matches of a tournament of so many levels.
func (r *ranked) resize(size int) {
	r.size = size
	for l := range size {
		r.wins[size+l] = Level(l)
	}
	for m := size - 1; m > 0; m-- {
		a, b := r.wins[2*m], r.wins[2*m+1]
		if r.scores[b].before(r.scores[a]) {
			a = b
		}
		r.wins[m] = a
	}
}

func (r *ranked) touch(l Level) { r.dirty.set(l) }

func (r *ranked) joined(l Level, k orderKey) {
	if !r.in.has(l) || r.byAge && k.before(r.heads[l]) {
		r.dirty.set(l)
	}
}

func (r *ranked) served(x *Index, l Level) {
	if r.ranking.served(l, &x.levels.open) {
		r.allDirty()
	}
	r.dirty.set(l)
}

// allDirty says that the score of every level may have changed.
func (r *ranked) allDirty() {
	for w := range r.dirty {
		r.dirty[w] |= r.in[w]
	}
}

func (r *ranked) pick(x *Index, now int64, lo, hi Level) (Level, bool) {
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
		r.until = never
		r.allDirty()
	}
	for w, set := range r.dirty {
		for ; set != 0; set &= set - 1 {
			if l := Level(w<<6 + bits.TrailingZeros64(set)); x.levels.open.has(l) {
				r.refresh(x, l, now)
			} else {
				r.close(l)
			}
		}
	}
	r.dirty = bitmap{}
	if g := &r.guest; g.present {
		if all && g.score.before(r.scores[r.wins[1]]) {
			return g.level, true
		}
		g.present = false
		r.enter(g.level, g.score)
	}
	if all {
		return r.wins[1], !r.in.empty()
	}
	return r.bestOf(lo, hi)
}

// alone spares the only open level its matches. If its first has changed it is
// dirty, as those are that have closed, and stays so: the matches are played when
// there is somebody to play against.
func (r *ranked) alone(l Level) {
	r.in = bitmap{}
	r.in.set(l)
}

// bestOf looks at every level between lo and hi: few receivers ask for a range.
func (r *ranked) bestOf(lo, hi Level) (best Level, found bool) {
	for l := int(lo); l <= int(hi); l++ {
		if r.in.has(Level(l)) && (!found || r.scores[l].before(r.scores[best])) {
			best, found = Level(l), true
		}
	}
	return best, found
}

// refresh works out the score of an open level, which plays its matches or is a guest.
func (r *ranked) refresh(x *Index, l Level, now int64) {
	r.in.set(l)
	if r.byAge {
		r.heads[l], _ = x.levels.all[l].oldest(x)
	}
	s, until := r.score(l, r.heads[l], now)
	r.until = min(r.until, until)
	if !r.plays.has(l) && (!r.guest.present || r.guest.level == l) {
		r.guest = guest{l, true, s}
		return
	}
	r.enter(l, s)
}

// close says that a level takes part no more.
func (r *ranked) close(l Level) {
	r.in.clear(l)
	if r.guest.level == l {
		r.guest.present = false
	}
	if r.plays.has(l) {
		r.plays.clear(l)
		r.scores[l] = last
		r.play(l)
	}
}

// enter gives a level its score in the tournament.
func (r *ranked) enter(l Level, s score) {
	r.plays.set(l)
	r.scores[l] = s
	for int(l) >= r.size {
		r.resize(2 * r.size)
	}
	r.play(l)
}

// play plays the matches of a level whose score has changed. Who wins one cannot
// be guessed, so it is chosen without a branch unless the scores begin alike.
func (r *ranked) play(l Level) {
	best, a := l, r.scores[l].a
	for m := r.size + int(l); m > 1; m >>= 1 {
		o := r.wins[m^1]
		other := r.scores[o].a
		if other == a && r.scores[o].before(r.scores[best]) {
			best = o
		}
		if other < a {
			best = o
		}
		a = min(a, other)
		r.wins[m>>1] = best
	}
}
