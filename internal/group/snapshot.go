// SPDX-License-Identifier: Apache-2.0

package group

import (
	"github.com/triagemq/triagemq/internal/machine"
)

// snapshot writes the groups by name: the members of each by id, then its partitions. It
// remembers names, not places, since commands may run between its steps. What they add
// behind it is in their own records.
type snapshot struct {
	s     *Groups
	begun bool
	group string // that is being written; those before are done
	id    string // the last member of it that is done
	parts int    // how many partitions of it are done; -1 while members are not
}

// Snapshot implements [machine.Machine].
func (s *Groups) Snapshot() machine.Snapshot { return &snapshot{s: s, parts: -1} }

// Settling implements [machine.Machine]: a checkpoint for each partition.
func (s *Groups) Settling() (records, bytes uint64) { return uint64(s.parts), 64 * uint64(s.parts) }

// SnapshotSize implements [machine.Machine]. What is in memory only of a partition that has an
// owner makes up for its name, which is in the record and is not counted.
func (s *Groups) SnapshotSize() uint64 {
	return 64 + uint64(s.size) + 100*uint64(s.members) + 120*uint64(s.parts) + uint64(s.repeated)
}

// Upcoming implements [machine.Snapshot]: there are no bodies.
func (x *snapshot) Upcoming(machine.Budget, func(machine.Ref)) {}

// Step implements [machine.Snapshot].
func (x *snapshot) Step(b *machine.Budget, _ func(machine.Ref) (machine.Ref, bool), out *machine.Effects) (done bool) {
	before := out.Size()
	if !x.begun {
		x.begun = true
		out.Begin(kindBegin)
		out.End()
	}
	for b.Left() {
		more := x.item(out)
		b.Items--
		b.Bytes -= out.Size() - before
		before = out.Size()
		if !more {
			return true
		}
	}
	return false
}

// item writes the next member or partition, or the end.
func (x *snapshot) item(out *machine.Effects) (more bool) {
	i, ok := x.s.search(x.group)
	if !ok {
		x.id, x.parts = "", -1 // it begins with the next one
	}
	if i == len(x.s.list) {
		out.Begin(kindEnd)
		out.Uint(uint64(x.s.last))
		out.Uint(uint64(x.s.floor))
		out.End()
		return false
	}
	g := x.s.list[i]
	x.group = g.name
	if x.parts < 0 {
		k, ok := g.search(x.id)
		if ok {
			k++
		}
		if k < len(g.members) {
			x.id = g.members[k].ID
			g.members[k].write(out)
			return true
		}
		x.parts = 0
	}
	if x.parts < len(g.parts) {
		if p := g.parts[x.parts]; p != nil {
			p.write(g, x.parts, out)
		}
		x.parts++
		return true
	}
	x.group, x.id, x.parts = x.group+"\x00", "", -1 // what comes behind it
	return true
}

// recordsOfPart is how many records a partition has at most.
const recordsOfPart = 4

// write writes everything about a partition that is not as new.
func (p *part) write(g *group, n int, out *machine.Effects) {
	if p.epoch > 0 {
		p.writeOwner(g, n, out)
	}
	if p.done() {
		p.writeCheckpoint(g, n, out)
	}
	if p.hold != nil {
		p.writeHold(g, n, out)
	}
	if p.claim != nil {
		p.writeClaim(g, n, out)
	}
}
