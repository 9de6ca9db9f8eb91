// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"

	"github.com/triagemq/triagemq/internal/machine"
)

// restore is how far a replay has come.
type restore struct {
	begun   bool // there was a record, or a command
	loading bool // within the snapshot that the history begins with
	fresh   bool // nothing is known yet about what is in memory only
	tolerance
}

// Restored implements [machine.Machine].
func (s *Groups) Restored() bool { return !s.restore.loading }

// Replay implements [machine.Machine]. Records say all of what they are about. So those of a
// snapshot and those of commands in between are simply applied in order: what the
// snapshot has not shown yet, it shows as the commands left it.
func (s *Groups) Replay(rec []byte, out *machine.Effects) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: empty", errCorrupt)
	}
	kind, in := rec[0], machine.NewReader(rec[1:])
	r := &in
	if !s.restore.begun && kind != kindCreated && kind != kindBegin && !s.restore.on {
		return fmt.Errorf("%w: kind %d before the groups were created", errCorrupt, kind)
	}
	err := s.replay(kind, r)
	s.restore.begun, s.restore.fresh = true, true
	switch {
	case err != nil:
	case r.Bad():
		err = fmt.Errorf("%w: kind %d is cut short or out of range", errCorrupt, kind)
	case r.Len() > 0:
		err = fmt.Errorf("%w: kind %d has %d bytes too many", errCorrupt, kind, r.Len())
	}
	return err
}

func (s *Groups) replay(kind byte, r *machine.Reader) error {
	switch kind {
	case kindCreated:
		if len(s.list) > 0 && !s.restore.loading && !s.restore.on {
			return fmt.Errorf("%w: created twice", errCorrupt)
		}
		return nil
	case kindBegin:
		s.restore.loading = s.restore.loading || !s.restore.begun
		return nil
	case kindEnd:
		return s.replayEnd(r)
	case kindMember, kindGone, kindForget:
		return s.replayMember(kind, r)
	case kindOwner, kindCheckpoint, kindHold, kindClaim:
		return s.replayPart(kind, r)
	}
	return fmt.Errorf("%w: unknown kind %d", errCorrupt, kind)
}

// replayEnd takes the last record of a snapshot.
func (s *Groups) replayEnd(r *machine.Reader) error {
	last, floor := readMillis(r), int64(r.UpTo(maxEpoch))
	if r.Bad() {
		return nil
	}
	s.last, s.floor = max(s.last, last), max(s.floor, floor)
	s.restore.loading = false
	if s.restore.on {
		s.mend()
	}
	if err := s.Check(); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	return nil
}

// groupOf returns the group that a record names, which is made if it is not there.
func (s *Groups) groupOf(r *machine.Reader) *group {
	g, err := s.open(readName(r))
	if err != nil {
		r.Fail()
	}
	return g
}

func (s *Groups) replayMember(kind byte, r *machine.Reader) error {
	g := s.groupOf(r)
	if r.Bad() {
		return nil
	}
	switch kind {
	case kindMember:
		as, since, leaving := readMember(r)
		if r.Bad() {
			return nil
		}
		if g.member(as.ID) == nil && len(g.members) >= maxMembers {
			return fmt.Errorf("%w: too many members", errCorrupt)
		}
		g.setMember(as, since, leaving)
		s.last = max(s.last, since)
	case kindGone:
		id := readName(r)
		if r.Bad() {
			return nil
		}
		if g.member(id) == nil && !s.restore.loading && !s.restore.on {
			return fmt.Errorf("%w: a member that is not there has gone", errCorrupt)
		}
		g.dropMember(id)
	case kindForget:
		i, _ := s.search(g.name)
		s.drop(i)
	}
	return nil
}

func (s *Groups) replayPart(kind byte, r *machine.Reader) error {
	g, n := s.groupOf(r), r.UpTo(maxPartitions-1)
	if r.Bad() {
		return nil
	}
	switch kind {
	case kindOwner:
		return s.replayOwner(g, int(n), r)
	case kindCheckpoint:
		seq, at := readCheckpoint(r)
		if !r.Bad() {
			p := g.part(int(n))
			p.seq, p.doneAt = seq, max(at, 1) // 0 is that there is none
			s.last = max(s.last, at)
		}
	case kindHold:
		paused, cool := readHold(r)
		if !r.Bad() {
			g.setHold(g.part(int(n)), paused, cool)
		}
	case kindClaim:
		c := readClaim(r)
		if !r.Bad() {
			c.owner = g.claimant(c.owner)
			g.setClaim(g.part(int(n)), c)
			s.last = max(s.last, c.at)
		}
	}
	return nil
}

func (s *Groups) replayOwner(g *group, n int, r *machine.Reader) error {
	epoch, owner, since := readOwner(r)
	if r.Bad() {
		return nil
	}
	p := g.part(n)
	if !s.restore.on {
		if epoch < p.epoch {
			return fmt.Errorf("%w: epoch %d after %d", errCorrupt, epoch, p.epoch)
		}
		if owner != "" && !s.restore.loading && g.member(owner) == nil {
			return fmt.Errorf("%w: the owner is not a member", errCorrupt)
		}
	}
	if owner == "" {
		since = 0
	}
	if m := g.member(owner); m != nil {
		owner = m.ID // one of them is enough
	}
	if owner != "" {
		g.handling(p) // its owner comes back: memory, and the reserve for a snapshot, are as before
	}
	p.epoch, p.owner, p.since = max(epoch, p.epoch), owner, since
	s.last = max(s.last, since)
	return nil
}
