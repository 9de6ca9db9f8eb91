// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"slices"
)

// slot is a partition that is assigned.
type slot struct {
	at     int   // the member whose it is, or will be; -1 is nobody's
	coming bool  // it will be: to give it to another costs nothing
	held   int   // whose it is; of no matter to assign
	barred []int // those who cannot have it
}

// nobody is the member of a slot that has none.
const nobody = -1

// assign returns who gets each slot. Every slot has a member, unless all are barred; counts
// differ by at most one, as far as bars allow; and of all such results it is one with
// the fewest moves. What is even already stays as it is.
//
//	held     4 4 0        those who hold most keep the one that is left over
//	quota    3 3 2        (8 slots, 3 members)
//	moves    1 1          each gives what is above its quota, and no more
func assign(slots []slot, members int) []int {
	to := make([]int, len(slots))
	counts := make([]int, members)
	total := 0
	for i := range slots {
		s := &slots[i]
		if to[i] = s.at; s.at != nobody && slices.Contains(s.barred, s.at) {
			to[i] = nobody
		}
		if to[i] != nobody {
			counts[to[i]]++
		}
		if !barredForAll(s, members) {
			total++
		}
	}
	if total == 0 {
		return to
	}
	quota := quotas(counts, total)
	lacks := make([]int, members)
	for m := range lacks {
		lacks[m] = quota[m] - counts[m]
	}
	takeSurplus(slots, to, lacks)
	fill(slots, to, quota, lacks)
	rest(slots, to, members)
	return to
}

// rest gives what bars keep from those who lack some to others: a count that is not even is
// better than a slot without a member.
func rest(slots []slot, to []int, members int) {
	var counts []int
	for i := range slots {
		s := &slots[i]
		if to[i] != nobody || barredForAll(s, members) {
			continue
		}
		if counts == nil {
			counts = make([]int, members)
			for _, m := range to {
				if m != nobody {
					counts[m]++
				}
			}
		}
		to[i] = s.at
		if s.at == nobody || slices.Contains(s.barred, s.at) {
			to[i] = nobody
			for m := range members {
				if !slices.Contains(s.barred, m) && (to[i] == nobody || counts[m] < counts[to[i]]) {
					to[i] = m
				}
			}
		}
		counts[to[i]]++
	}
}

// assignAgain is assign while partitions move. They count for those they move to, so that
// nothing is decided twice; unless fewer would have to move if they stayed.
func assignAgain(slots []slot, members int) []int {
	to := assign(slots, members)
	if !slices.ContainsFunc(slots, func(s slot) bool { return s.coming }) {
		return to
	}
	back := slices.Clone(slots)
	for i := range back {
		back[i].at, back[i].coming = back[i].held, false
	}
	moves := func(to []int) (n int) {
		for i := range slots {
			if slots[i].held != nobody && slots[i].held != to[i] {
				n++
			}
		}
		return n
	}
	if other := assign(back, members); moves(other) < moves(to) {
		return other
	}
	return to
}

func barredForAll(s *slot, members int) bool {
	if len(s.barred) < members {
		return false
	}
	for m := range members {
		if !slices.Contains(s.barred, m) {
			return false
		}
	}
	return true
}

// quotas returns how many slots each member gets. Those who hold most get the ones that
// are left over.
func quotas(counts []int, total int) []int {
	quota := make([]int, len(counts))
	order := make([]int, len(counts))
	for m := range counts {
		order[m] = m
		quota[m] = total / len(counts)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[b], counts[a]) })
	for _, m := range order[:total%len(counts)] {
		quota[m]++
	}
	return quota
}

// takeSurplus takes from those who hold too much, first what they do not really have yet.
func takeSurplus(slots []slot, to, lacks []int) {
	for _, coming := range []bool{true, false} {
		for i := len(slots) - 1; i >= 0; i-- {
			if m := to[i]; m != nobody && lacks[m] < 0 && slots[i].coming == coming {
				to[i] = nobody
				lacks[m]++
			}
		}
	}
}

// fill gives what is nobody's to those who lack some. Slots with bars come first, since
// they have the least choice.
func fill(slots []slot, to, quota, lacks []int) {
	least := slices.Min(quota)
	var open []int // members that lack some
	for m := range lacks {
		if lacks[m] > 0 {
			open = append(open, m)
		}
	}
	take := func(k int) (m int) {
		m = open[k]
		if lacks[m]--; lacks[m] == 0 {
			open = slices.Delete(open, k, k+1)
		}
		return m
	}
	// swap passes the one that is left over to another member, who holds all of theirs.
	swap := func(s *slot) int {
		k := slices.IndexFunc(open, func(m int) bool { return quota[m] > least && lacks[m] == 1 })
		for m := range quota {
			if k >= 0 && quota[m] == least && lacks[m] == 0 && !slices.Contains(s.barred, m) {
				quota[take(k)]--
				quota[m]++
				return m
			}
		}
		return nobody
	}
	for _, barred := range []bool{true, false} {
		for i := range slots {
			s := &slots[i]
			if to[i] != nobody || (len(s.barred) > 0) != barred {
				continue
			}
			if k := slices.IndexFunc(open, func(m int) bool { return !slices.Contains(s.barred, m) }); k >= 0 {
				to[i] = take(k)
			} else if m := swap(s); m != nobody {
				to[i] = m
			} else if x, k := exchange(slots, to, s, open); k >= 0 {
				to[i], to[x] = to[x], take(k)
			}
		}
	}
}

// exchange finds, for a slot that none of those who lack some may have, another slot whose
// member may have it, and who of those who lack some gets that one instead.
func exchange(slots []slot, to []int, s *slot, open []int) (other, k int) {
	best, bestK := -1, -1
	for i := range slots {
		x := &slots[i]
		if to[i] == nobody || slices.Contains(s.barred, to[i]) {
			continue
		}
		k := slices.IndexFunc(open, func(m int) bool { return !slices.Contains(x.barred, m) })
		if k < 0 {
			continue
		}
		if x.at != to[i] || x.coming {
			return i, k // it moves anyway
		}
		if best < 0 {
			best, bestK = i, k
		}
	}
	return best, bestK
}
