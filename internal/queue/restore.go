// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
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

func (q *Queue) replay(k record.Kind, r *machine.Reader, out *machine.Effects) error {
	switch k {
	case record.KindEnqueue:
		return q.replayEnqueue(r, out)
	case record.KindActivate:
		return q.replayActivate(r, out)
	case record.KindRemoved:
		return q.replayGone(r, out)
	case record.KindFailed, record.KindDeferred, record.KindRewrite, record.KindReclassify:
		return q.replayChange(k, r, out)
	case record.KindArrivalTimes:
		return q.replayArrived(r)
	case record.KindReasons:
		return q.replayReasons(r, out)
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

// notYetRestored reports whether a number belongs to a message that the snapshot has
// not brought yet. Its chunk was written later and shows what happened to it.
func (q *Queue) notYetRestored(seq SeqNo) bool {
	return q.restore.inSnapshot && seq <= q.restore.high && seq > q.restore.restoredUpTo
}

func (q *Queue) replayEnqueue(r *machine.Reader, out *machine.Effects) error {
	in, first, n := r.Time(), record.ReadSeq(r), r.Uint()
	if !r.Bad() && first != q.index.Entries.Last+1 {
		return fmt.Errorf("%w: message %d after %d", ErrCorrupt, first, q.index.Entries.Last)
	}
	q.lastIn = max(q.lastIn, in)
	for ; n > 0 && !r.Bad(); n-- {
		it := record.ReadItem(r, in)
		if err := q.fitting(r, &it); err != nil || r.Bad() {
			return err
		}
		if it.Hashed {
			q.noteID(lease.SeenID{ID: it.ID, At: in})
		}
		q.insert(q.index.Entries.Last+1, &it, out)
	}
	return nil
}

// fitting refuses an item that this queue could not have written.
func (q *Queue) fitting(r *machine.Reader, it *record.Item) error {
	if !r.Bad() && q.cfg.Sessions && !it.InSession {
		return fmt.Errorf("%w: message without a session", ErrCorrupt)
	}
	return nil
}

func (q *Queue) replayActivate(r *machine.Reader, out *machine.Effects) error {
	in := r.Time()
	q.lastIn = max(q.lastIn, in)
	for r.Len() > 0 {
		old, it := record.ReadSeq(r), record.ReadItem(r, in)
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
		seq := record.ReadSeq(r)
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
func (q *Queue) replayChange(k record.Kind, r *machine.Reader, out *machine.Effects) error {
	seq := record.ReadSeq(r)
	var failures uint32
	var body Ref
	var class Reclass
	switch k {
	case record.KindFailed:
		failures = r.Uint32()
	case record.KindRewrite:
		body = r.Ref()
	case record.KindReclassify:
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
	case record.KindFailed:
		e.Failures = failures
	case record.KindRewrite:
		q.replaceBody(e, body, out)
		q.dropReason(seq, out)
	case record.KindReclassify:
		q.reclassify(seq, e, class)
	case record.KindDeferred:
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

func (q *Queue) replayConfig(k record.Kind, r *machine.Reader) {
	cfg := record.ReadSettings(r, k)
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
