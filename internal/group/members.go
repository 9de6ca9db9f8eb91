// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

const (
	// joinWindow is how long an assignment waits for others to join or leave.
	joinWindow = 200 * time.Millisecond
	// silence is after what time without a report a member is given up. After a restart
	// every member has that long to come back.
	silence = 10 * time.Second
	// grace is how long partitions wait for a member whose connection is lost.
	grace = 500 * time.Millisecond
	// maxKeep bounds Member.Keep.
	maxKeep = time.Hour
	// keepUnknown bounds it after a restart, when it is not known by whose right a member
	// had joined, and whether there is that right still.
	keepUnknown = time.Minute
)

// Join adds a member, or brings one back: the same run keeps its partitions and their
// epochs. Another run gets the same partitions with higher ones, since the handlers of the
// one before are gone. A run whose place another has taken does not get it back: ErrTaken.
func (s *Groups) Join(now time.Time, name string, as Member, out *machine.Effects) error {
	if !validName(as.ID) || !validName(as.Run) || len(as.Name) > maxName {
		return ErrName
	}
	as.Keep = min(max(as.Keep, 0), maxKeep).Truncate(time.Millisecond)
	if g := s.find(name); g != nil && g.superseded(&as) {
		return ErrTaken
	}
	as.Back = false
	m := s.member(name, as.ID)
	if m == nil {
		if err := s.fits(s.costOf(name, -1) + as.cost()); err != nil {
			return err
		}
		if err := s.admitMember(now, s.find(name), as.Key, out); err != nil {
			return err
		}
	}
	g, err := s.open(name)
	if err != nil {
		return err
	}
	switch {
	case m == nil:
		m = g.setMember(as, s.stamp(now), false)
		m.write(out)
		s.share(g)
	case m.Run != as.Run:
		g.noteReplaced(m.ID, m.Run)
		g.setMember(as, s.stamp(now), false).connected = true
		m.write(out)
		s.restarted(now, m, out)
	case m.Name != as.Name || m.Keep != as.Keep:
		g.setMember(as, m.since, m.leaving)
		m.write(out)
	case m.Key != as.Key:
		g.setMember(as, m.since, m.leaving) // nothing of it is stored
	}
	m.connected, m.heard, m.until = true, now, now.Add(silence)
	s.version = max(s.version, uint64(max(now.UnixMilli(), 0))) // above those of the life before
	g.wake(m.until)
	s.tell(m)
	s.balanceSoon(now, g)
	return nil
}

// admitMember has a member give way to a new one if the group is full, or if the key of the new
// one has as many as one may have. Only those that are away do: of the key that has the most
// members the one that was heard the longest time ago.
func (s *Groups) admitMember(now time.Time, g *group, key string, out *machine.Effects) error {
	if g == nil || len(g.members) < maxOfKey {
		return nil
	}
	counts := make(map[string]int)
	for _, m := range g.members {
		counts[m.Key]++
	}
	ownOnly := key != "" && counts[key] >= maxOfKey
	if !ownOnly && len(g.members) < maxMembers {
		return nil
	}
	var least *member
	for _, m := range g.members {
		if m.connected || ownOnly && m.Key != key {
			continue
		}
		if least == nil || cmp.Or(
			cmp.Compare(counts[least.Key], counts[m.Key]), // those of the key with the most first
			m.heard.Compare(least.heard),
			cmp.Compare(least.since, m.since), // after a restart nobody was heard: who joined last
		) < 0 {
			least = m
		}
	}
	switch {
	case least != nil:
		s.remove(now, least, ErrUnknownMember, out)
		return nil
	case ownOnly:
		return fmt.Errorf("%w: %d have joined with this key, and one key may have %d", ErrMembers, counts[key], maxOfKey)
	}
	return fmt.Errorf("%w: there are %d", ErrMembers, len(g.members))
}

// share makes the partitions that members share: their memory is taken with the first member,
// since nobody can be refused when they are assigned.
func (s *Groups) share(g *group) {
	for n := range s.partitions {
		g.handling(g.part(n))
	}
}

// setMember adds a member or replaces what is stored of it.
func (g *group) setMember(as Member, since int64, leaving bool) *member {
	i, ok := g.search(as.ID)
	if !ok {
		g.members = slices.Insert(g.members, i, &member{group: g})
		g.all.members++
	}
	m := g.members[i]
	if ok {
		g.grow(-m.cost())
	}
	m.Member, m.since, m.leaving = as, since, leaving
	g.grow(m.cost())
	return m
}

