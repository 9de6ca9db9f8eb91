// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

const (
	// defaultCoolDown is how long a member does not get a partition back that was moved
	// away from it, if nothing else is said.
	defaultCoolDown = 30 * time.Second
	maxCoolDown     = 24 * time.Hour
)

// maxPause is the latest end of a pause: the last day of the year 9999.
const maxPause = 253_402_214_400_000

// Checkpoint stores how far a partition is handled. Only the epoch of the last grant may do
// that, and only forwards. [Beginning] says that none is handled yet.
func (s *Groups) Checkpoint(now time.Time, name string, c Checkpoint, out *machine.Effects) error {
	if c.Partition < 0 || c.Partition >= s.partitions || c.SeqNo < 0 && c.SeqNo != Beginning {
		return ErrPartition
	}
	c.SeqNo = max(c.SeqNo, -1)
	g, p, _ := s.findPart(name, c.Partition)
	switch {
	case p == nil || c.Epoch < 1 || c.Epoch != p.epoch:
		return ErrFenced
	case p.done() && c.SeqNo < p.seq:
		return ErrBackwards
	case p.done() && c.SeqNo == p.seq:
		return nil
	}
	s.setCheckpoint(now, g, c.Partition, c.SeqNo, out)
	if l := p.live; l != nil && c.SeqNo > l.handled { // it comes sooner than the next report
		l.handled, l.moved = c.SeqNo, momentOf(now)
	}
	return nil
}

func (s *Groups) setCheckpoint(now time.Time, g *group, n int, to stream.SeqNo, out *machine.Effects) {
	p := g.parts[n]
	p.seq, p.doneAt = max(to, -1), s.stamp(now)
	p.writeCheckpoint(g, n, out)
}

// SetCheckpoint stores a checkpoint without a fence, for processors that balance by
// themselves.
func (s *Groups) SetCheckpoint(now time.Time, name string, c Checkpoint, out *machine.Effects) error {
	g, _, err := s.findPart(name, c.Partition)
	switch {
	case err != nil:
		return err
	case c.SeqNo < 0 && c.SeqNo != Beginning:
		return ErrPartition
	case g != nil && len(g.members) > 0:
		return ErrCoordinated
	}
	if g, _, err = s.openPart(name, c.Partition, 0); err != nil {
		return err
	}
	s.setCheckpoint(now, g, c.Partition, c.SeqNo, out)
	return nil
}

// Rewind sets the checkpoint, back or forth; a negative number is before the first event.
// The epoch rises, so that the owner begins again there, and what was under way is fenced.
func (s *Groups) Rewind(now time.Time, name string, n int, to stream.SeqNo, out *machine.Effects) error {
	return s.RewindAll(now, name, []int{n}, []stream.SeqNo{to}, out)
}

// rewind is Rewind after everything that refuses it.
func (s *Groups) rewind(now time.Time, g *group, n int, to stream.SeqNo, out *machine.Effects) {
	p := g.part(n)
	s.setCheckpoint(now, g, n, to, out)
	p.epoch = s.nextEpoch(p)
	if l := p.live; l != nil {
		l.handled, l.moved, l.heard = None, momentOf(now), 0
	}
	p.writeOwner(g, n, out)
	if m := g.member(p.owner); m != nil {
		g.note(Change{At: now, Partition: n, From: p.owner, To: p.owner, Why: "rewound"})
		s.tell(m)
	}
}

// RewindAll is Rewind of several partitions, all of them or none.
func (s *Groups) RewindAll(now time.Time, name string, parts []int, to []stream.SeqNo, out *machine.Effects) error {
	if err := s.partsFit(name, parts, 0); err != nil {
		return err
	}
	g, err := s.open(name)
	if err != nil {
		return err
	}
	for i, n := range parts { // nothing refuses it any more: the history takes memory, too
		s.rewind(now, g, n, to[i], out)
	}
	return nil
}

