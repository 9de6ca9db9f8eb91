// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// cursor is how far a snapshot has come. The zero value is the beginning.
type cursor struct {
	phase phase
	next  uint64 // next sighting, session or message
	seen  uint64 // sightings when the snapshot began
	high  SeqNo  // highest number when the snapshot began
	keys  uint64 // keys.counts when it came to the fair keys
}

type phase uint8

const (
	phaseHeader phase = iota
	phaseWindow
	phaseStates
	phaseEntries
	phaseStarted
	phaseEnd
)

// snapshot is a snapshot in progress.
type snapshot struct {
	q *Queue
	c cursor
}

// Snapshot implements [machine.Machine]. The first step writes the settings and
// counters, the following ones the parts below, and the last one an end. What commands
// change between the steps is either in a part that comes later or in a record that
// comes after.
func (q *Queue) Snapshot() machine.Snapshot { return &snapshot{q: q} }

// Step implements [machine.Snapshot].
func (s *snapshot) Step(b *machine.Budget, move func(Ref) (Ref, bool), out *machine.Effects) (done bool) {
	if move == nil {
		move = func(r Ref) (Ref, bool) { return r, false }
	}
	before := out.Payload()
	b.Items-- // a part without items is work, too
	s.c, done = s.q.snapPart(s.c, b, move, out)
	b.Bytes -= out.Payload() - before
	return done
}

func (q *Queue) snapPart(c cursor, b *machine.Budget, move func(Ref) (Ref, bool), out *machine.Effects) (next cursor, done bool) {
	switch c.phase {
	case phaseHeader:
		out.Begin(q.cfg.KindOf(record.KindSnapshot, record.KindHeader))
		out.Uint(uint64(q.index.Entries.Last))
		out.Fixed(q.lastIn)
		record.WriteSettings(out, q.cfg)
		out.End()
		first, end := q.window.Bounds()
		return cursor{phase: phaseWindow, next: first, seen: end, high: q.index.Entries.Last}, false
	case phaseWindow:
		return q.snapWindow(c, b, out), false
	case phaseStates:
		return q.snapStates(c, b, move, out), false
	case phaseEntries:
		return q.snapEntries(c, b, move, out), false
	case phaseStarted:
		return q.snapStarted(c, b, out), false
	}
	out.Begin(record.KindEnd)
	out.End()
	return c, true
}

// chunk counts the items of one part of a snapshot down from a budget; there is
// room for one at least.
type chunk struct {
	b    *machine.Budget
	out  *machine.Effects
	from int // bytes in out when it began
}

func newChunk(b *machine.Budget, out *machine.Effects) chunk { return chunk{b, out, out.Payload()} }

// more reports whether another item may be visited, and charges it.
func (c *chunk) more(first bool) bool {
	if !first && (c.b.Items <= 0 || c.out.Payload()-c.from >= c.b.Bytes) {
		return false
	}
	c.b.Items--
	return true
}

func (q *Queue) snapWindow(c cursor, b *machine.Budget, out *machine.Effects) cursor {
	oldest, _ := q.window.Bounds()
	c.next = max(c.next, oldest)
	if c.next >= c.seen {
		return cursor{phase: phaseStates, next: 1, high: c.high}
	}
	part, first := newChunk(b, out), c.next
	out.Begin(record.KindWindow)
	for c.next < c.seen && part.more(c.next == first) {
		s := q.window.IdAt(c.next)
		out.Raw(s.ID[:])
		out.Fixed(s.At)
		c.next++
	}
	out.End()
	return c
}

func (q *Queue) snapStates(c cursor, b *machine.Budget, move func(Ref) (Ref, bool), out *machine.Effects) cursor {
	part, first, began := newChunk(b, out), c.next, false
	for ; c.next < uint64(len(q.sessions.All)) && part.more(c.next == first); c.next++ {
		q.index.Entries.Visits++
		s := &q.sessions.All[c.next]
		if s.State == (Ref{}) {
			continue
		}
		if to, ok := move(s.State); ok {
			out.Freed, out.Added = append(out.Freed, s.State), append(out.Added, to)
			s.State = to
		}
		if !began {
			out.Begin(record.KindStates)
			began = true
		}
		writeState(out, s.ID, s.State, s.Changed)
	}
	if began {
		out.End()
	}
	if c.next >= uint64(len(q.sessions.All)) {
		return cursor{phase: phaseEntries, next: 1, high: c.high}
	}
	return c
}

