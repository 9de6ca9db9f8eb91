// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/triagemq/triagemq/internal/invariant"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/ordering"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// restore is how far a replay has come.
type restore struct {
	begun        bool          // a record was replayed
	inSnapshot   bool          // reading the snapshot that the queue begins with
	high         entries.SeqNo // highest sequence number when that snapshot began
	restoredUpTo entries.SeqNo // highest sequence number that its chunks have restored
	seen         []lease.SeenID
	tolerance    tolerance
}

// Restored implements [machine.Machine].
func (q *Core) Restored() bool { return !q.restore.inSnapshot }

// Replay implements [machine.Machine]. A queue begins with a snapshot, or with its very
// first record; a later snapshot only moves bodies. After an error the queue must be
// dropped.
func (q *Core) Replay(rec []byte, out *machine.Effects) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: empty", ErrCorrupt)
	}
	k, in := rec[0], machine.NewReader(rec[1:])
	r := &in
	err := q.replay(k, r, out)
	switch {
	case err != nil:
	case r.Bad():
		err = fmt.Errorf("%w: kind %#02x is cut short or out of range", ErrCorrupt, byte(k))
	case r.Len() > 0:
		err = fmt.Errorf("%w: kind %#02x has %d bytes too many", ErrCorrupt, byte(k), r.Len())
	}
	q.restore.begun = true
	return err
}

func (q *Core) replay(k record.Kind, r *machine.Reader, out *machine.Effects) error {
	switch k {
	case record.KindEnqueue:
		return q.replayEnqueue(r, out)
	case record.KindActivate:
		return q.replayActivate(r, out)
	case record.KindRemoved:
		return q.replayRemoved(r, out)
	case record.KindFailed, record.KindDeferred, record.KindRewrite, record.KindReclassify:
		return q.replayChange(k, r, out)
	case record.KindArrivalTimes:
		return q.replayArrivalTimes(r)
	case record.KindReasons:
		return q.replayRefs(&q.Reasons, r, out)
	case record.KindSaved:
		return q.replayRefs(&q.Saved, r, out)
	case record.KindRetries:
		return q.replayRetries(r)
	case record.KindLocks:
		return q.replayLocks(r)
	case record.KindUnlocked:
		return q.replayUnlocked(r)
	case record.KindReturned:
		return q.replayReturned(r, out)
	case record.KindState:
		q.replayState(r, out)
	case record.KindStarted:
		return q.replayStarted(r)
	case record.KindConfig, record.KindSettings:
		q.replayConfig(k, r)
	case record.KindSnapshot, record.KindHeader, record.KindWindow, record.KindStates, record.KindEntries, record.KindEnd:
		return q.replaySnapshot(k, r, out)
	default:
		return fmt.Errorf("%w: unknown kind %#02x", ErrCorrupt, byte(k))
	}
	return nil
}

// notYetRestored reports whether seq belongs to a snapshot chunk that has not been read
// yet. The record must be ignored: the chunk was written after it and already contains
// its effect. doc.go has an example.
func (q *Core) notYetRestored(seq entries.SeqNo) bool {
	return q.restore.inSnapshot && seq <= q.restore.high && seq > q.restore.restoredUpTo
}

func (q *Core) replayEnqueue(r *machine.Reader, out *machine.Effects) error {
	in, first, n := r.Time(), record.ReadSeq(r), r.Uint()
	if r.Bad() {
		return nil
	}
	if err := q.numberedFrom(first); err != nil {
		return err
	}
	q.LastIn = in
	q.Index.Entries.Last = max(q.Index.Entries.Last, first-1)
	for seq := first; n > 0 && !r.Bad(); seq, n = seq+1, n-1 {
		it := record.ReadItem(r, in)
		if err := q.fitting(r, &it); err != nil || r.Bad() {
			return err
		}
		if it.Hashed {
			q.noteID(lease.SeenID{ID: it.ID, At: in})
		}
		if seq <= q.Index.Entries.Last && q.Index.Entries.Get(seq) != nil {
			continue // only if records are missing
		}
		q.Insert(seq, &it, out)
	}
	return nil
}

// fitting rejects an item that this queue could not have written.
func (q *Core) fitting(r *machine.Reader, it *record.Item) error {
	if !r.Bad() && q.Config.Sessions && !it.InSession {
		return fmt.Errorf("%w: message without a session", ErrCorrupt)
	}
	return nil
}