// Release gives up a partition that its owner has stopped to handle. The owner does not get
// it back for the cool-down, if it asks for one.
func (s *Groups) Release(now time.Time, name, id string, n int, epoch int64, coolDown time.Duration, out *machine.Effects) error {
	m := s.member(name, id)
	if m == nil {
		return ErrUnknownMember
	}
	g := m.group
	p := g.at(n)
	switch {
	case n < 0 || n >= len(g.parts):
		return ErrPartition
	case p == nil || p.owner != id || p.epoch != epoch:
		return ErrFenced
	}
	// Without memory for a cool-down there is none: a release is never refused.
	if coolDown > 0 && s.fits(holdCost+coolCost+int64(len(id))) == nil {
		g.setHold(p, p.paused(), p.cooled(m.ID, now, coolDown)) // id may be a part of something large
		p.writeHold(g, n, out)
	}
	s.free(g, n, "released", out)
	if !s.passOn(now, g, n, out) && g.balanceAt.IsZero() {
		s.balance(now, g, out)
	}
	s.leftIfDone(now, m, out)
	s.scheduleGroup(now, g)
	return nil
}

// MoveAway takes a partition from its owner as a planned move; at once if the owner is away.
func (s *Groups) MoveAway(now time.Time, name string, n int, coolDown time.Duration, out *machine.Effects) error {
	g, p, err := s.findPart(name, n)
	switch {
	case err != nil:
		return err
	case p == nil || p.owner == "":
		return ErrNotOwned
	}
	if err := s.fits(holdCost + coolCost + int64(len(p.owner))); err != nil {
		return err
	}
	g.setHold(p, p.paused(), p.cooled(p.owner, now, cmp.Or(max(coolDown, 0), defaultCoolDown)))
	p.writeHold(g, n, out)
	if g.member(p.owner).waits() {
		s.free(g, n, "taken", out)
	}
	s.balance(now, g, out)
	return nil
}

// Pause keeps partitions from everybody until a time, all of them if none is given. A time
// that is over, as the zero value is, ends a pause.
func (s *Groups) Pause(now time.Time, name string, parts []int, until time.Time, out *machine.Effects) error {
	paused := int64(0)
	if until.After(now) {
		paused = min(until.UnixMilli(), maxPause)
	}
	if len(parts) == 0 {
		parts = make([]int, s.partitions)
		for n := range parts {
			parts[n] = n
		}
	}
	if paused != 0 {
		if err := s.partsFit(name, parts, holdCost); err != nil {
			return err
		}
	}
	for _, n := range parts {
		_, p, err := s.findPart(name, n)
		if err != nil {
			return err
		}
		if p == nil && paused == 0 || p != nil && p.paused() == paused {
			continue // it is as it should be
		}
		g, p, err := s.openPart(name, n, 0)
		if err != nil {
			return err
		}
		g.setHold(p, paused, p.cooling())
		p.writeHold(g, n, out)
	}
	if g := s.find(name); g != nil {
		s.balance(now, g, out) // once for all of them
	}
	return nil
}

// PauseBytes returns how many bytes of records a pause of partitions writes at most, of all if
// none is given, when each record takes so many besides. They are one group of the journal,
// and say who is kept from each partition.
func (s *Groups) PauseBytes(name string, parts []int, record int) int {
	g, n := s.find(name), len(parts)
	if n == 0 {
		n = s.partitions
	}
	size := n * (record + len(name) + 32)
	cooling := func(p *part) {
		for _, c := range p.cooling() {
			size += len(c.member) + 16
		}
	}
	if g != nil && len(parts) == 0 {
		for _, p := range g.used() {
			cooling(p)
		}
	}
	for _, n := range parts {
		if p := g.at(n); p != nil {
			cooling(p)
		}
	}
	return size
}

// partsFit refuses what is about partitions that there are not, or for which there is no
// memory. Each that is not held needs as much more.
func (s *Groups) partsFit(name string, parts []int, held int64) error {
	need, last := int64(0), -1
	for _, n := range parts {
		_, p, err := s.findPart(name, n)
		if err != nil {
			return err
		}
		if p == nil {
			need += partCost
		}
		if p == nil || p.hold == nil {
			need += held
		}
		last = max(last, n)
	}
	g := s.find(name)
	if g == nil {
		g, need = &group{}, need+groupSize(name)
	}
	return s.fits(need + int64(max(last+1-len(g.parts), 0))*slotCost)
}
