// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Cursor is how far a snapshot has come. The zero value is the beginning.
type Cursor struct {
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

// Budget bounds one step of work: items to visit, whether or not anything is
// written about them, and bytes to write. Whoever does the work counts it down;
// the last item may take it below zero.
type Budget struct{ Items, Bytes int }

// Left reports whether there is anything left of it.
func (b *Budget) Left() bool { return b.Items > 0 && b.Bytes > 0 }

// wrote charges what was written to out since it held from bytes.
func (b *Budget) wrote(out *Effects, from int) { b.Bytes -= len(out.buf) - from }

// Snapshot writes the next part of a snapshot to out: the first step the
// settings and counters, the following ones as much as the budget allows, but at
// least one item, and the last one an end. Commands may run between the steps:
// what they change is either in a chunk that comes later or in a record that comes
// after. move may give a body that the owner wants elsewhere a new place; nil
// moves nothing.
func (q *Queue) Snapshot(c Cursor, b *Budget, move func(Ref) (Ref, bool), out *Effects) (next Cursor, done bool) {
	if move == nil {
		move = func(r Ref) (Ref, bool) { return r, false }
	}
	defer b.wrote(out, len(out.buf))
	b.Items-- // a part without items is work, too
	switch c.phase {
	case phaseHeader:
		out.begin(q.cfg.kindOf(kindSnapshot, kindHeader))
		out.uint(uint64(q.index.msgs.last))
		out.time(q.lastIn)
		out.settings(q.cfg)
		out.end()
		w := &q.window.order
		return Cursor{phase: phaseWindow, next: w.popped, seen: w.popped + uint64(w.n), high: q.index.msgs.last}, false
	case phaseWindow:
		return q.snapWindow(c, b, out), false
	case phaseStates:
		return q.snapStates(c, b, move, out), false
	case phaseEntries:
		return q.snapEntries(c, b, move, out), false
	case phaseStarted:
		return q.snapStarted(c, b, out), false
	}
	out.begin(kindEnd)
	out.end()
	return c, true
}

// chunk counts the items of one part of a snapshot down from a budget; there is
// room for one at least.
type chunk struct {
	b    *Budget
	out  *Effects
	from int // bytes in out when it began
}

func (b *Budget) chunk(out *Effects) chunk { return chunk{b, out, len(out.buf)} }

// more reports whether another item may be visited, and charges it.
func (c *chunk) more(first bool) bool {
	if !first && (c.b.Items <= 0 || len(c.out.buf)-c.from >= c.b.Bytes) {
		return false
	}
	c.b.Items--
	return true
}

func (q *Queue) snapWindow(c Cursor, b *Budget, out *Effects) Cursor {
	w := &q.window.order
	c.next = max(c.next, w.popped)
	if c.next >= c.seen {
		return Cursor{phase: phaseStates, next: 1, high: c.high}
	}
	part, first := b.chunk(out), c.next
	out.begin(kindWindow)
	for c.next < c.seen && part.more(c.next == first) {
		s := w.at(int(c.next - w.popped))
		out.buf = append(out.buf, s.id[:]...)
		out.time(s.at)
		c.next++
	}
	out.end()
	return c
}

func (q *Queue) snapStates(c Cursor, b *Budget, move func(Ref) (Ref, bool), out *Effects) Cursor {
	part, first, began := b.chunk(out), c.next, false
	for ; c.next < uint64(len(q.sessions.all)) && part.more(c.next == first); c.next++ {
		q.index.msgs.visits++
		s := &q.sessions.all[c.next]
		if s.state == (Ref{}) {
			continue
		}
		if to, ok := move(s.state); ok {
			out.Freed, out.Placed = append(out.Freed, s.state), append(out.Placed, to)
			s.state = to
		}
		if !began {
			out.begin(kindStates)
			began = true
		}
		out.state(s.id, s.state, s.changed)
	}
	if began {
		out.end()
	}
	if c.next >= uint64(len(q.sessions.all)) {
		return Cursor{phase: phaseEntries, next: 1, high: c.high}
	}
	return c
}

func (q *Queue) snapEntries(c Cursor, b *Budget, move func(Ref) (Ref, bool), out *Effects) Cursor {
	to, part := c.high, b.chunk(out)
	seq, e := q.index.msgs.next(SeqNo(c.next))
	at, first := int64(0), seq
	switch {
	case e != nil && seq <= c.high:
		at = e.enqueued
	case SeqNo(c.next) > c.high:
		return Cursor{phase: phaseStarted, keys: q.index.keys.counts}
	default:
		// Nothing is left up to high. A chunk says so: a message that returns from
		// now on would otherwise seem to be one that a chunk is yet to bring.
	}
	out.begin(kindEntries)
	out.time(at)
	for ; e != nil && seq <= c.high; seq, e = q.index.msgs.next(seq + 1) {
		if !part.more(seq == first) {
			to = seq - 1
			break
		}
		if body, ok := move(e.body()); ok {
			q.rebody(e, body, out)
		}
		it := q.itemOf(e)
		out.seq(seq)
		out.item(&it, at)
	}
	out.seq(0)
	out.seq(to)
	out.end()
	if len(q.index.msgs.arrivalTimes) > 0 {
		q.lent(SeqNo(c.next), to, out)
	}
	if len(q.reasons) > 0 {
		q.moveReasons(SeqNo(c.next), to, move, out)
		q.recordReasons(SeqNo(c.next), to, out)
	}
	c.next = uint64(to) + 1
	return c
}

// Upcoming yields the bodies that the next step of a snapshot, with the same
// budget, will mention. What commands change in between it cannot know.
func (q *Queue) Upcoming(c Cursor, b Budget, yield func(Ref)) {
	switch c.phase {
	case phaseStates:
		for ; b.Items > 0 && c.next < uint64(len(q.sessions.all)); c.next++ {
			b.Items--
			if s := &q.sessions.all[c.next]; s.state != (Ref{}) {
				yield(s.state)
			}
		}
	case phaseEntries:
		for seq, e := q.index.msgs.next(SeqNo(c.next)); e != nil && seq <= c.high && b.Items > 0; seq, e = q.index.msgs.next(seq + 1) {
			b.Items--
			yield(e.body())
			if reason, ok := q.reasons[seq]; ok {
				yield(reason)
			}
		}
	}
}

// SnapshotSize is about how many bytes a snapshot takes, rather more than less. It
// looks at a few messages only.
func (q *Queue) SnapshotSize() uint64 {
	const (
		fixed     = 160     // header, end, and what they are wrapped in
		perSight  = 24      // a message id in the duplicate window
		perReason = 24      // a place beside a dead letter
		perState  = 64 + 32 // a session's state, its name, a name's share of a record
		samples   = 32
		perRecord = 64 // of samples that were not found
	)
	size := uint64(fixed) + perReason*uint64(len(q.reasons)) + perSight*uint64(q.window.order.n) + perState*uint64(max(0, len(q.sessions.all)-1)+max(0, len(q.index.keys.all)-1))
	total := uint64(q.Counts().Total())
	if total == 0 {
		return size
	}
	var out Effects
	found := uint64(0)
	stride := max(uint64(q.index.msgs.last)/samples, 1)
	for i := range uint64(samples) {
		seq, e := q.index.msgs.next(SeqNo(i * stride))
		if e == nil {
			break
		}
		it := q.itemOf(e)
		out.seq(seq)
		out.item(&it, 0)
		found++
	}
	if found == 0 {
		return size + perRecord*total
	}
	return size + (uint64(len(out.buf))*5/4/found+1)*total
}

// replaySnapshot applies a part of a snapshot. To a queue that is whole already
// it brings nothing but new places of bodies.
func (q *Queue) replaySnapshot(k kind, r *reader, out *Effects) error {
	if k == kindSnapshot || k == kindHeader {
		q.replayHeader(k, r, out)
		return nil
	}
	if !q.restore.begun {
		return fmt.Errorf("%w: part %#02x of a snapshot without its beginning", ErrCorrupt, byte(k))
	}
	switch k {
	case kindWindow:
		for len(r.rest) > 0 {
			var s sighting
			copy(s.id[:], r.take(uint64(len(s.id))))
			s.at = r.time()
			if !r.bad && q.restore.building {
				q.sight(s)
			}
		}
	case kindStates:
		for len(r.rest) > 0 {
			q.replayState(r, out)
		}
	case kindEntries:
		return q.replayEntries(r, out)
	case kindEnd:
		return q.replayEnd()
	}
	return nil
}

func (q *Queue) replayHeader(k kind, r *reader, out *Effects) {
	last, in, cfg := r.upTo(never-1), r.time(), r.settings(k)
	if r.bad || q.restore.begun && !q.restore.building {
		return
	}
	// A snapshot that follows one that never ended takes its place.
	q.Refs(func(r Ref) { out.Freed = append(out.Freed, r) })
	*q = *New(cfg, q.epoch)
	q.index.msgs.last, q.lastIn = SeqNo(last), in
	q.restore = restore{begun: true, building: true, high: SeqNo(last)}
}

func (q *Queue) replayEntries(r *reader, out *Effects) error {
	at := r.time()
	for !r.bad {
		seq := SeqNo(r.uint())
		if seq == 0 {
			break
		}
		it := r.item(at)
		if err := q.fitting(r, &it); err != nil || r.bad {
			return err
		}
		if err := q.bring(seq, &it, out); err != nil {
			return err
		}
	}
	to := r.seq()
	if q.restore.building && !r.bad {
		if to < q.restore.brought || to > q.restore.high {
			return fmt.Errorf("%w: a chunk up to message %d", ErrCorrupt, to)
		}
		q.restore.brought = to
	}
	return nil
}

// bring takes a message out of a snapshot.
func (q *Queue) bring(seq SeqNo, it *item, out *Effects) error {
	if !q.restore.building {
		e := q.index.msgs.get(seq)
		if e == nil {
			return fmt.Errorf("%w: a snapshot has message %d, which is gone", ErrCorrupt, seq)
		}
		if e.body() != it.body {
			q.rebody(e, it.body, out)
		}
		return nil
	}
	if seq <= q.restore.brought || seq > q.restore.high {
		return fmt.Errorf("%w: message %d is in the wrong chunk", ErrCorrupt, seq)
	}
	q.restore.brought = seq
	q.place(seq, it, out)
	return nil
}

func (q *Queue) replayEnd() error {
	if !q.restore.building {
		return nil
	}
	q.restore.building = false
	slices.SortFunc(q.restore.seen, sighting.compare)
	for _, s := range q.restore.seen {
		q.window.add(s)
	}
	q.restore.seen = nil
	q.fill()
	return nil
}

// sight remembers a message id. Inside a snapshot the newer ones come before the
// older ones, which the window could not forget in order.
func (q *Queue) sight(s sighting) {
	switch {
	case q.window.lasts == 0:
	case q.restore.building:
		q.restore.seen = append(q.restore.seen, s)
	default:
		q.window.forget(s.at, 2)
		q.window.add(s)
	}
}

// Digest sums up everything that a restart must find again at a time. Two
// queues with the same digest are the same but for their locks.
func (q *Queue) Digest(now time.Time) [32]byte {
	var out Effects
	out.uint(uint64(q.index.msgs.last))
	out.time(q.lastIn)
	out.settings(q.cfg)
	for _, s := range q.window.within(nanos(now)) {
		out.buf = append(out.buf, s.id[:]...)
		out.time(s.at)
	}
	for _, id := range slices.Sorted(maps.Keys(q.sessions.byID)) {
		if s := &q.sessions.all[q.sessions.byID[id]]; s.state != (Ref{}) {
			out.state(id, s.state, s.changed)
		}
	}
	for seq, e := q.index.msgs.next(0); e != nil; seq, e = q.index.msgs.next(seq + 1) {
		it := q.itemOf(e)
		out.seq(seq)
		out.item(&it, 0)
		out.time(q.enqueuedAt(seq, e))
		if reason, ok := q.reasons[seq]; ok {
			out.ref(reason)
		}
	}
	for _, k := range q.startedKeys() {
		out.started(&k)
	}
	return sha256.Sum256(out.buf)
}
