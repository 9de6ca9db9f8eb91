// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/triagemq/triagemq/internal/engine/retention"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// snapshotter writes a snapshot in steps and, in the same pass, moves bodies out
// of segments that are mostly garbage.
//
//	begin ─► step, step, …, end ─► durable ─► truncate ─► done
//	           │    ▲
//	           ▼    │ bodies to move are read beside the engine
//	         reading
type snapshotter struct {
	number  uint64                      // of the snapshot in progress, or of the last one
	began   journal.Position            // of its first record: where a replay would begin
	freed   uint64                      // bytes this engine had freed when it began
	own     uint64                      // bytes this engine had written by itself when it began
	left    []uint64                    // parts of the host still to visit
	units   []*Unit                     // of the first of them, still to visit; nil before it is described
	snap    machine.Snapshot            // of the first of those; nil before its first piece
	compact map[uint64]bool             // segments to move bodies out of
	floor   uint64                      // with less to spare than this, no body is moved any more
	moved   map[machine.Ref]machine.Ref // bodies this pass has moved, by where they were
	end     journal.Position            // of its last record; zero while it is being written
	kept    []uint64                    // segments with live bodies when the end was written
	busy    bool
	// behind is the end of the last step. The next one waits until that is
	// durable: a caller's record must not wait behind a whole snapshot.
	behind journal.Position
	budget machine.Budget // of the step in progress

	reading bool                   // the bodies that the next step moves are being read
	ahead   int                    // items among which they are
	fetched map[machine.Ref][]byte // those that were read, as records; nil if none was asked for

	filled bool // the disk has become full, and it goes on all the same
	last   struct {
		began      journal.Position
		freed, own uint64
	} // of the one before, to which an abandoned one goes back

	truncating bool            // a call to Truncate is running
	retain     *journal.Retain // of a Truncate that failed, because the disk is full
}

func (n *snapshotter) active() bool { return n.busy && n.end == 0 }

// due reports whether the next step may be taken.
func (n *snapshotter) due(durable journal.Position) bool {
	return n.active() && !n.reading && n.behind <= durable
}

const (
	// stepBytes is how many bytes a step of a snapshot writes, bodies that it
	// moves included; one item may exceed it.
	stepBytes = 128 << 10
)

// maintain begins a snapshot when there is enough to gain, and goes on with the
// one in progress.
func (e *Engine) maintain() {
	n := &e.snapshot
	if e.reserveDue() {
		e.updateReserve()
	}
	switch {
	case e.stepwise.closed: // who stops does not begin or finish a snapshot
	case n.retain != nil:
		if !e.now.Before(e.retryAt) {
			e.truncate(*n.retain)
		}
	case !n.busy:
		if e.snapshotDue() {
			e.beginSnapshot()
		}
	case e.full && !n.filled && n.due(e.durable):
		state := e.retention(look{full: true})
		if n.filled = true; !state.ShouldSnapshot() {
			e.abandonSnapshot()
			return
		}
		e.promise(state.Cost())
		// It was to move as much as there was space for then.
		log := e.journal.Usage(e.claim)
		still := e.compactSegments(log, e.journal.Retained(e.claim))
		maps.DeleteFunc(n.compact, func(b uint64, _ bool) bool { return !still[b] })
		n.floor = retention.Spare(log) / 4
	case n.due(e.durable) && e.full && !e.snapshotFits():
		e.abandonSnapshot()
	case n.due(e.durable):
		e.stepSnapshot()
		if n.active() && !n.reading {
			e.commit()
			n.behind = e.tail
		}
	}
}

