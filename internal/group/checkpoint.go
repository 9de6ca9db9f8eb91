// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"slices"
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
	g := s.find(name)
	if g == nil || c.Partition >= len(g.parts) {
		return ErrFenced
	}
	p := &g.parts[c.Partition]
	switch {
	case c.Epoch < 1 || c.Epoch != p.epoch:
		return ErrFenced
	case p.done && c.SeqNo < p.seq:
		return ErrBackwards
	case p.done && c.SeqNo == p.seq:
		return nil
	}
	s.setCheckpoint(now, g, c.Partition, c.SeqNo, out)
	if c.SeqNo > p.handled { // it comes sooner than the next report
		p.handled, p.moved = c.SeqNo, now
	}
	return nil
}

func (s *Groups) setCheckpoint(now time.Time, g *group, n int, to stream.SeqNo, out *machine.Effects) {
	p := &g.parts[n]
	p.done, p.seq, p.doneAt = true, max(to, -1), s.stamp(now)
	p.writeCheckpoint(g, n, out)
}

// SetCheckpoint stores a checkpoint without a fence, for processors that balance by
// themselves.
func (s *Groups) SetCheckpoint(now time.Time, name string, c Checkpoint, out *machine.Effects) error {
	g, _, err := s.openPart(name, c.Partition)
	switch {
	case err != nil:
		return err
	case c.SeqNo < 0 && c.SeqNo != Beginning:
		return ErrPartition
	case len(g.members) > 0:
		return ErrCoordinated
	}
	s.setCheckpoint(now, g, c.Partition, c.SeqNo, out)
	return nil
}

// Rewind sets the checkpoint, back or forth; a negative number is before the first event.
// The epoch rises, so that the owner begins again there, and what was under way is fenced.
func (s *Groups) Rewind(now time.Time, name string, n int, to stream.SeqNo, out *machine.Effects) error {
	g, p, err := s.openPart(name, n)
	if err != nil {
		return err
	}
	s.setCheckpoint(now, g, n, to, out)
	p.epoch = s.nextEpoch(p)
	p.handled, p.moved, p.heard = None, now, time.Time{}
	p.writeOwner(g, n, out)
	if m := g.member(p.owner); m != nil {
		g.note(Change{At: now, Partition: n, From: p.owner, To: p.owner, Why: "rewound"})
		s.tell(m)
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
	if n < 0 || n >= len(g.parts) {
		return ErrPartition
	}
	p := &g.parts[n]
	if p.owner != id || p.epoch != epoch {
		return ErrFenced
	}
	if coolDown > 0 {
		p.setCooling(m.ID, now, coolDown) // id may be a part of something large
		p.writeHold(g, n, out)
	}
	s.free(g, n, "released", out)
	s.passOn(now, g, n, out)
	s.leftIfDone(now, m, out)
	s.scheduleGroup(now, g)
	return nil
}

// MoveAway takes a partition from its owner as a planned move.
func (s *Groups) MoveAway(now time.Time, name string, n int, coolDown time.Duration, out *machine.Effects) error {
	g, p, err := s.openPart(name, n)
	if err != nil {
		return err
	}
	if p.owner == "" {
		return ErrNotOwned
	}
	p.setCooling(p.owner, now, cmp.Or(max(coolDown, 0), defaultCoolDown))
	p.writeHold(g, n, out)
	s.balance(now, g, out)
	return nil
}

// Pause keeps a partition from everybody until a time. A time that is over, as the zero
// value is, ends a pause.
func (s *Groups) Pause(now time.Time, name string, n int, until time.Time, out *machine.Effects) error {
	g, p, err := s.openPart(name, n)
	if err != nil {
		return err
	}
	before := p.paused
	p.paused, p.pauseOver = 0, false
	if until.After(now) {
		p.paused = min(until.UnixMilli(), maxPause)
	}
	if p.paused != before {
		p.writeHold(g, n, out)
	}
	s.balance(now, g, out)
	return nil
}

// setCooling notes that a member does not get the partition for a while.
func (p *part) setCooling(id string, now time.Time, coolDown time.Duration) {
	p.cool = slices.DeleteFunc(p.cool, func(c cooling) bool { return c.member == id || !ms(c.until).After(now) })
	if len(p.cool) >= maxCooling {
		p.cool = slices.Delete(p.cool, 0, 1)
	}
	p.cool = append(p.cool, cooling{member: id, until: now.Add(min(coolDown, maxCoolDown)).UnixMilli()})
}
