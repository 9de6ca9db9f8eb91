// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue"
)

// snapshotter writes a snapshot in steps and, in the same pass, moves bodies out
// of blocks that are mostly dead.
//
//	begin ─► step, step, …, end ─► durable ─► truncate ─► done
//	           │    ▲
//	           ▼    │ bodies to move are read beside the writer
//	         reading
type snapshotter struct {
	number  uint64                  // of the snapshot in progress, or of the last one
	began   journal.Position        // of its first record: where a replay would begin
	freed   uint64                  // bytes this shard had freed when it began
	own     uint64                  // bytes this shard had written by itself when it began
	left    []ID                    // entities still to visit
	part    Part                    // of the first entity in left
	snap    machine.Snapshot        // of the queue being written; nil before its first piece
	started bool                    // the first entity in left has been announced
	victims map[uint64]bool         // blocks to move bodies out of
	floor   uint64                  // with less to spare than this, no body is moved any more
	moved   map[queue.Ref]queue.Ref // bodies this pass has moved, by where they were
	end     journal.Position        // of its last record; zero while it is being written
	kept    []uint64                // blocks with live bodies when the end was written
	busy    bool
	// behind is the end of the last step. The next one waits until that is
	// durable: a sender's record must not queue behind a whole snapshot.
	behind journal.Position
	budget machine.Budget // of the step in progress

	reading bool                 // the bodies that the next step moves are being read
	ahead   int                  // messages among which they are
	fetched map[queue.Ref][]byte // those that were read, as records; nil if none was asked for

	filled bool // the disk has become full, and it goes on all the same
	last   struct {
		began      journal.Position
		freed, own uint64
	} // of the one before, to which an abandoned one goes back

	truncating bool            // the journal is being told
	keep       *journal.Retain // what it could not be told yet, because the disk is full
}

func (n *snapshotter) active() bool { return n.busy && n.end == 0 }

// due reports whether the next step may be taken.
func (n *snapshotter) due(durable journal.Position) bool {
	return n.active() && !n.reading && n.behind <= durable
}

const (
	// stepBytes is how many bytes a step of a snapshot writes, bodies that it
	// moves included; one message may exceed it.
	stepBytes = 128 << 10
)

// maintain begins a snapshot when there is enough to gain, and goes on with the
// one in progress.
func (s *Shard) maintain() {
	n := &s.snapshot
	switch {
	case s.stepwise.closed: // who stops does not begin or finish a snapshot
	case n.keep != nil:
		if !s.now.Before(s.retryAt) {
			s.truncate(*n.keep)
		}
	case !n.busy:
		if s.shouldSnapshot() {
			s.beginSnapshot()
		}
	case s.full && !n.filled && n.due(s.durable):
		if n.filled = true; !s.upkeep(look{full: true}).worthwhile() {
			s.abandonSnapshot()
			return
		}
		// It was to move as much as there was room for then.
		log := s.journal.Usage(s.claim)
		still := s.victims(log, s.journal.Retained(s.claim))
		maps.DeleteFunc(n.victims, func(b uint64, _ bool) bool { return !still[b] })
		n.floor = spare(log) / 4
	case n.due(s.durable):
		s.stepSnapshot()
		if n.active() && !n.reading {
			s.commit()
			n.behind = s.tail
		}
	}
}

