// SPDX-License-Identifier: Apache-2.0

package group

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// even reports whether the counts of a result differ by at most one, and every slot has
// a member.
func even(to []int, members int) bool {
	counts := make([]int, members)
	for _, m := range to {
		if m == nobody {
			return false
		}
		counts[m]++
	}
	return slices.Max(counts)-slices.Min(counts) <= 1
}

func moved(slots []slot, to []int) (n int) {
	for i := range slots {
		if slots[i].at != nobody && to[i] != slots[i].at {
			n++
		}
	}
	return n
}

// fewest tries every even result.
func fewest(slots []slot, members int) int {
	best := len(slots) + 1
	to := make([]int, len(slots))
	var try func(i int)
	try = func(i int) {
		if i == len(to) {
			if even(to, members) {
				best = min(best, moved(slots, to))
			}
			return
		}
		for m := range members {
			if !slices.Contains(slots[i].barred, m) {
				to[i] = m
				try(i + 1)
			}
		}
	}
	try(0)
	return best
}

func slotsAt(at []int) []slot {
	slots := make([]slot, len(at))
	for i := range at {
		slots[i].at = at[i]
	}
	return slots
}

// Every state of up to five slots and four members.
func TestAssignIsEvenWithTheFewestMoves(t *testing.T) {
	for members := 1; members <= 4; members++ {
		for n := 1; n <= 5; n++ {
			at := make([]int, n)
			for i := range at {
				at[i] = nobody
			}
			for more := true; more; {
				slots := slotsAt(at)
				to := assign(slots, members)
				if !even(to, members) {
					t.Fatalf("%v for %d members: %v is not even", at, members, to)
				}
				if got, want := moved(slots, to), fewest(slots, members); got != want {
					t.Fatalf("%v for %d members: %v moves %d, want %d", at, members, to, got, want)
				}
				if again := assign(slotsAt(to), members); !slices.Equal(again, to) {
					t.Fatalf("%v for %d members: %v, then %v", at, members, to, again)
				}
				more = false
				for i := range at { // the next state
					if at[i]++; at[i] < members {
						more = true
						break
					}
					at[i] = nobody
				}
			}
		}
	}
}

// minimum is how many moves are needed at least: what is above the quotas, if those who
// hold most have the higher ones.
func minimum(at []int, members int) (n int) {
	counts := make([]int, members)
	for _, m := range at {
		if m != nobody {
			counts[m]++
		}
	}
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	for i, c := range counts {
		quota := len(at) / members
		if i < len(at)%members {
			quota++
		}
		n += max(0, c-quota)
	}
	return n
}

func TestAssignOfMany(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		members, at := 1+rnd.IntN(40), make([]int, rnd.IntN(200))
		for i := range at {
			at[i] = rnd.IntN(members+1) - 1
		}
		slots := slotsAt(at)
		to := assign(slots, members)
		if !even(to, members) && len(at) > 0 {
			t.Fatalf("%v for %d members: %v is not even", at, members, to)
		}
		if got, want := moved(slots, to), minimum(at, members); got != want {
			t.Fatalf("%v for %d members: %d moves, want %d", at, members, got, want)
		}
	}
}

// With few bars a result is even if there is one that is, and nobody gets what they are
// barred from.
func TestAssignWithBars(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		members, slots := 2+rnd.IntN(3), make([]slot, 1+rnd.IntN(5))
		for i := range slots {
			slots[i].at = rnd.IntN(members+1) - 1
		}
		b := &slots[rnd.IntN(len(slots))]
		b.barred = []int{rnd.IntN(members)}
		to := assign(slots, members)
		if !even(to, members) {
			t.Fatalf("%+v for %d members: %v is not even", slots, members, to)
		}
		for i := range slots {
			if slices.Contains(slots[i].barred, to[i]) {
				t.Fatalf("%+v: %v gives slot %d to a member that is barred", slots, to, i)
			}
		}
		if got, want := moved(slots, to), fewest(slots, members); got > want+1 {
			t.Fatalf("%+v for %d members: %v moves %d, want %d", slots, members, to, got, want)
		}
	}
}

func TestAssignLeavesOutWhatNobodyMayHave(t *testing.T) {
	slots := []slot{{at: 0, barred: []int{1, 0}}, {at: 0}, {at: nobody}}
	if to := assign(slots, 2); !slices.Equal(to, []int{nobody, 0, 1}) {
		t.Errorf("got %v", to)
	}
	if to := assign(slots[:1], 2); !slices.Equal(to, []int{nobody}) {
		t.Errorf("got %v", to)
	}
}

// What is only on its way is given to another before what is held.
func TestAssignRedirectsWhatIsComing(t *testing.T) {
	slots := []slot{{at: 0}, {at: 0}, {at: 1, coming: true}, {at: 1}}
	if to := assign(slots, 3); !slices.Equal(to, []int{0, 0, 2, 1}) {
		t.Errorf("got %v", to)
	}
}

func FuzzAssign(f *testing.F) {
	f.Add([]byte{0, 1, 2, 255, 16, 33}, 3)
	f.Fuzz(func(t *testing.T, data []byte, members int) {
		members = 1 + (members&0x7fffffff)%16
		slots := make([]slot, min(len(data), 300))
		for i := range slots {
			slots[i] = slot{at: int(data[i]&15)%(members+1) - 1, coming: data[i]&16 != 0}
			if data[i]&32 != 0 {
				slots[i].barred = []int{int(data[i]>>6) % members}
			}
		}
		to := assign(slots, members)
		for i, m := range to {
			if m < nobody || m >= members || slices.Contains(slots[i].barred, m) {
				t.Fatalf("%+v: slot %d goes to %d", slots, i, m)
			}
		}
	})
}

// However many bars there are, a slot that somebody may have has a member, and soon nothing
// moves any more.
func TestAssignWithManyBars(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20000 {
		members, slots := 1+rnd.IntN(4), make([]slot, 1+rnd.IntN(6))
		for i := range slots {
			slots[i].at = rnd.IntN(members+1) - 1
			for m := range members {
				if rnd.IntN(3) == 0 {
					slots[i].barred = append(slots[i].barred, m)
				}
			}
		}
		to := assign(slots, members)
		for i, m := range to {
			if (m == nobody) != barredForAll(&slots[i], members) || slices.Contains(slots[i].barred, m) {
				t.Fatalf("%+v for %d members: %v", slots, members, to)
			}
		}
		rounds := 0
		for again, before := slices.Clone(slots), []int(nil); !slices.Equal(before, to); rounds++ {
			if rounds == 5 {
				t.Fatalf("%+v for %d members: %v, and still %v", slots, members, before, to)
			}
			for i := range again {
				again[i].at = to[i]
			}
			before, to = to, assign(again, members)
		}
	}
}