// restarted gives a member that has another run its partitions anew. What was to move
// needs no release any more.
func (s *Groups) restarted(now time.Time, m *member, out *machine.Effects) {
	g, left := m.group, false
	for n, p := range g.used() {
		switch {
		case p.owner != m.ID:
		case !p.revoked():
			l := g.handling(p)
			l.was, l.why = m.ID, "restarted"
			s.grant(now, g, n, m, out)
		default:
			s.free(g, n, "restarted", out)
			left = !s.passOn(now, g, n, out) || left
		}
	}
	if left && g.balanceAt.IsZero() {
		s.balance(now, g, out)
	}
}

// Gone says that the connection of a member is lost. Its partitions wait for it.
func (s *Groups) Gone(now time.Time, name, id string) {
	if m := s.member(name, id); m != nil && m.connected {
		m.connected = false
		m.until = now.Add(max(grace, m.keep()))
		m.group.wake(m.until)
	}
}

// KeepUntil bounds how long the partitions of a member that is away wait for it.
func (s *Groups) KeepUntil(now time.Time, name, id string, latest time.Time) {
	if m := s.member(name, id); m != nil && !m.connected && m.until.After(latest) {
		m.until = later(latest, now)
		m.group.wake(m.until)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Expel removes a member at once: it has lost the right by which it joined. Its partitions
// are free. A member with another run has nothing to do with that.
func (s *Groups) Expel(now time.Time, name, id, run string, out *machine.Effects) {
	if m := s.member(name, id); m != nil && m.Run == run {
		s.remove(now, m, ErrUnknownMember, out)
	}
}

// keep is how long the partitions of a member wait for it. One that leaves does not come
// back.
func (m *member) keep() time.Duration {
	if m.leaving {
		return 0
	}
	return m.Keep
}

// Leave gives all partitions of a member back as a planned move. It is a member until the
// last is released or taken.
func (s *Groups) Leave(now time.Time, name, id string, out *machine.Effects) error {
	m := s.member(name, id)
	switch {
	case m == nil:
		return ErrUnknownMember
	case m.group.held(id) == 0:
		s.remove(now, m, ErrLeft, out)
	case !m.leaving:
		m.leaving = true
		m.write(out)
		if !m.connected && !m.until.IsZero() && m.until.After(now.Add(grace)) {
			m.until = now.Add(grace) // nobody waits for it any more
			m.group.wake(m.until)
		}
		s.balanceSoon(now, m.group)
	}
	return nil
}

func (s *Groups) member(name, id string) *member {
	if g := s.find(name); g != nil {
		return g.member(id)
	}
	return nil
}

// Report is a sign of life of a member, with how far it is.
func (s *Groups) Report(now time.Time, name, id string, progress []Progress) error {
	m := s.member(name, id)
	if m == nil {
		return ErrUnknownMember
	}
	m.heard = now
	if m.connected {
		m.until = now.Add(silence) // Tick looks at it when the time before is over
	}
	for _, x := range progress {
		p := m.group.at(x.Partition)
		if p == nil || p.owner != id {
			continue
		}
		l := m.group.handling(p)
		l.skipped += x.Skipped // also before a rewind of which the owner has not heard
		if x.Epoch != 0 && x.Epoch != p.epoch {
			continue // it is about a grant before this one, which had other events to handle
		}
		if x.Handled >= 0 && x.Handled != l.handled {
			l.handled, l.moved = x.Handled, momentOf(now)
		}
		if l.heard != 0 {
			over := time.Duration(momentOf(now) - l.heard)
			l.busy.add(float64(x.BusyNanos)/1e9, over)
			l.bytes.add(float64(x.Bytes), over)
		}
		l.heard = momentOf(now)
	}
	return nil
}

// remove forgets a member. Its partitions are free.
func (s *Groups) remove(now time.Time, m *member, err error, out *machine.Effects) {
	g := m.group
	out.Begin(kindGone)
	out.String(g.name)
	out.String(m.ID)
	out.End()
	why := "lost"
	if m.leaving {
		why = "left"
	}
	for _, p := range g.used() {
		if p.owner == m.ID {
			l := g.handling(p)
			l.was, l.why = m.ID, why
		}
	}
	g.dropMember(m.ID)
	s.end(m, err)
	if g.balanceAt.IsZero() || len(g.members) == 0 { // Tick does it, so that others can go first
		g.balanceAt = now
		g.wake(now)
	}
}

// dropMember forgets a member, as a record says it.
func (g *group) dropMember(id string) {
	for _, p := range g.used() {
		if p.owner == id {
			p.release()
		}
		if p.live != nil && p.live.next == id {
			p.live.next = ""
		}
	}
	if i, ok := g.search(id); ok {
		g.grow(-g.members[i].cost())
		g.members = slices.Delete(g.members, i, i+1)
		g.all.members--
	}
}

// leftIfDone removes a member that leaves and has nothing any more.
func (s *Groups) leftIfDone(now time.Time, m *member, out *machine.Effects) {
	if m != nil && m.leaving && m.group.held(m.ID) == 0 {
		s.remove(now, m, ErrLeft, out)
	}
}

// wake has Tick look at the group then.
func (g *group) wake(t time.Time) {
	if g.due.IsZero() || t.Before(g.due) {
		g.due = t
	}
	if s := g.all; s.due.IsZero() || t.Before(s.due) {
		s.due = t
	}
}

// NextDeadline implements [machine.Machine].
func (s *Groups) NextDeadline() (time.Time, bool) {
	if s.restore.fresh {
		return time.Time{}, true // Tick has to find out
	}
	return s.due, !s.due.IsZero()
}

// stalled is how much later than due Tick comes if the broker itself did not run.
const stalled = 2 * time.Second

// excuse gives members that are connected time to report: the broker has heard nobody.
func (s *Groups) excuse(now time.Time) {
	for _, g := range s.list {
		for _, m := range g.members {
			if m.connected {
				m.until = now.Add(silence)
			}
		}
	}
}

// tickBytes is after how many bytes of records a Tick leaves the other groups to the next:
// what it writes is one group of the journal.
const tickBytes = 256 << 10

// Tick does what time has made due. If that is much, some of it stays due.
func (s *Groups) Tick(now time.Time, out *machine.Effects) {
	if !s.due.IsZero() && now.Sub(s.due) > stalled {
		s.excuse(now)
	}
	before := out.Size()
	for i, g := range s.list {
		if !s.restore.fresh && (g.due.IsZero() || now.Before(g.due)) {
			continue // it is not looked at: there may be many, with many partitions
		}
		g.due = time.Time{}
		s.tick(now, g, out)
		g.due = time.Time{} // what was due in between is done
		s.scheduleGroup(now, g)
		if out.Size()-before > tickBytes && i+1 < len(s.list) {
			s.due = now
			return
		}
	}
	s.restore.fresh, s.due = false, time.Time{}
	for _, g := range s.list {
		if !g.due.IsZero() && (s.due.IsZero() || g.due.Before(s.due)) {
			s.due = g.due
		}
	}
}

func (s *Groups) tick(now time.Time, g *group, out *machine.Effects) {
	for _, m := range slices.Clone(g.members) {
		if m.until.IsZero() { // it was there before the restart
			m.until = now.Add(max(silence, min(m.keep(), keepUnknown)))
		}
		if !now.Before(m.until) {
			s.remove(now, m, ErrUnknownMember, out)
		}
	}
	s.takeOverdue(now, g, out)
	if g.holdsEnd(now) || !g.balanceAt.IsZero() && !now.Before(g.balanceAt) {
		s.balance(now, g, out)
	}
	if len(g.members) > 1 && !g.loadsAt.IsZero() && !now.Before(g.loadsAt) {
		s.compareLoads(now, g)
	}
}

// scheduleGroup notes when something is due in a group.
func (s *Groups) scheduleGroup(now time.Time, g *group) {
	for _, m := range g.members {
		g.wake(m.until)
	}
	if len(g.members) == 0 {
		return
	}
	if !g.balanceAt.IsZero() {
		g.wake(g.balanceAt)
	}
	if len(g.members) > 1 {
		if g.loadsAt.IsZero() || now.Sub(g.loadsAt) > stalled { // there was nobody to compare with
			g.loadsAt = now.Add(loadsEvery)
		}
		g.wake(g.loadsAt)
	}
	for _, p := range g.used() {
		if p.revoked() {
			g.wake(p.live.revokeBy.time())
		}
		if p.hold == nil {
			continue
		}
		if t := ms(p.hold.paused); t.After(now) {
			g.wake(t)
		}
		for _, c := range p.hold.cool {
			if t := ms(c.until); t.After(now) {
				g.wake(t)
			}
		}
	}
}