func (q *Queue) snapEntries(c cursor, b *machine.Budget, move func(Ref) (Ref, bool), out *machine.Effects) cursor {
	to, part := c.high, newChunk(b, out)
	seq, e := q.index.Entries.Next(SeqNo(c.next))
	at, first := int64(0), seq
	switch {
	case e != nil && seq <= c.high:
		at = e.OrderTime
	case SeqNo(c.next) > c.high:
		return cursor{phase: phaseStarted, keys: q.index.Numbering()}
	default:
		// Nothing is left up to high. A chunk says so: a message that returns from
		// now on would otherwise seem to be one that a chunk is yet to bring.
	}
	out.Begin(record.KindEntries)
	out.Fixed(at)
	for ; e != nil && seq <= c.high; seq, e = q.index.Entries.Next(seq + 1) {
		if !part.more(seq == first) {
			to = seq - 1
			break
		}
		if body, ok := move(e.Body()); ok {
			q.replaceBody(e, body, out)
		}
		it := q.itemOf(e)
		out.Uint(uint64(seq))
		record.WriteItem(out, &it, at)
	}
	out.Uint(0)
	out.Uint(uint64(to))
	out.End()
	if len(q.index.Entries.ArrivalTimes) > 0 {
		q.logArrivalTimes(SeqNo(c.next), to, out)
	}
	if len(q.reasons) > 0 {
		q.moveReasons(SeqNo(c.next), to, move, out)
		q.recordReasons(SeqNo(c.next), to, out)
	}
	c.next = uint64(to) + 1
	return c
}

// Upcoming implements [machine.Snapshot].
func (s *snapshot) Upcoming(b machine.Budget, yield func(Ref)) {
	q, c := s.q, s.c
	switch c.phase {
	case phaseStates:
		for ; b.Items > 0 && c.next < uint64(len(q.sessions.All)); c.next++ {
			b.Items--
			if state := q.sessions.All[c.next].State; state != (Ref{}) {
				yield(state)
			}
		}
	case phaseEntries:
		for seq, e := q.index.Entries.Next(SeqNo(c.next)); e != nil && seq <= c.high && b.Items > 0; seq, e = q.index.Entries.Next(seq + 1) {
			b.Items--
			yield(e.Body())
			if reason, ok := q.reasons[seq]; ok {
				yield(reason)
			}
		}
	}
}

// SnapshotSize implements [machine.Machine]. It looks at a few messages only.
func (q *Queue) SnapshotSize() uint64 {
	const (
		fixed     = 160     // header, end, and what they are wrapped in
		perSight  = 24      // a message id in the duplicate window
		perReason = 24      // a place beside a dead letter
		perState  = 64 + 32 // a session's state, its name, a name's share of a record
		samples   = 32
		perRecord = 64 // of samples that were not found
	)
	seenFirst, seenEnd := q.window.Bounds()
	size := uint64(fixed) + perReason*uint64(len(q.reasons)) + perSight*(seenEnd-seenFirst) + perState*uint64(max(0, len(q.sessions.All)-1)+max(0, q.index.KeyCount()-1))
	total := uint64(q.Counts().Total())
	if total == 0 {
		return size
	}
	var out machine.Effects
	found := uint64(0)
	stride := max(uint64(q.index.Entries.Last)/samples, 1)
	for i := range uint64(samples) {
		seq, e := q.index.Entries.Next(SeqNo(i * stride))
		if e == nil {
			break
		}
		it := q.itemOf(e)
		out.Uint(uint64(seq))
		record.WriteItem(&out, &it, 0)
		found++
	}
	if found == 0 {
		return size + perRecord*total
	}
	return size + (uint64(out.Size())*5/4/found+1)*total
}

// replaySnapshot applies a part of a snapshot. To a queue that is whole already
// it brings nothing but new places of bodies.
func (q *Queue) replaySnapshot(k record.Kind, r *machine.Reader, out *machine.Effects) error {
	if k == record.KindSnapshot || k == record.KindHeader {
		q.replayHeader(k, r, out)
		return nil
	}
	if !q.restore.begun {
		return fmt.Errorf("%w: part %#02x of a snapshot without its beginning", ErrCorrupt, byte(k))
	}
	switch k {
	case record.KindWindow:
		for r.Len() > 0 {
			var s lease.SeenID
			copy(s.ID[:], r.Take(uint64(len(s.ID))))
			s.At = r.Time()
			if !r.Bad() && q.restore.inSnapshot {
				q.noteID(s)
			}
		}
	case record.KindStates:
		for r.Len() > 0 {
			q.replayState(r, out)
		}
	case record.KindEntries:
		return q.replayEntries(r, out)
	case record.KindEnd:
		return q.replayEnd()
	}
	return nil
}