// beginSnapshot writes the first record of a snapshot. What the step has
// gathered so far is appended first: it precedes the snapshot.
func (e *Engine) beginSnapshot() {
	e.commit()
	if e.failed != nil || e.stuck {
		return
	}
	n, last := &e.snapshot, e.snapshot
	if e.tail == 0 {
		// Without a history there is nothing to write: a later beginning will do. A
		// snapshot would be the beginning of one, and a crash before its end would
		// leave something that looks like a loss.
		n.busy, n.end = true, e.durable
		e.truncate(journal.Retain{From: e.durable})
		return
	}
	*n = snapshotter{
		number: n.number + 1,
		began:  n.began,
		freed:  e.live.Freed,
		own:    e.written.Own(),
		left:   e.host.Parts(),
		moved:  make(map[machine.Ref]machine.Ref),
		busy:   true,
		filled: e.full, // it was decided with that in mind
	}
	n.last.began, n.last.freed, n.last.own = last.began, last.freed, last.own
	log := e.journal.Usage(e.claim)
	n.compact, n.floor = e.compactSegments(log, e.journal.Retained(e.claim)), retention.Spare(log)/4
	if e.full {
		e.promise(e.retention(look{full: true}).Cost())
	}
	e.record(kindSnapshotBegin, n.number)
	e.eff.Uint(e.host.Mark())
	segments := e.live.Segments()
	e.eff.Uint(uint64(len(segments)))
	for _, b := range segments {
		e.eff.Uint(b)
		e.eff.Uint(e.live.Usage(b).Written)
	}
	e.eff.End()
	if err := e.appendRecords(); err != nil {
		e.resetGroup()
		if errors.Is(err, journal.ErrFull) {
			e.abandonSnapshot() // another time
			return
		}
		e.failed = err
		return
	}
	n.began = e.append.At[0]
	e.written.Snapshots += uint64(e.eff.Size())
	e.resetGroup()
}

// snapshotFits reports whether the snapshot in progress can go on with another step.
func (e *Engine) snapshotFits() bool {
	u := retention.State{Log: e.journal.Usage(e.claim), Promised: e.reserved.promised}
	return u.Fits(min(stepBytes, u.Promised))
}

// abandonSnapshot gives up the snapshot in progress: there is better use for the
// space. What was written of it is like the rest of one that a crash cut short.
func (e *Engine) abandonSnapshot() {
	n := &e.snapshot
	*n = snapshotter{number: n.number, began: n.last.began, freed: n.last.freed, own: n.last.own}
	e.promise(0)
}

// stepSnapshot visits a bounded number of items and writes a bounded number of
// bytes.
func (e *Engine) stepSnapshot() {
	n := &e.snapshot
	n.budget = machine.Budget{Items: e.opts.SnapshotStep, Bytes: min(stepBytes, e.groupLimit)}
	if len(n.compact) > 0 && retention.Spare(e.journal.Usage(e.claim)) < n.floor {
		n.compact = nil // others need it
	}
	for n.budget.Left() && e.failed == nil {
		if len(n.left) == 0 {
			e.record(kindSnapshotEnd, n.number)
			e.eff.End()
			e.commit()
			n.end, n.kept = e.tail, e.live.Keep(n.began)
			if e.stuck {
				n.end = Pending
			}
			return
		}
		if n.units == nil {
			n.units = e.host.Units(n.left[0])
			if n.units != nil {
				e.writePart(n.left[0])
			}
		}
		if n.units == nil || n.units[0].dropped { // its record says so
			n.budget.Items--
			n.next()
			continue
		}
		if n.snap == nil {
			n.snap = n.units[0].Machine.Snapshot()
		}
		if e.fetchUpcoming() {
			return
		}
		e.visit(n.units[0])
	}
}

// writePart writes what replay needs to know of a part before its units.
func (e *Engine) writePart(part uint64) {
	n, before := &e.snapshot, e.eff.Size()
	e.record(kindSnapshotPart, n.number)
	e.host.WritePart(part)
	n.budget.Items--
	n.budget.Bytes -= e.eff.Size() - before
	e.written.Snapshots += uint64(e.eff.Size() - before)
}

// visit writes one piece of a unit.
func (e *Engine) visit(u *Unit) {
	n, before := &e.snapshot, e.eff.Size()
	if n.fetched != nil { // no further than what was looked at
		n.budget.Items = min(n.budget.Items, n.ahead+1)
	}
	e.eff.SetPrefix(n.prefix(u))
	done := n.snap.Step(&n.budget, e.move, e.eff)
	e.written.Snapshots += uint64(e.eff.Size() - before)
	if freed := e.account(); len(freed) > 0 {
		e.host.Moved(freed)
	}
	n.fetched = nil
	if !done {
		return
	}
	n.snap = nil
	if n.units = n.units[1:]; len(n.units) == 0 {
		n.next()
	}
}

// prefix returns what goes before the records of a unit in the snapshot.
func (n *snapshotter) prefix(u *Unit) []byte {
	return binary.AppendUvarint(binary.AppendUvarint([]byte{kindSnapshotUnit}, n.number), u.ID)
}

