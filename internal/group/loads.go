// SPDX-License-Identifier: Apache-2.0

package group

import (
	"math"
	"time"
)

const (
	// loadsEvery is how often the loads of members are compared.
	loadsEvery = time.Minute
	// loadTime is the time over which a load is averaged.
	loadTime = time.Minute
	// restFor is how long a partition stays that has moved because of its load.
	restFor = 5 * time.Minute
	// tolerated is how far above the mean a member may be, and worthwhile how much less
	// a move has to make it, both as a share of the mean.
	tolerated  = 0.10
	worthwhile = 0.05
)

// average is a rate for each second, of which what is older counts less and less.
type average struct {
	rate float64
	any  bool
}

func (a *average) add(amount float64, over time.Duration) {
	if over <= 0 {
		return
	}
	rate := amount / over.Seconds()
	if !a.any {
		a.rate, a.any = rate, true
		return
	}
	a.rate += (rate - a.rate) * (1 - math.Exp(-over.Seconds()/loadTime.Seconds()))
}

// loads returns the load of each partition: the share of time that its owner is busy with
// it, or bytes if no owner tells the time.
func (g *group) loads() []float64 {
	loads := make([]float64, len(g.parts))
	busy := 0.0
	for n, p := range g.used() {
		loads[n] = p.look().busy.rate
		busy += loads[n]
	}
	if busy == 0 {
		for n, p := range g.used() {
			loads[n] = p.look().bytes.rate
		}
	}
	return loads
}

// compareLoads has one partition move, or two change places, if the busiest member has then
// clearly less to do. Counts stay even. It does nothing while something else moves.
func (s *Groups) compareLoads(now time.Time, g *group) {
	g.loadsAt = now.Add(loadsEvery)
	if !g.balanceAt.IsZero() || !g.settled() {
		return
	}
	loads := g.loads()
	of := make(map[string][]int, len(g.members))
	sums := make(map[string]float64, len(g.members))
	total := 0.0
	for n, p := range g.used() {
		if p.owner != "" {
			of[p.owner] = append(of[p.owner], n)
			sums[p.owner] += loads[n]
			total += loads[n]
		}
	}
	mean := total / float64(len(g.members))
	busiest := g.members[0]
	for _, m := range g.members {
		if sums[m.ID] > sums[busiest.ID] {
			busiest = m
		}
	}
	if mean == 0 || sums[busiest.ID] <= mean*(1+tolerated) {
		return
	}
	best := exchangeOf{gain: mean * worthwhile}
	for _, m := range g.members {
		if m != busiest {
			best.look(g, now, loads, of[busiest.ID], of[m.ID], sums[busiest.ID], sums[m.ID], m.ID)
		}
	}
	if best.to == "" {
		return
	}
	s.beginMove(now, g, best.give, best.to)
	if best.take >= 0 {
		s.beginMove(now, g, best.take, busiest.ID)
	}
}

// settled reports whether all members are there and nothing moves.
func (g *group) settled() bool {
	for _, m := range g.members {
		if !m.canTake() {
			return false
		}
	}
	for _, p := range g.used() {
		if p.revoked() {
			return false
		}
	}
	return true
}

// exchangeOf is what makes the busiest member less busy.
type exchangeOf struct {
	to         string
	give, take int // partitions; take -1 is none
	gain       float64
}

// look finds the best exchange with one other member.
func (x *exchangeOf) look(g *group, now time.Time, loads []float64, mine, theirs []int, my, their float64, to string) {
	stays := func(n int, id string) bool {
		p := g.parts[n]
		return p.look().swapped.within(restFor, now) || p.cools(id, now)
	}
	try := func(give, take int) {
		diff := loads[give]
		if take >= 0 {
			diff -= loads[take]
		}
		if gain := my - max(my-diff, their+diff); gain > x.gain {
			*x = exchangeOf{to, give, take, gain}
		}
	}
	for _, give := range mine {
		if stays(give, to) {
			continue
		}
		if len(mine) > len(theirs) {
			try(give, -1)
		}
		for _, take := range theirs {
			if !stays(take, g.parts[give].owner) {
				try(give, take)
			}
		}
	}
}

// beginMove begins to move a partition.
func (s *Groups) beginMove(now time.Time, g *group, n int, to string) {
	p := g.parts[n]
	l := g.handling(p)
	l.next, l.revokeBy, l.swapped = to, momentOf(now.Add(revokeFor)), momentOf(now)
	g.wake(l.revokeBy.time())
	s.tell(g.member(p.owner))
}