func (q *Queue) replayHeader(k record.Kind, r *machine.Reader, out *machine.Effects) {
	last, in, cfg := r.UpTo(entries.Never-1), r.Time(), record.ReadSettings(r, k)
	if r.Bad() || q.restore.begun && !q.restore.inSnapshot {
		return
	}
	// A snapshot that follows one that never ended takes its place.
	machine.AllRefs(q, func(r Ref) { out.Freed = append(out.Freed, r) })
	*q = *New(cfg, q.epoch)
	q.index.Entries.Last, q.lastIn = SeqNo(last), in
	q.restore = restore{begun: true, inSnapshot: true, high: SeqNo(last)}
}

func (q *Queue) replayEntries(r *machine.Reader, out *machine.Effects) error {
	at := r.Time()
	for !r.Bad() {
		seq := SeqNo(r.Uint())
		if seq == 0 {
			break
		}
		it := record.ReadItem(r, at)
		if err := q.fitting(r, &it); err != nil || r.Bad() {
			return err
		}
		if err := q.restoreEntry(seq, &it, out); err != nil {
			return err
		}
	}
	to := record.ReadSeq(r)
	if q.restore.inSnapshot && !r.Bad() {
		if to < q.restore.restoredUpTo || to > q.restore.high {
			return fmt.Errorf("%w: a chunk up to message %d", ErrCorrupt, to)
		}
		q.restore.restoredUpTo = to
	}
	return nil
}

// restoreEntry takes a message out of a snapshot.
func (q *Queue) restoreEntry(seq SeqNo, it *record.Item, out *machine.Effects) error {
	if !q.restore.inSnapshot {
		e := q.index.Entries.Get(seq)
		if e == nil {
			return fmt.Errorf("%w: a snapshot has message %d, which is gone", ErrCorrupt, seq)
		}
		if e.Body() != it.Body {
			q.replaceBody(e, it.Body, out)
		}
		return nil
	}
	if seq <= q.restore.restoredUpTo || seq > q.restore.high {
		return fmt.Errorf("%w: message %d is in the wrong chunk", ErrCorrupt, seq)
	}
	q.restore.restoredUpTo = seq
	q.insert(seq, it, out)
	return nil
}

func (q *Queue) replayEnd() error {
	if !q.restore.inSnapshot {
		return nil
	}
	q.restore.inSnapshot = false
	slices.SortFunc(q.restore.seen, lease.SeenID.Compare)
	for _, s := range q.restore.seen {
		q.window.Add(s)
	}
	q.restore.seen = nil
	q.orderRestored()
	return nil
}

// noteID remembers a message id. Inside a snapshot the newer ones come before the
// older ones, which the window could not forget in order.
func (q *Queue) noteID(s lease.SeenID) {
	switch {
	case q.window.Off():
	case q.restore.inSnapshot:
		q.restore.seen = append(q.restore.seen, s)
	default:
		q.window.Forget(s.At, 2)
		q.window.Add(s)
	}
}

// Digest sums up everything that a restart must find again at a time. Two
// queues with the same digest are the same but for their locks.
func (q *Queue) Digest(now time.Time) [32]byte {
	var out machine.Effects
	out.Uint(uint64(q.index.Entries.Last))
	out.Fixed(q.lastIn)
	record.WriteSettings(&out, q.cfg)
	for _, s := range q.window.Contents(entries.Nanos(now)) {
		out.Raw(s.ID[:])
		out.Fixed(s.At)
	}
	for _, id := range slices.Sorted(maps.Keys(q.sessions.ByID)) {
		if s := &q.sessions.All[q.sessions.ByID[id]]; s.State != (Ref{}) {
			writeState(&out, id, s.State, s.Changed)
		}
	}
	for seq, e := q.index.Entries.Next(0); e != nil; seq, e = q.index.Entries.Next(seq + 1) {
		it := q.itemOf(e)
		out.Uint(uint64(seq))
		record.WriteItem(&out, &it, 0)
		out.Fixed(q.enqueuedAt(seq, e))
		if reason, ok := q.reasons[seq]; ok {
			out.Ref(reason)
		}
	}
	for _, k := range q.index.StartedKeys() {
		writeStarted(&out, k)
	}
	all, _ := out.Written()
	return sha256.Sum256(all)
}
