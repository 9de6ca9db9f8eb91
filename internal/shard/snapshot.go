// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// snapshotter writes a snapshot in steps and, in the same pass, moves bodies out
// of blocks that are mostly dead.
type snapshotter struct {
	number  uint64           // of the snapshot in progress, or of the last one
	began   journal.Position // of its first record: where a replay would begin
	freed   uint64           // bytes this shard had freed when it began
	check   uint64           // length of a replay before which the next is not considered
	left    []ID             // entities still to visit
	part    Part             // of the first entity in left
	cursor  queue.Cursor
	started bool                    // the first entity in left has been announced
	victims map[uint64]bool         // blocks to move bodies out of
	moved   map[queue.Ref]queue.Ref // bodies this pass has moved, by where they were
	end     journal.Position        // of its last record; zero while it is being written
	kept    []uint64                // blocks with live bodies when the end was written
	busy    bool
	// behind is the end of the last step. The next one waits until that is
	// durable: a sender's record must not queue behind a whole snapshot.
	behind journal.Position
}

func (n *snapshotter) active() bool { return n.busy && n.end == 0 }

// due reports whether the next step may be taken.
func (n *snapshotter) due(durable journal.Position) bool { return n.active() && n.behind <= durable }

// maintain begins a snapshot when there is enough to gain, and goes on with the
// one in progress.
func (s *Shard) maintain() {
	n := &s.snapshot
	switch {
	case !n.busy:
		if s.worthwhile() {
			s.beginSnapshot()
		}
	case n.due(s.durable):
		s.stepSnapshot()
		if n.active() {
			s.commit()
			n.behind = s.tail
		}
	}
}

// worthwhile reports whether replay has become long, or the shard keeps much
// more than it needs. How long a replay is counts in all that was written since
// it would begin, by whichever shard: a shard that has nothing to do would
// otherwise keep the journal from freeing what the others are done with.
func (s *Shard) worthwhile() bool {
	if s.tail == 0 {
		// It has no history. A snapshot would be the beginning of one, and a crash
		// before its end would leave something that looks like a loss.
		return false
	}
	n := &s.snapshot
	after := s.opts.SnapshotAfter
	freed := s.live.freed - n.freed
	var behind uint64
	if end := max(s.durable, s.tail); end > n.began {
		behind = uint64(end - n.began)
	}
	if s.full {
		// It is what frees space, and must not need much of it.
		return (freed >= after/4 || behind >= s.live.blockSize) && s.snapshotSize() < s.live.blockSize/8
	}
	if freed >= after && s.live.written > 2*s.live.live+after {
		return true
	}
	if behind < n.check {
		return false
	}
	need := max(after, 2*s.snapshotSize())
	n.check = max(need, behind+after/16)
	return behind >= need
}

// snapshotSize is about how many bytes a snapshot takes.
func (s *Shard) snapshotSize() uint64 {
	const perMessage = 64
	var messages uint64
	for _, e := range s.entities {
		for _, sl := range e.parts {
			messages += uint64(sl.q.Counts().Total())
		}
	}
	return perMessage * messages
}

// beginSnapshot writes the first record of a snapshot. What the step has
// gathered so far is appended first: it precedes the snapshot.
func (s *Shard) beginSnapshot() {
	s.commit()
	if s.failed != nil {
		return
	}
	n := &s.snapshot
	*n = snapshotter{
		number: n.number + 1,
		freed:  s.live.freed,
		left:   slices.Sorted(maps.Keys(s.entities)),
		moved:  make(map[queue.Ref]queue.Ref),
		busy:   true,
	}
	if !s.full { // there is no room to move anything to
		n.victims = s.live.sparse(s.tail, 2*s.live.blockSize)
	}
	s.record(kindSnapshotBegin, n.number)
	s.uvarint(uint64(s.nextID))
	blocks := slices.Sorted(maps.Keys(s.live.blocks))
	s.uvarint(uint64(len(blocks)))
	for _, b := range blocks {
		s.uvarint(b)
		s.uvarint(s.live.blocks[b].written)
	}
	s.recorded()
	if err := s.append(s.step.arena, s.step.ends); err != nil {
		s.failed = err
		return
	}
	n.began = s.group.at[0]
	s.step.reset()
}

// stepSnapshot visits a bounded number of messages.
func (s *Shard) stepSnapshot() {
	n := &s.snapshot
	for budget := s.opts.SnapshotStep; budget > 0 && s.failed == nil; budget -= 100 {
		if len(n.left) == 0 {
			s.record(kindSnapshotEnd, n.number)
			s.recorded()
			s.commit()
			n.end, n.kept = s.tail, s.live.keep(n.began)
			return
		}
		e, ok := s.entities[n.left[0]]
		if !ok { // dropped meanwhile, and its record says so
			n.next()
			continue
		}
		if !n.started {
			n.started = true
			s.record(kindSnapshotPart, n.number)
			s.uvarint(uint64(e.ID))
			s.uvarint(e.Published)
			s.recordDefinition(e)
			s.recorded()
			if len(e.Note) > 0 {
				s.recordNote(e)
			}
		}
		s.visit(e.parts[n.part])
	}
}

// visit writes one piece of a queue.
func (s *Shard) visit(sl *slot) {
	n := &s.snapshot
	cursor, done := sl.q.Snapshot(n.cursor, s.opts.SnapshotStep, s.move, &s.eff)
	for _, r := range s.eff.Records() {
		s.record(kindSnapshotQueue, n.number)
		s.uvarint(sl.id)
		s.step.arena = append(s.step.arena, r...)
		s.recorded()
	}
	s.account()
	s.eff.Reset()
	n.cursor = cursor
	if !done {
		return
	}
	n.cursor = queue.Cursor{}
	if n.part++; int(n.part) == len(sl.entity.parts) {
		n.next()
	}
}

func (n *snapshotter) next() {
	n.left = n.left[1:]
	n.part, n.cursor, n.started = Main, queue.Cursor{}, false
}

// move gives a body in a block that is mostly dead a new place. Queues that share
// a body go on sharing it.
func (s *Shard) move(ref queue.Ref) (queue.Ref, bool) {
	n := &s.snapshot
	if !n.victims[ref.At/s.live.blockSize] {
		return ref, false
	}
	if to, ok := n.moved[ref]; ok {
		return to, true
	}
	raw, err := s.journal.Read(journal.Position(ref.At), nil)
	if err != nil {
		// Leave it where it is: whoever asks for it will be told.
		delete(n.victims, ref.At/s.live.blockSize)
		return ref, false
	}
	to, err := s.body(raw[1:])
	if err != nil {
		return ref, false
	}
	n.moved[ref] = to
	return to, true
}

// durable truncates the history once the snapshot's end is safe. It keeps the
// blocks that had live bodies at that end: what was settled since may not be
// durable, and then a crash brings the message back, which needs its body.
func (n *snapshotter) durable(s *Shard) {
	if !n.busy || n.end == 0 || n.end > s.durable {
		return
	}
	keep := journal.Keep{From: n.began, Blocks: n.kept}
	n.busy, n.moved, n.victims, n.kept = false, nil, nil, nil
	if err := s.journal.Truncate(s.claim, keep); err != nil {
		s.failed = fmt.Errorf("truncate: %w", err)
	}
}

func (s *Shard) uvarint(v uint64) { s.step.arena = binary.AppendUvarint(s.step.arena, v) }