func (n *snapshotter) next() {
	n.left = n.left[1:]
	n.units, n.snap = nil, nil
}

// fetchUpcoming has the bodies read that the next piece will move, and
// reports whether there are any to wait for.
func (e *Engine) fetchUpcoming() bool {
	n := &e.snapshot
	if len(n.compact) == 0 || n.fetched != nil {
		return false
	}
	var wanted []machine.Ref
	size, items := 0, 0
	n.snap.Upcoming(n.budget, func(ref machine.Ref) {
		if items++; size >= n.budget.Bytes || !n.compact[e.live.SegmentOf(ref)] {
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
	e.background(func() {
		read := make(map[machine.Ref][]byte, len(wanted))
		refs := slices.DeleteFunc(wanted, func(ref machine.Ref) bool {
			_, ok := read[ref] // units share it
			read[ref] = nil
			return ok
		})
		reads := make([]journal.Read, len(refs))
		for i, ref := range refs {
			reads[i] = ReadOf(ref)
		}
		e.journal.Read(e.readCtx, reads)
		for i, ref := range refs {
			// What cannot be read stays where it is: a read of it gets the error.
			if r := &reads[i]; r.Err == nil && len(r.Buf) > 0 {
				read[ref] = r.Buf
			}
		}
		// An engine that has stopped needs them no more.
		_ = e.mail.push(&funcCommand{Do: func(*Tx) error {
			e.snapshot.reading, e.snapshot.fetched = false, read
			return nil
		}})
	})
	return true
}

// move gives a body in a segment that is mostly garbage a new place. Units that share
// a body go on sharing it. A body that was not read beforehand ends the step: the
// next one reads it.
func (e *Engine) move(ref machine.Ref) (machine.Ref, bool) {
	n := &e.snapshot
	segment := e.live.SegmentOf(ref)
	if !n.compact[segment] {
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
		delete(n.compact, segment)
		return ref, false
	}
	to, err := e.storeOne(raw[1:])
	if err != nil {
		n.compact = nil // no space to move anything to
		return ref, false
	}
	e.written.Snapshots += uint64(len(raw))
	n.budget.Bytes -= len(raw)
	n.moved[ref] = to
	return to, true
}

// durable truncates the history once the snapshot's end is safe. It keeps the
// segments that had live bodies at that end: what was settled since may not be
// durable, and then a crash brings the message back, which needs its body.
func (n *snapshotter) durable(e *Engine) {
	if !n.busy || n.truncating || n.retain != nil || n.end == 0 || n.end > e.durable {
		return
	}
	keep := journal.Retain{From: n.began, Segments: n.kept}
	n.moved, n.compact, n.kept = nil, nil, nil
	e.truncate(keep)
}

// truncate tells the journal what is still needed, beside the engine: it syncs.
func (e *Engine) truncate(keep journal.Retain) {
	n := &e.snapshot
	n.truncating, n.retain = true, nil
	e.background(func() {
		err := e.journal.Truncate(e.ctx, e.claim, keep)
		// An engine that has stopped leaves it to its successor.
		_ = e.mail.push(&funcCommand{Do: func(*Tx) error {
			e.truncated(keep, err)
			return nil
		}})
	})
}

// truncated takes the journal's answer. On a full disk it is asked again.
func (e *Engine) truncated(keep journal.Retain, err error) {
	n := &e.snapshot
	n.truncating = false
	switch {
	case err == nil, errors.Is(err, journal.ErrClosed):
		n.busy = false
		e.promise(0)
	case errors.Is(err, journal.ErrFull):
		n.retain = &keep
		e.retryAt = e.now.Add(retryFull)
	case errors.Is(err, journal.ErrFreed) && e.forgetLost(&keep):
		e.truncate(keep)
	default:
		e.failed = fmt.Errorf("truncate: %w", err)
	}
}

// forgetLost leaves out the segments that the journal does not have, and reports whether
// there are any. Bodies in them are lost, and a repair has dropped them: a read of
// one gets the error.
func (e *Engine) forgetLost(keep *journal.Retain) bool {
	there := e.journal.Retained(e.claim)
	before := len(keep.Segments)
	keep.Segments = slices.DeleteFunc(slices.Clone(keep.Segments), func(b uint64) bool {
		_, ok := there[b]
		if !ok {
			e.live.Lose(b)
		}
		return !ok
	})
	return len(keep.Segments) < before
}
