// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
)

// restore is how far a replay has come.
type restore struct {
	begun        bool  // a record was replayed, or a command given
	inSnapshot   bool  // inside the snapshot that the queue begins with
	high         SeqNo // highest number when that snapshot began
	restoredUpTo SeqNo // its chunks have come this far
	seen         []lease.SeenID
}

// Restored implements [machine.Machine].
func (q *Queue) Restored() bool { return !q.restore.inSnapshot }

// Replay implements [machine.Machine]. A queue
// may begin with a snapshot, or with its very first record; a snapshot that
// comes later only moves bodies. After an error the queue must be dropped.
func (q *Queue) Replay(rec []byte, out *machine.Effects) error {
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

func (q *Queue) replay(k kind, r *machine.Reader, out *machine.Effects) error {
	switch k {
	case kindEnqueue:
		return q.replayEnqueue(r, out)
	case kindActivate:
		return q.replayActivate(r, out)
	case kindRemoved:
		return q.replayGone(r, out)
	case kindFailed, kindDeferred, kindRewrite, kindReclassify:
		return q.replayChange(k, r, out)
	case kindArrivalTimes:
		return q.replayArrived(r)
	case kindReasons:
		return q.replayReasons(r, out)
	case kindReturned:
		return q.replayReturned(r, out)
	case kindState:
		q.replayState(r, out)
	case kindStarted:
		return q.replayStarted(r)
	case kindConfig, kindSettings:
		q.replayConfig(k, r)
	case kindSnapshot, kindHeader, kindWindow, kindStates, kindEntries, kindEnd:
		return q.replaySnapshot(k, r, out)
	default:
		return fmt.Errorf("%w: unknown kind %#02x", ErrCorrupt, byte(k))
	}
	return nil
}

// notYetRestored reports whether a number belongs to a message that the snapshot has
// not brought yet. Its chunk was written later and shows what happened to it.
func (q *Queue) notYetRestored(seq SeqNo) bool {
	return q.restore.inSnapshot && seq <= q.restore.high && seq > q.restore.restoredUpTo
}

func (q *Queue) replayEnqueue(r *machine.Reader, out *machine.Effects) error {
	in, first, n := r.Time(), readSeq(r), r.Uint()
	if !r.Bad() && first != q.index.Entries.Last+1 {
		return fmt.Errorf("%w: message %d after %d", ErrCorrupt, first, q.index.Entries.Last)
	}
	q.lastIn = max(q.lastIn, in)
	for ; n > 0 && !r.Bad(); n-- {
		it := readItem(r, in)
		if err := q.fitting(r, &it); err != nil || r.Bad() {
			return err
		}
		if it.hashed {
			q.noteID(lease.SeenID{ID: it.id, At: in})
		}
		q.insert(q.index.Entries.Last+1, &it, out)
	}
	return nil
}

// fitting refuses an item that this queue could not have written.
func (q *Queue) fitting(r *machine.Reader, it *item) error {
	if !r.Bad() && q.cfg.Sessions && !it.InSession {
		return fmt.Errorf("%w: message without a session", ErrCorrupt)
	}
	return nil
}

func (q *Queue) replayActivate(r *machine.Reader, out *machine.Effects) error {
	in := r.Time()
	q.lastIn = max(q.lastIn, in)
	for r.Len() > 0 {
		old, it := readSeq(r), readItem(r, in)
		if err := q.fitting(r, &it); err != nil || r.Bad() {
			return err
		}
		if q.notYetRestored(old) {
			q.insert(q.index.Entries.Last+1, &it, out)
			continue
		}
		if e := q.index.Entries.Get(old); e == nil || !e.Is(Scheduled) {
			return fmt.Errorf("%w: message %d is not scheduled", ErrCorrupt, old)
		}
		q.renumber(old, q.index.Entries.Last+1, &it, out)
	}
	return nil
}

func (q *Queue) replayGone(r *machine.Reader, out *machine.Effects) error {
	for r.Len() > 0 {
		seq := readSeq(r)
		if r.Bad() || q.notYetRestored(seq) {
			continue
		}
		e := q.index.Entries.Get(seq)
		if e == nil {
			return fmt.Errorf("%w: message %d is gone already", ErrCorrupt, seq)
		}
		q.remove(seq, e, out)
	}
	return nil
}

// replayChange applies a record about one message that stays.
func (q *Queue) replayChange(k kind, r *machine.Reader, out *machine.Effects) error {
	seq := readSeq(r)
	var failures uint32
	var body Ref
	var class Reclass
	switch k {
	case kindFailed:
		failures = r.Uint32()
	case kindRewrite:
		body = r.Ref()
	case kindReclassify:
		class = Reclass{Level: Level(r.Byte()), Class: Class(r.Byte()), Key: r.String()}
	}
	if r.Bad() || q.notYetRestored(seq) {
		return nil
	}
	e := q.index.Entries.Get(seq)
	if e == nil {
		return fmt.Errorf("%w: no message %d to change", ErrCorrupt, seq)
	}
	switch k {
	case kindFailed:
		e.Failures = failures
	case kindRewrite:
		q.replaceBody(e, body, out)
		q.dropReason(seq, out)
	case kindReclassify:
		q.reclassify(seq, e, class)
	case kindDeferred:
		return q.replayDefer(seq, e)
	}
	return nil
}

func (q *Queue) replayDefer(seq SeqNo, e *entries.Entry) error {
	switch e.State() {
	case Ready:
		q.unmarkReady(seq, e, Deferred)
		q.counts.Deferred++
		q.setAside(seq, e)
	case Scheduled:
		return fmt.Errorf("%w: message %d deferred before its time", ErrCorrupt, seq)
	}
	return nil
}

func (q *Queue) replayState(r *machine.Reader, out *machine.Effects) {
	id, state, changed := r.String(), r.Ref(), r.Time()
	if !r.Bad() {
		q.sessions.SetState(id, state, changed, out)
	}
}

func (q *Queue) replayConfig(k kind, r *machine.Reader) {
	cfg := readSettings(r, k)
	if r.Bad() {
		return
	}
	cfg.Sessions, cfg.IsDead = q.cfg.Sessions, q.cfg.IsDead
	q.apply(cfg)
	if cfg.Duplicates == 0 {
		q.restore.seen = nil // the window forgets, also what it is yet to hear of
	}
	for q.Reordering() {
		q.Reorder(math.MaxInt)
	}
}
