// SPDX-License-Identifier: Apache-2.0

package queue

import "math/bits"

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

// ranked picks the level with the least score by a tournament: after a change in
// one level only its eight matches are played again, however many levels there
// are.
type ranked struct {
	ranking
	scores [256]score
	heads  [256]key   // what the scores are of
	wins   [256]int16 // winner of match m, whose players come from 2m and 2m+1; nobody if none came
	in     bitmap     // levels that take part
	dirty  bitmap     // levels whose first may have changed
	until  int64      // scores hold until
}

// nobody wins a match to which no level comes.
const nobody = -1

func newRanked(by ranking) *ranked {
	r := &ranked{ranking: by, until: never}
	for m := range r.wins {
		r.wins[m] = nobody
	}
	return r
}

func (r *ranked) touch(l Level) { r.dirty.set(l) }

func (r *ranked) joined(l Level, k key) {
	if !r.in.has(l) || k.before(r.heads[l]) {
		r.dirty.set(l)
	}
}

func (r *ranked) served(l Level) {
	r.ranking.served(l)
	r.dirty.set(l)
}

func (r *ranked) pick(q *Queue, now int64, lo, hi Level) (Level, bool) {
	if now >= r.until { // somebody has risen
		r.until = never
		for w := range r.dirty {
			r.dirty[w] |= r.in[w]
		}
	}
	for w := range r.dirty {
		for r.dirty[w] != 0 {
			l := Level(w<<6 + bits.TrailingZeros64(r.dirty[w]))
			r.dirty.clear(l)
			r.refresh(q, l, now)
		}
	}
	if lo == 0 && hi == 255 {
		return Level(r.wins[1]), r.wins[1] != nobody
	}
	return r.bestOf(lo, hi)
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

// refresh works out the score of a level and plays its matches.
func (r *ranked) refresh(q *Queue, l Level, now int64) {
	was := r.in.has(l)
	r.in.clear(l)
	if q.levels.open.has(l) {
		if !was {
			r.entered(l)
		}
		k, _ := q.levels.all[l].lane.oldest(q)
		s, until := r.score(l, k, now)
		r.scores[l], r.heads[l], r.until = s, k, min(r.until, until)
		r.in.set(l)
	}
	for m := (256 + int(l)) / 2; m > 0; m /= 2 {
		was := r.wins[m]
		r.wins[m] = r.match(r.player(2*m), r.player(2*m+1))
		if r.wins[m] == was && was != int16(l) {
			return // further up nobody met l, or will
		}
	}
}

// player returns who comes to a match: the winner of an earlier one, or a level.
func (r *ranked) player(m int) int16 {
	switch {
	case m < 256:
		return r.wins[m]
	case r.in.has(Level(m - 256)):
		return int16(m - 256)
	}
	return nobody
}

func (r *ranked) match(a, b int16) int16 {
	if a == nobody || b != nobody && r.scores[b].before(r.scores[a]) {
		return b
	}
	return a
}
