// SPDX-License-Identifier: Apache-2.0

package group

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// revokeFor is how long an owner has to release a partition that is to move.
const revokeFor = 30 * time.Second

// balanceSoon has the partitions of a group assigned after the join window.
func (s *Groups) balanceSoon(now time.Time, g *group) {
	if g.balanceAt.IsZero() {
		g.balanceAt = now.Add(joinWindow)
		s.at(g.balanceAt)
	}
}

// canTake reports whether a member may get partitions. One that is not connected keeps
// what it has, and gets nothing.
func (m *member) canTake() bool { return m != nil && m.connected && !m.leaving }

// waits reports whether the partitions of a member stay as they are until it is back.
func (m *member) waits() bool { return m != nil && !m.connected }

func (p *part) isPaused(now time.Time) bool { return ms(p.paused).After(now) }

func (p *part) cools(id string, now time.Time) bool {
	for _, c := range p.cool {
		if c.member == id && ms(c.until).After(now) {
			return true
		}
	}
	return false
}

// balance assigns the partitions of a group. What is free is granted, what is held by
// another is revoked first.
func (s *Groups) balance(now time.Time, g *group, out *machine.Effects) {
	g.balanceAt = time.Time{}
	if s.partitions > 0 && len(g.members) > 0 {
		g.part(s.partitions - 1)
	}
	var takers []*member
	index := make(map[string]int)
	for _, m := range g.members {
		if m.canTake() {
			index[m.ID] = len(takers)
			takers = append(takers, m)
		}
	}
	var slots []slot
	var numbers []int
	for n := range min(len(g.parts), s.partitions) {
		p := &g.parts[n]
		switch {
		case p.owner != "" && g.member(p.owner).waits():
		case p.isPaused(now):
			s.direct(now, g, n, nil, out)
		default:
			slots, numbers = append(slots, p.slot(index, takers, now)), append(numbers, n)
		}
	}
	for i, m := range assignAgain(slots, len(takers)) {
		if m == nobody {
			s.direct(now, g, numbers[i], nil, out)
		} else {
			s.direct(now, g, numbers[i], takers[m], out)
		}
	}
	s.scheduleGroup(now, g)
}

// slot describes a partition for assign.
func (p *part) slot(index map[string]int, takers []*member, now time.Time) slot {
	sl := slot{at: nobody, held: nobody}
	if m, ok := index[p.owner]; ok {
		sl.at, sl.held = m, m
	}
	if m, ok := index[p.next]; ok && !p.revokeBy.IsZero() {
		sl.at, sl.coming = m, true
	}
	if len(p.cool) > 0 {
		for m, x := range takers {
			if p.cools(x.ID, now) {
				sl.barred = append(sl.barred, m)
			}
		}
	}
	return sl
}

// direct has a partition go to a member; nil is nobody.
func (s *Groups) direct(now time.Time, g *group, n int, to *member, out *machine.Effects) {
	p := &g.parts[n]
	switch {
	case p.owner == "" && to != nil:
		s.grant(now, g, n, to, out)
	case p.owner == "":
		if p.was != "" {
			g.note(Change{At: now, Partition: n, From: p.was, Why: p.why})
			p.was = ""
		}
	case to != nil && p.owner == to.ID:
		if !p.revokeBy.IsZero() {
			p.revokeBy, p.next = time.Time{}, ""
			s.tell(to)
		}
	default:
		if p.next = ""; to != nil {
			p.next = to.ID
		}
		if p.revokeBy.IsZero() {
			p.revokeBy = now.Add(revokeFor)
			s.tell(g.member(p.owner))
		}
	}
}

// grant gives a partition to a member, with a higher epoch.
func (s *Groups) grant(now time.Time, g *group, n int, to *member, out *machine.Effects) {
	p := &g.parts[n]
	from, why := p.was, p.why
	if from == "" {
		why = "free"
	}
	if from != "" && from != to.ID {
		g.moves++
	}
	p.release()
	p.was = ""
	p.owner, p.since, p.moved = to.ID, s.stamp(now), now
	p.epoch = s.nextEpoch(p)
	p.writeOwner(g, n, out)
	g.note(Change{At: now, Partition: n, From: from, To: to.ID, Why: why})
	s.tell(to)
}

func (s *Groups) nextEpoch(p *part) int64 { return min(max(p.epoch, s.floor)+1, maxEpoch) }

// release makes a partition nobody's.
func (p *part) release() {
	p.owner, p.since = "", 0
	p.next, p.revokeBy = "", time.Time{}
	p.handled, p.moved, p.heard = None, time.Time{}, time.Time{}
}

// free takes a partition from its owner.
func (s *Groups) free(g *group, n int, why string, out *machine.Effects) {
	p := &g.parts[n]
	s.tell(g.member(p.owner))
	was, next := p.owner, p.next
	p.release()
	p.was, p.why, p.next = was, why, next
	p.writeOwner(g, n, out)
}

// passOn gives a partition that was freed to the one it was to move to. If that is not
// possible, everything is assigned again.
func (s *Groups) passOn(now time.Time, g *group, n int, out *machine.Effects) {
	p := &g.parts[n]
	next := g.member(p.next)
	p.next = ""
	if next.canTake() && !p.isPaused(now) && !p.cools(next.ID, now) {
		s.grant(now, g, n, next, out)
	} else if g.balanceAt.IsZero() {
		s.balance(now, g, out)
	}
}

// takeOverdue takes the partitions that were not released in time.
func (s *Groups) takeOverdue(now time.Time, g *group, out *machine.Effects) {
	for n := range g.parts {
		p := &g.parts[n]
		if p.revokeBy.IsZero() || now.Before(p.revokeBy) {
			continue
		}
		owner := g.member(p.owner)
		s.free(g, n, "taken", out)
		s.passOn(now, g, n, out)
		s.leftIfDone(now, owner, out)
	}
}

// holdsEnd reports whether a pause or a cool-down has ended that keeps a partition from
// being assigned.
func (g *group) holdsEnd(now time.Time) bool {
	if len(g.members) == 0 {
		return false
	}
	ended := false
	for n := range g.parts {
		p := &g.parts[n]
		if p.paused != 0 && !p.isPaused(now) && !p.pauseOver {
			p.pauseOver, ended = true, true
		}
		for i := range p.cool {
			if c := &p.cool[i]; !c.over && !ms(c.until).After(now) {
				c.over, ended = true, true
			}
		}
	}
	return ended
}

// note adds to the history.
func (g *group) note(c Change) {
	if len(g.changes) >= maxChanges {
		g.changes = g.changes[:copy(g.changes, g.changes[1:])]
	}
	g.changes = append(g.changes, c)
}
