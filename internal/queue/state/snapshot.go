// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/sha256"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// cursor is the position of a snapshot in progress. The zero value is the beginning.
type cursor struct {
	phase phase
	next  uint64        // next message id, session or message
	seen  uint64        // end of the message ids when the snapshot began
	high  entries.SeqNo // highest sequence number when the snapshot began
	keys  uint64        // numbering of the fair keys when it reached them
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
	q *Core
	c cursor
}

// Snapshot implements [machine.Machine]. It is a fuzzy checkpoint: commands may run
// between the steps. The first step writes the settings and counters, the following ones
// chunks, the last one an end. What a command changes is either in a later chunk or in a
// record that replay applies; doc.go shows which.
func (q *Core) Snapshot() machine.Snapshot { return &snapshot{q: q} }

// Step implements [machine.Snapshot].
func (s *snapshot) Step(b *machine.Budget, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) (done bool) {
	if move == nil {
		move = func(r machine.Ref) (machine.Ref, bool) { return r, false }
	}
	before := out.Payload()
	b.Items-- // a step without items is work, too
	s.c, done = s.q.snapPart(s.c, b, move, out)
	b.Bytes -= out.Payload() - before
	return done
}

func (q *Core) snapPart(c cursor, b *machine.Budget, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) (next cursor, done bool) {
	switch c.phase {
	case phaseHeader:
		out.Begin(q.Config.KindOf(record.KindSnapshot, record.KindHeader))
		out.Uint(uint64(q.Index.Entries.Last))
		out.Fixed(q.LastIn)
		record.WriteSettings(out, q.Config)
		out.End()
		first, end := q.Window.Bounds()
		return cursor{phase: phaseWindow, next: first, seen: end, high: q.Index.Entries.Last}, false
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

// chunk charges the items of one chunk to a budget. It always allows one item.
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

func (q *Core) snapWindow(c cursor, b *machine.Budget, out *machine.Effects) cursor {
	oldest, _ := q.Window.Bounds()
	c.next = max(c.next, oldest)
	if c.next >= c.seen {
		return cursor{phase: phaseStates, next: 1, high: c.high}
	}
	part, first := newChunk(b, out), c.next
	out.Begin(record.KindWindow)
	for c.next < c.seen && part.more(c.next == first) {
		s := q.Window.IdAt(c.next)
		out.Raw(s.ID[:])
		out.Fixed(s.At)
		c.next++
	}
	out.End()
	return c
}

func (q *Core) snapStates(c cursor, b *machine.Budget, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) cursor {
	part, first, began := newChunk(b, out), c.next, false
	for ; c.next < uint64(len(q.Sessions.All)) && part.more(c.next == first); c.next++ {
		q.Index.Entries.Visits++
		s := q.Sessions.All[c.next]
		if s == nil || s.State == (machine.Ref{}) {
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
		record.WriteState(out, s.ID, s.State, s.Changed)
	}
	if began {
		out.End()
	}
	if c.next >= uint64(len(q.Sessions.All)) {
		return cursor{phase: phaseEntries, next: 1, high: c.high}
	}
	return c
}

func (q *Core) snapEntries(c cursor, b *machine.Budget, move func(machine.Ref) (machine.Ref, bool), out *machine.Effects) cursor {
	to, part := c.high, newChunk(b, out)
	seq, e := q.Index.Entries.Next(entries.SeqNo(c.next))
	at, first := int64(0), seq
	switch {
	case e != nil && seq <= c.high:
		at = e.OrderTime
	case entries.SeqNo(c.next) > c.high:
		return cursor{phase: phaseStarted, keys: q.Index.Numbering()}
	default:
		// No message is left up to high. A chunk says so: otherwise replay would ignore a
		// message that returns from now on, as not yet restored.
	}
	out.Begin(record.KindEntries)
	out.Fixed(at)
	for ; e != nil && seq <= c.high; seq, e = q.Index.Entries.Next(seq + 1) {
		if !part.more(seq == first) {
			to = seq - 1
			break
		}
		if body, ok := move(e.Body()); ok {
			q.ReplaceBody(e, body, out)
		}
		it := q.ItemOf(e)
		out.Uint(uint64(seq))
		record.WriteItem(out, &it, at)
	}
	out.Uint(0)
	out.Uint(uint64(to))
	out.End()
	if q.Index.Entries.ArrivalTimes.Len() > 0 {
		q.LogArrivalTimes(entries.SeqNo(c.next), to, out)
	}
	q.snapRefs(&q.Reasons, entries.SeqNo(c.next), to, move, out)
	q.snapRefs(&q.Saved, entries.SeqNo(c.next), to, move, out)
	if q.Retries.Len() > 0 {
		q.LogRetries(entries.SeqNo(c.next), to, out)
	}
	if q.Locks.DurableCount() > 0 {
		q.LogLocks(entries.SeqNo(c.next), to, out)
	}
	c.next = uint64(to) + 1
	return c
}

// Upcoming implements [machine.Snapshot].
func (s *snapshot) Upcoming(b machine.Budget, yield func(machine.Ref)) {
	q, c := s.q, s.c
	switch c.phase {
	case phaseStates:
		for ; b.Items > 0 && c.next < uint64(len(q.Sessions.All)); c.next++ {
			b.Items--
			if s := q.Sessions.All[c.next]; s != nil && s.State != (machine.Ref{}) {
				yield(s.State)
			}
		}
	case phaseEntries:
		for seq, e := q.Index.Entries.Next(entries.SeqNo(c.next)); e != nil && seq <= c.high && b.Items > 0; seq, e = q.Index.Entries.Next(seq + 1) {
			b.Items--
			yield(e.Body())
			q.beside(seq, yield)
		}
	}
}

// SnapshotSize implements [machine.Machine]. It inspects a few messages only.
func (q *Core) SnapshotSize() uint64 {
	const (
		fixed     = 160     // header and end, with their frames
		perSight  = 24      // a message id in the duplicate window
		perReason = 24      // the reason of a dead letter, a state that was saved
		perRetry  = 16      // the time of a retry
		perLock   = 32      // a durable lock
		perState  = 64 + 32 // a session's state, its name, a name's share of a record
		samples   = 32
		perRecord = 64 // of samples that were not found
	)
	seenFirst, seenEnd := q.Window.Bounds()
	size := uint64(fixed) + perReason*uint64(q.Reasons.Len()+q.Saved.Len()) + perRetry*uint64(q.Retries.Len()) + perLock*uint64(q.Locks.DurableCount()) + perSight*(seenEnd-seenFirst) + perState*uint64(max(0, len(q.Sessions.All)-1)+max(0, q.Index.KeyCount()-1))
	total := uint64(q.Counts().Total())
	if total == 0 {
		return size
	}
	var out machine.Effects
	found := uint64(0)
	stride := max(uint64(q.Index.Entries.Last)/samples, 1)
	for i := range uint64(samples) {
		seq, e := q.Index.Entries.Next(entries.SeqNo(i * stride))
		if e == nil {
			break
		}
		it := q.ItemOf(e)
		out.Uint(uint64(seq))
		record.WriteItem(&out, &it, 0)
		found++
	}
	if found == 0 {
		return size + perRecord*total
	}
	return size + (uint64(out.Size())*5/4/found+1)*total
}

// snapStarted writes which keys were started. A key that is started meanwhile has a
// record of its own. If the keys are renumbered, it begins again: replay accepts a key
// twice.
func (q *Core) snapStarted(c cursor, b *machine.Budget, out *machine.Effects) cursor {
	if c.keys != q.Index.Numbering() {
		c = cursor{phase: phaseStarted, keys: q.Index.Numbering()}
	}
	part, first, began := newChunk(b, out), c.next, false
	for ; c.next < uint64(q.Index.KeyCount()) && part.more(c.next == first); c.next++ {
		q.Index.Entries.Visits++
		k, ok := q.Index.StartedKey(int(c.next))
		if !ok {
			continue
		}
		if !began {
			out.Begin(record.KindStarted)
			began = true
		}
		record.WriteStarted(out, k.Number, k.Name)
	}
	if began {
		out.End()
	}
	if c.next >= uint64(q.Index.KeyCount()) {
		return cursor{phase: phaseEnd}
	}
	return c
}

// StateHash hashes everything that a restart must restore, as of now. Two queues with the
// same hash are the same except for the locks that are not durable.
func (q *Core) StateHash(now time.Time) [32]byte {
	var out machine.Effects
	at := entries.Nanos(now)
	out.Uint(uint64(q.Index.Entries.Last))
	out.Fixed(q.LastIn)
	record.WriteSettings(&out, q.Config)
	for _, s := range q.Window.Contents(at) {
		out.Raw(s.ID[:])
		out.Fixed(s.At)
	}
	for _, id := range q.Sessions.IDs() {
		if s := q.Sessions.Find(id); s.State != (machine.Ref{}) {
			record.WriteState(&out, id, s.State, s.Changed)
		}
	}
	for seq, e := q.Index.Entries.Next(0); e != nil; seq, e = q.Index.Entries.Next(seq + 1) {
		it := q.ItemOf(e)
		out.Uint(uint64(seq))
		record.WriteItem(&out, &it, 0)
		out.Fixed(q.EnqueuedAt(seq, e))
		q.beside(seq, out.Ref)
		switch {
		case e.Is(entries.Retrying) && q.Retries.All[e.StateIndex].At > at:
			out.Fixed(q.Retries.All[e.StateIndex].At)
		case e.Is(entries.Locked) && q.DurableLock(e) && q.Locks.All[e.StateIndex].Until > at:
			record.WriteLock(&out, &q.Locks.All[e.StateIndex])
		}
	}
	for _, k := range q.Index.StartedKeys() {
		record.WriteStarted(&out, k.Number, k.Name)
	}
	all, _ := out.Written()
	return sha256.Sum256(all)
}