func (q *Core) replayActivate(r *machine.Reader, out *machine.Effects) error {
	in := r.Time()
	q.LastIn = in
	for r.Len() > 0 {
		old, it := record.ReadSeq(r), record.ReadItem(r, in)
		if err := q.fitting(r, &it); err != nil || r.Bad() {
			return err
		}
		if q.restore.tolerance.uncertain {
			q.activateAgain(old, &it, out)
			continue
		}
		if q.notYetRestored(old) {
			q.Insert(q.Index.Entries.Last+1, &it, out)
			continue
		}
		if e := q.Index.Entries.Get(old); e == nil || !e.Is(entries.Scheduled) {
			if err := q.absent(old, "message %d is not scheduled", old); err != nil {
				return err
			}
			if e == nil {
				q.Insert(q.Index.Entries.Last+1, &it, out)
				continue
			}
		}
		q.Renumber(old, q.Index.Entries.Last+1, &it, out)
	}
	return nil
}

func (q *Core) replayRemoved(r *machine.Reader, out *machine.Effects) error {
	for r.Len() > 0 {
		seq := record.ReadSeq(r)
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.Index.Entries.Get(seq)
		if e == nil {
			if err := q.absent(seq, "message %d is removed already", seq); err != nil {
				return err
			}
			continue
		}
		q.Remove(seq, e, out)
	}
	return nil
}

// replayChange applies a record about one message that stays.
func (q *Core) replayChange(k record.Kind, r *machine.Reader, out *machine.Effects) error {
	seq := record.ReadSeq(r)
	var failures uint32
	var body machine.Ref
	var class Classification
	switch k {
	case record.KindFailed:
		failures = r.Uint32()
	case record.KindRewrite:
		body = r.Ref()
	case record.KindReclassify:
		class = Classification{Level: ordering.Level(r.Byte()), Class: ordering.Class(r.Byte()), Key: r.String()}
	}
	if r.Bad() || q.notYetRestored(seq) {
		return nil
	}
	e := q.Index.Entries.Get(seq)
	if e == nil {
		return q.absent(seq, "no message %d to change", seq)
	}
	switch k {
	case record.KindFailed:
		e.Failures = failures
		if e.Is(entries.Locked) || e.Is(entries.Retrying) {
			q.takeOut(seq, e)
			q.Requeue(seq, e)
		}
	case record.KindRewrite:
		q.ReplaceBody(e, body, out)
		q.Reasons.Drop(seq, out)
	case record.KindReclassify:
		q.Reclassify(seq, e, class)
	case record.KindDeferred:
		return q.replayDefer(seq, e)
	}
	return nil
}

func (q *Core) replayDefer(seq entries.SeqNo, e *entries.Entry) error {
	switch e.State() {
	case entries.Ready, entries.Locked, entries.Retrying:
		q.takeOut(seq, e)
		e.Flags &^= entries.FlagDeferred
		e.SetState(entries.Deferred)
		q.ByState.Deferred++
	case entries.Scheduled:
		return q.absent(seq, "message %d deferred before its time", seq)
	}
	return nil
}

func (q *Core) replayState(r *machine.Reader, out *machine.Effects) {
	id, state, changed := r.String(), r.Ref(), r.Time()
	if !r.Bad() {
		q.Sessions.SetState(id, state, changed, out)
	}
}

func (q *Core) replayConfig(k record.Kind, r *machine.Reader) {
	cfg := record.ReadSettings(r, k)
	if r.Bad() {
		return
	}
	cfg.Sessions, cfg.DeadLetterQueue = q.Config.Sessions, q.Config.DeadLetterQueue
	q.Apply(cfg)
	if cfg.DuplicateWindow == 0 {
		q.restore.seen = nil // the window is empty, and ids of the snapshot must not refill it
	}
	for q.Reordering() {
		q.Reorder(math.MaxInt)
	}
}

func (q *Core) replayReturned(r *machine.Reader, out *machine.Effects) error {
	at := r.Time()
	seq, it := record.ReadSeq(r), record.ReadItem(r, at)
	if r.Bad() || q.notYetRestored(seq) {
		return nil
	}
	if err := q.fitting(r, &it); err != nil {
		return err
	}
	if e := q.Index.Entries.Get(seq); e != nil || seq > q.Index.Entries.Last {
		if err := q.absent(seq, "message %d returns and was not removed", seq); err != nil {
			return err
		}
		if e != nil {
			q.Remove(seq, e, out)
		}
	}
	q.Insert(seq, &it, out)
	return nil
}

// replayStarted reads which keys were started. Inside a snapshot the messages of a key
// may not be restored yet: the chunk about keys, at its end, repeats it.
func (q *Core) replayStarted(r *machine.Reader) error {
	for r.Len() > 0 {
		number, name := r.Uint(), r.String()
		if r.Bad() || number == 0 {
			r.Fail()
			return nil
		}
		if !q.Index.StartByName(name, number) && !q.restore.inSnapshot && !q.restore.tolerance.on {
			return fmt.Errorf("%w: no key %q to start", ErrCorrupt, name)
		}
	}
	return nil
}