// beginSnapshot writes the first record of a snapshot. What the step has
// gathered so far is appended first: it precedes the snapshot.
func (s *Shard) beginSnapshot() {
	s.commit()
	if s.failed != nil || s.stuck {
		return
	}
	n, last := &s.snapshot, s.snapshot
	if s.tail == 0 {
		// Without a history there is nothing to write: a later beginning will do. A
		// snapshot would be the beginning of one, and a crash before its end would
		// leave something that looks like a loss.
		n.busy, n.end = true, s.durable
		s.truncate(journal.Retain{From: s.durable})
		return
	}
	*n = snapshotter{
		number: n.number + 1,
		began:  n.began,
		freed:  s.live.freed,
		own:    s.written.own(),
		left:   slices.Sorted(maps.Keys(s.entities)),
		moved:  make(map[queue.Ref]queue.Ref),
		busy:   true,
		filled: s.full, // it was decided with that in mind
	}
	n.last.began, n.last.freed, n.last.own = last.began, last.freed, last.own
	log := s.journal.Usage(s.claim)
	n.victims, n.floor = s.victims(log, s.journal.Retained(s.claim)), spare(log)/4
	s.record(kindSnapshotBegin, n.number)
	s.eff.Uint(uint64(s.nextID))
	blocks := slices.Sorted(maps.Keys(s.live.blocks))
	s.eff.Uint(uint64(len(blocks)))
	for _, b := range blocks {
		s.eff.Uint(b)
		s.eff.Uint(s.live.blocks[b].written)
	}
	s.eff.End()
	if err := s.appendRecords(); err != nil {
		s.resetStep()
		if errors.Is(err, journal.ErrFull) {
			s.abandonSnapshot() // another time
			return
		}
		s.failed = err
		return
	}
	n.began = s.group.At[0]
	s.written.snapshots += uint64(s.eff.Size())
	s.resetStep()
}

// abandonSnapshot gives up the snapshot in progress: there is better use for the
// space. What was written of it is like the rest of one that a crash cut short.
func (s *Shard) abandonSnapshot() {
	n := &s.snapshot
	*n = snapshotter{number: n.number, began: n.last.began, freed: n.last.freed, own: n.last.own}
}

// stepSnapshot visits a bounded number of messages and writes a bounded number of
// bytes.
func (s *Shard) stepSnapshot() {
	n := &s.snapshot
	n.budget = machine.Budget{Items: s.opts.SnapshotStep, Bytes: min(stepBytes, s.groupLimit)}
	if len(n.victims) > 0 && spare(s.journal.Usage(s.claim)) < n.floor {
		n.victims = nil // others need it
	}
	for n.budget.Left() && s.failed == nil {
		if len(n.left) == 0 {
			s.record(kindSnapshotEnd, n.number)
			s.eff.End()
			s.commit()
			n.end, n.kept = s.tail, s.live.keep(n.began)
			if s.stuck {
				n.end = pending
			}
			return
		}
		e, ok := s.entities[n.left[0]]
		if !ok { // dropped meanwhile, and its record says so
			n.budget.Items--
			n.next()
			continue
		}
		if !n.started {
			s.announce(e)
		}
		sl := e.parts[n.part]
		if n.snap == nil {
			n.snap = sl.q.Snapshot()
		}
		if s.fetchUpcoming(sl) {
			return
		}
		s.visit(sl)
	}
}

// announce writes what replay needs to know of an entity before its queues.
func (s *Shard) announce(e *entity) {
	n, before := &s.snapshot, s.eff.Size()
	n.started = true
	s.record(kindSnapshotPart, n.number)
	s.eff.Uint(uint64(e.ID))
	s.eff.Uint(e.Published)
	s.recordDefinition(e)
	s.eff.End()
	if len(e.Note) > 0 {
		s.recordNote(e)
	}
	n.budget.Items--
	n.budget.Bytes -= s.eff.Size() - before
	s.written.snapshots += uint64(s.eff.Size() - before)
}

// visit writes one piece of a queue.
func (s *Shard) visit(sl *slot) {
	n, before := &s.snapshot, s.eff.Size()
	if n.fetched != nil { // no further than what was looked at
		n.budget.Items = min(n.budget.Items, n.ahead+1)
	}
	s.eff.SetPrefix(n.prefix(sl))
	done := n.snap.Step(&n.budget, s.move, &s.eff.Effects)
	s.written.snapshots += uint64(s.eff.Size() - before)
	s.account()
	n.fetched = nil
	if !done {
		return
	}
	n.snap = nil
	if n.part++; int(n.part) == len(sl.entity.parts) {
		n.next()
	}
}

// prefix returns what goes before the records of a queue in the snapshot.
func (n *snapshotter) prefix(sl *slot) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{kindSnapshotQueue}, n.number), sl.id)
}

func (n *snapshotter) next() {
	n.left = n.left[1:]
	n.part, n.snap, n.started = Main, nil, false
}

