// SPDX-License-Identifier: Apache-2.0

package group

import (
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// revokeFor is how long an owner has to release a partition that is to move.
const revokeFor = 30 * time.Second

// balanceSoon has the partitions of a group assigned after the join window.
func (s *Groups) balanceSoon(now time.Time, g *group) {
	if g.balanceAt.IsZero() {
		g.balanceAt = now.Add(joinWindow)
		g.wake(g.balanceAt)
	}
}

// canTake reports whether a member may get partitions. One that is not connected keeps
// what it has, and gets nothing.
func (m *member) canTake() bool { return m != nil && m.connected && !m.leaving }

// waits reports whether the partitions of a member stay as they are until it is back.
func (m *member) waits() bool { return m != nil && !m.connected }

// balance assigns the partitions of a group. What is free is granted, what is held by
// another is revoked first.
func (s *Groups) balance(now time.Time, g *group, out *machine.Effects) {
	g.balanceAt = time.Time{}
	if len(g.members) > 0 {
		s.share(g) // some may have been added to the hub
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
	for n, p := range g.used() {
		switch {
		case n >= s.partitions:
		case p.owner != "" && g.member(p.owner).waits():
		case p.isPaused(now):
			s.direct(now, g, n, nil, out)
		default:
			slots, numbers = append(slots, p.slot(index, now)), append(numbers, n)
		}
	}
	for i, m := range assignAgain(slots, len(takers)) {
		if m == nobody {
			s.direct(now, g, numbers[i], nil, out)
		} else {
			s.direct(now, g, numbers[i], takers[m], out)
		}
	}
	if len(g.members) == 0 {
		g.unhandled()
	}
	s.scheduleGroup(now, g)
}

// slot describes a partition for assign.
func (p *part) slot(index map[string]int, now time.Time) slot {
	sl := slot{at: nobody, held: nobody}
	if m, ok := index[p.owner]; ok {
		sl.at, sl.held = m, m
	}
	if m, ok := index[p.look().next]; ok && p.revoked() {
		sl.at, sl.coming = m, true
	}
	for _, c := range p.cooling() {
		if m, ok := index[c.member]; ok && ms(c.until).After(now) && !slices.Contains(sl.barred, m) {
			sl.barred = append(sl.barred, m)
		}
	}
	slices.Sort(sl.barred)
	return sl
}

// direct has a partition go to a member; nil is nobody.
func (s *Groups) direct(now time.Time, g *group, n int, to *member, out *machine.Effects) {
	p := g.parts[n]
	switch {
	case p.owner == "" && to != nil:
		s.grant(now, g, n, to, out)
	case p.owner == "":
		if l := p.look(); l.was != "" {
			g.note(Change{At: now, Partition: n, From: l.was, Why: l.why})
			l.was = ""
		}
	case to != nil && p.owner == to.ID:
		if p.revoked() {
			p.live.revokeBy, p.live.next = 0, ""
			s.tell(to)
		}
	default:
		l := g.handling(p)
		if l.next = ""; to != nil {
			l.next = to.ID
		}
		if l.revokeBy == 0 {
			l.revokeBy = momentOf(now.Add(revokeFor))
			s.tell(g.member(p.owner))
		}
	}
}

// grant gives a partition to a member, with a higher epoch.
func (s *Groups) grant(now time.Time, g *group, n int, to *member, out *machine.Effects) {
	p := g.parts[n]
	l := g.handling(p)
	from, why := l.was, l.why
	if from == "" {
		why = "free"
	}
	if from != "" && from != to.ID {
		g.moves++
	}
	p.release()
	l.was = ""
	p.owner, p.since, l.moved = to.ID, s.stamp(now), momentOf(now)
	p.epoch = s.nextEpoch(p)
	p.writeOwner(g, n, out)
	g.note(Change{At: now, Partition: n, From: from, To: to.ID, Why: why})
	s.tell(to)
}

func (s *Groups) nextEpoch(p *part) int64 { return min(max(p.epoch, s.floor)+1, maxEpoch) }

// release makes a partition nobody's.
func (p *part) release() {
	p.owner, p.since = "", 0
	if l := p.live; l != nil {
		l.next, l.revokeBy = "", 0
		l.handled, l.moved, l.heard = None, 0, 0
	}
}

// free takes a partition from its owner.
func (s *Groups) free(g *group, n int, why string, out *machine.Effects) {
	p := g.parts[n]
	l := g.handling(p)
	s.tell(g.member(p.owner))
	was, next := p.owner, l.next
	p.release()
	l.was, l.why, l.next = was, why, next
	p.writeOwner(g, n, out)
}

// passOn gives a partition that was freed to the one it was to move to. If that is not
// possible it reports false, and everything has to be assigned again.
func (s *Groups) passOn(now time.Time, g *group, n int, out *machine.Effects) bool {
	p := g.parts[n]
	next := g.member(p.look().next)
	if p.live != nil {
		p.live.next = ""
	}
	if next.canTake() && !p.isPaused(now) && !p.cools(next.ID, now) {
		s.grant(now, g, n, next, out)
		return true
	}
	return false
}

// takeOverdue takes the partitions that were not released in time.
func (s *Groups) takeOverdue(now time.Time, g *group, out *machine.Effects) {
	var leaving []*member
	left := false
	for n, p := range g.used() {
		if !p.revoked() || momentOf(now) < p.live.revokeBy {
			continue
		}
		if owner := g.member(p.owner); owner.leaving {
			leaving = append(leaving, owner)
		}
		s.free(g, n, "taken", out)
		left = !s.passOn(now, g, n, out) || left
	}
	if left && g.balanceAt.IsZero() {
		s.balance(now, g, out) // once, however many there are
	}
	for i, m := range leaving {
		if !slices.Contains(leaving[:i], m) {
			s.leftIfDone(now, m, out)
		}
	}
}

// holdsEnd reports whether a pause or a cool-down has ended that keeps a partition from
// being assigned.
func (g *group) holdsEnd(now time.Time) bool {
	if len(g.members) == 0 {
		return false
	}
	ended := false
	for _, p := range g.used() {
		h := p.hold
		if h == nil {
			continue
		}
		if h.paused != 0 && !p.isPaused(now) && !h.pauseOver {
			h.pauseOver, ended = true, true
		}
		for i := range h.cool {
			if c := &h.cool[i]; !c.over && !ms(c.until).After(now) {
				c.over, ended = true, true
			}
		}
	}
	return ended
}

// note adds to the history.
func (g *group) note(c Change) {
	if len(g.changes) >= maxChanges {
		g.grow(-g.changes[0].cost())
		g.changes = g.changes[:copy(g.changes, g.changes[1:])]
	}
	g.changes = append(g.changes, c)
	g.grow(c.cost())
}