// replaySnapshot applies a chunk of a snapshot. In a queue that is restored already it
// only changes the positions of bodies.
func (q *Core) replaySnapshot(k record.Kind, r *machine.Reader, out *machine.Effects) error {
	if k == record.KindSnapshot || k == record.KindHeader {
		q.replayHeader(k, r, out)
		return nil
	}
	if !q.restore.begun && q.restore.tolerance.on {
		q.beginWithoutHeader()
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
		q.endSnapshot()
	}
	return nil
}

func (q *Core) replayHeader(k record.Kind, r *machine.Reader, out *machine.Effects) {
	last, in, cfg := r.UpTo(entries.Never-1), r.Time(), record.ReadSettings(r, k)
	if r.Bad() {
		return
	}
	if q.restore.begun && (!q.restore.inSnapshot || q.restore.tolerance.on) {
		q.headerWithin(entries.SeqNo(last))
		return
	}
	// A snapshot that follows one without an end replaces it.
	machine.AllRefs(q, func(r machine.Ref) { out.Freed = append(out.Freed, r) })
	tolerance := q.restore.tolerance
	tolerance.uncertain = false
	*q = NewCore(cfg)
	q.Index.Entries.Last, q.LastIn = entries.SeqNo(last), in
	q.restore = restore{begun: true, inSnapshot: true, high: entries.SeqNo(last), tolerance: tolerance}
}

func (q *Core) replayEntries(r *machine.Reader, out *machine.Effects) error {
	at := r.Time()
	for !r.Bad() {
		seq := entries.SeqNo(r.Uint())
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
			return q.absent(to, "a chunk up to message %d", to)
		}
		q.restore.restoredUpTo = to
		q.Index.Entries.Last = max(q.Index.Entries.Last, to) // it is not less, unless the header is missing
	}
	return nil
}

// restoreEntry inserts a message of a snapshot.
func (q *Core) restoreEntry(seq entries.SeqNo, it *record.Item, out *machine.Effects) error {
	if !q.restore.inSnapshot {
		e := q.Index.Entries.Get(seq)
		if e == nil {
			if err := q.absent(seq, "a snapshot has message %d, which does not exist", seq); err != nil {
				return err
			}
			q.Insert(seq, it, out)
			return nil
		}
		if e.Body() != it.Body {
			q.ReplaceBody(e, it.Body, out)
		}
		return nil
	}
	if seq <= q.restore.restoredUpTo || seq > q.restore.high {
		if err := q.absent(seq, "message %d is in the wrong chunk", seq); err != nil {
			return err
		}
	}
	q.restore.restoredUpTo = max(q.restore.restoredUpTo, seq)
	if q.Index.Entries.Get(seq) != nil {
		return nil // only if records are missing
	}
	q.Insert(seq, it, out)
	return nil
}

// endSnapshot ends the snapshot that the queue begins with.
func (q *Core) endSnapshot() {
	if !q.restore.inSnapshot {
		return
	}
	q.restore.inSnapshot, q.restore.tolerance.unbounded = false, false
	slices.SortFunc(q.restore.seen, lease.SeenID.Compare)
	for _, s := range q.restore.seen {
		q.Window.Add(s)
	}
	q.restore.seen = nil
	q.orderRestored()
}

// noteID adds a message id to the duplicate window. Inside a snapshot, records with newer
// ids precede the chunk with older ones; the ids are sorted at its end.
func (q *Core) noteID(s lease.SeenID) {
	switch {
	case q.Window.Off():
	case q.restore.inSnapshot:
		q.restore.seen = append(q.restore.seen, s)
	default:
		q.Window.Expire(s.At, 2)
		q.Window.Add(s)
	}
}

// orderRestored lists the messages of a snapshot, which has ended.
func (q *Core) orderRestored() {
	q.Index.Ready = 0
	for seq, e := q.Index.Entries.Next(0); e != nil; seq, e = q.Index.Entries.Next(seq + 1) {
		if !e.Is(entries.Ready) {
			q.asideRestored(seq, e)
			continue
		}
		if r := q.Index.RunFor(e.Key(), e.Level); r != nil {
			e = q.Index.Entries.Move(seq, r)
		}
		q.MarkReady(seq, e)
	}
	invariant.Check(q.Check)
}

// asideRestored lists a message of a snapshot that is not ready.
func (q *Core) asideRestored(seq entries.SeqNo, e *entries.Entry) {
	q.SetAside(seq, e)
	switch {
	case e.Is(entries.Locked):
		q.Index.IncInFlight(e)
	case e.Is(entries.Retrying) && q.Config.Sessions:
		q.SessionOf(e).BeginRetry(&q.Index)
	}
}

// ErrCorrupt says that a record cannot be one of this queue, or not in this position. The
// queue that returned it must be dropped.
var ErrCorrupt = errors.New("queue: corrupt record")
