// SPDX-License-Identifier: Apache-2.0

package stream

import "github.com/triagemq/triagemq/internal/machine"

// snapshot writes a partition: its blocks, which never change, in as many steps as it
// takes, and at last everything else in one record. Blocks that were sealed meanwhile are
// written before that record, which says what was dropped meanwhile. So a replay ignores
// what commands wrote before it.
//
//	blocks 1-40 │ append, seal │ blocks 41-57 │ trim, append │ state │ append
//	            └───────────────── ignored ──────────────────┘       └ applied
type snapshot struct {
	p     *Partition
	at    SeqNo // blocks before it are written
	begun bool
}

// Snapshot implements [machine.Machine].
func (p *Partition) Snapshot() machine.Snapshot { return &snapshot{p: p} }

// SnapshotSize implements [machine.Machine].
func (p *Partition) SnapshotSize() uint64 {
	return 128 + 48*uint64(p.blocks.len()) + 24*uint64(len(p.open)) + 120*uint64(len(p.producers.list))
}

// Settling implements [machine.Machine]: retention drops blocks, each with a record at
// most.
func (p *Partition) Settling() (records, bytes uint64) {
	return uint64(p.blocks.len()) + 1, 0
}

// Upcoming implements [machine.Snapshot]: bodies are never moved.
func (s *snapshot) Upcoming(machine.Budget, func(machine.Ref)) {}

// Step implements [machine.Snapshot].
func (s *snapshot) Step(b *machine.Budget, _ func(machine.Ref) (machine.Ref, bool), out *machine.Effects) (done bool) {
	sealed := s.p.blocks.list()[s.p.blocks.holding(s.at):]
	if len(sealed) > 0 {
		s.blocks(sealed, b, out)
		if !b.Left() {
			return false
		}
	}
	s.state(b, out)
	return true
}

func (s *snapshot) flags() (f byte) {
	if !s.begun {
		f = flagFirst
	}
	s.begun = true
	return f
}

// blocks writes as many blocks as the budget allows, at least one.
func (s *snapshot) blocks(sealed []Block, b *machine.Budget, out *machine.Effects) {
	before := out.Size()
	out.Begin(kindBlocks)
	out.Byte(s.flags())
	last := &Block{}
	for i := range sealed {
		writeBlock(out, &sealed[i], last)
		last = &sealed[i]
		b.Items--
		b.Bytes -= out.Size() - before
		before = out.Size()
		if !b.Left() {
			break
		}
	}
	out.End()
	s.at = last.End
}

// state writes the rest.
func (s *snapshot) state(b *machine.Budget, out *machine.Effects) {
	p, before := s.p, out.Size()
	out.Begin(kindState)
	out.Byte(s.flags())
	out.Uint(uint64(p.First()))
	out.Uint(uint64(p.next))
	out.Uint(uint64(p.last))
	out.Raw(appendBatches(nil, p.open))
	out.Uint(uint64(p.producers.assigned))
	out.Uint(uint64(len(p.producers.list)))
	for _, x := range p.producers.list {
		writeProducer(out, Producer{ID: x.id, Epoch: x.epoch, Seq: x.last})
		out.Uint(uint64(len(x.recent)))
		for _, s := range x.recent {
			out.Uint(uint64(s.seq))
			out.Uint(uint64(s.count))
			out.Uint(uint64(s.first))
		}
	}
	out.End()
	b.Items--
	b.Bytes -= out.Size() - before
}
