// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// Latest implements [machine.Machine].
func (s *Groups) Latest() time.Time { return ms(s.last) }

// Refs implements [machine.Machine]: there are no bodies.
func (s *Groups) Refs(machine.Cursor, *machine.Budget, func(machine.Ref)) (next machine.Cursor, done bool) {
	return 0, true
}

// Check implements [machine.Machine]. The numbers are those of the invariants in doc.go.
func (s *Groups) Check() error {
	if s.restore.loading {
		return nil
	}
	members, parts, size := 0, 0, int64(0)
	for i, g := range s.list {
		members, size = members+len(g.members), size+g.size
		switch {
		case i > 0 && s.list[i-1].name >= g.name || !validName(g.name):
			return fmt.Errorf("invariant 1: group %q is out of order", g.name)
		case len(g.members) > maxMembers || len(g.parts) > maxPartitions:
			return fmt.Errorf("invariant 4: %d members, %d partitions", len(g.members), len(g.parts))
		case len(g.changes) > maxChanges:
			return fmt.Errorf("invariant 4: %d changes", len(g.changes))
		}
		for k, m := range g.members {
			if k > 0 && g.members[k-1].ID >= m.ID || m.group != g {
				return fmt.Errorf("invariant 1: member %q is out of order", m.ID)
			}
		}
		counted := groupSize(g.name) + int64(len(g.parts))*slotCost
		for n, p := range g.used() {
			if err := g.check(n, p); err != nil {
				return err
			}
			parts++
			counted += p.cost()
		}
		for _, m := range g.members {
			counted += m.cost()
		}
		if g.replaced != nil {
			counted += replacedCost
		}
		for i := range g.changes {
			counted += g.changes[i].cost()
		}
		if counted != g.size {
			return fmt.Errorf("invariant 5: group %q takes %d bytes, counted %d", g.name, counted, g.size)
		}
	}
	if size != s.size {
		return fmt.Errorf("invariant 5: groups take %d bytes, counted %d", size, s.size)
	}
	if members != s.members || parts != s.parts {
		return fmt.Errorf("invariant 1: counts %d members and %d partitions, found %d and %d", s.members, s.parts, members, parts)
	}
	return nil
}

func (g *group) check(n int, p *part) error {
	l := p.look()
	switch {
	case p.owner != "" && g.member(p.owner) == nil:
		return fmt.Errorf("invariant 2: the owner of partition %d is not a member", n)
	case p.owner != "" && p.epoch < 1:
		return fmt.Errorf("invariant 3: partition %d has an owner and no epoch", n)
	case p.owner == "" && (p.revoked() || p.since != 0):
		return fmt.Errorf("invariant 2: partition %d is revoked from nobody", n)
	case l.next != "" && g.member(l.next) == nil:
		return fmt.Errorf("invariant 2: partition %d is to move to nobody", n)
	case len(p.cooling()) > maxCooling:
		return fmt.Errorf("invariant 4: %d members do not get partition %d", len(p.cooling()), n)
	}
	return nil
}