// fetchUpcoming has the bodies read that the next piece of a queue will move, and
// reports whether there are any to wait for.
func (s *Shard) fetchUpcoming(sl *slot) bool {
	n := &s.snapshot
	if len(n.victims) == 0 || n.fetched != nil {
		return false
	}
	var wanted []queue.Ref
	size, items := 0, 0
	n.snap.Upcoming(n.budget, func(ref queue.Ref) {
		if items++; size >= n.budget.Bytes || !n.victims[s.live.blockOf(ref)] {
			return
		}
		if _, ok := n.moved[ref]; ok {
			return
		}
		wanted = append(wanted, ref)
		size += int(ref.Size)
	})
	n.budget.Items -= items / 2 // to look is work, too
	if len(wanted) == 0 {
		return false
	}
	n.reading, n.ahead = true, items
	s.background(func() {
		read := make(map[queue.Ref][]byte, len(wanted))
		refs := slices.DeleteFunc(wanted, func(ref queue.Ref) bool {
			_, ok := read[ref] // queues share it
			read[ref] = nil
			return ok
		})
		reads := make([]journal.Read, len(refs))
		for i, ref := range refs {
			reads[i] = readOf(ref)
		}
		s.journal.Read(s.ctx, reads)
		for i, ref := range refs {
			// What cannot be read stays where it is: whoever asks for it is told.
			if r := &reads[i]; r.Err == nil && len(r.Buf) > 0 {
				read[ref] = r.Buf
			}
		}
		// A shard that has stopped needs them no more.
		_ = s.mail.push(&task{do: func(s *Shard) error {
			s.snapshot.reading, s.snapshot.fetched = false, read
			return nil
		}})
	})
	return true
}

// move gives a body in a block that is mostly dead a new place. Queues that share
// a body go on sharing it. A body that was not read beforehand ends the step: the
// next one reads it.
func (s *Shard) move(ref queue.Ref) (queue.Ref, bool) {
	n := &s.snapshot
	block := s.live.blockOf(ref)
	if !n.victims[block] {
		return ref, false
	}
	if to, ok := n.moved[ref]; ok {
		return to, true
	}
	raw, ok := n.fetched[ref]
	switch {
	case !ok:
		n.budget.Items = 0
		return ref, false
	case raw == nil: // unreadable
		delete(n.victims, block)
		return ref, false
	}
	to, err := s.body(raw[1:])
	if err != nil {
		n.victims = nil // no room to move anything to
		return ref, false
	}
	s.written.snapshots += uint64(len(raw))
	n.budget.Bytes -= len(raw)
	n.moved[ref] = to
	return to, true
}

// durable truncates the history once the snapshot's end is safe. It keeps the
// blocks that had live bodies at that end: what was settled since may not be
// durable, and then a crash brings the message back, which needs its body.
func (n *snapshotter) durable(s *Shard) {
	if !n.busy || n.truncating || n.keep != nil || n.end == 0 || n.end > s.durable {
		return
	}
	keep := journal.Retain{From: n.began, Blocks: n.kept}
	n.moved, n.victims, n.kept = nil, nil, nil
	s.truncate(keep)
}

// truncate tells the journal what is still needed, beside the writer: it syncs.
func (s *Shard) truncate(keep journal.Retain) {
	n := &s.snapshot
	n.truncating, n.keep = true, nil
	s.background(func() {
		err := s.journal.Truncate(s.ctx, s.claim, keep)
		// A shard that has stopped leaves it to its successor.
		_ = s.mail.push(&task{do: func(s *Shard) error {
			s.truncated(keep, err)
			return nil
		}})
	})
}

// truncated takes the journal's answer. On a full disk it is asked again.
func (s *Shard) truncated(keep journal.Retain, err error) {
	n := &s.snapshot
	n.truncating = false
	switch {
	case err == nil, errors.Is(err, journal.ErrClosed):
		n.busy = false
	case errors.Is(err, journal.ErrFull):
		n.keep = &keep
		s.retryAt = s.now.Add(retryFull)
	default:
		s.failed = fmt.Errorf("truncate: %w", err)
	}
}
