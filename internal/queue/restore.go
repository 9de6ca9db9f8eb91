// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
)

// restore is how far a replay has come.
type restore struct {
	begun    bool  // a record was replayed, or a command given
	building bool  // inside the snapshot that the queue begins with
	high     SeqNo // highest number when that snapshot began
	brought  SeqNo // its chunks have come this far
	seen     []sighting
}

// Whole reports whether everything replayed so far makes a queue: false inside
// a snapshot that has not ended yet.
func (q *Queue) Whole() bool { return !q.restore.building }

// Replay applies a record that this queue, in an earlier life, wrote. A queue
// may begin with a snapshot, or with its very first record; a snapshot that
// comes later only moves bodies. After an error the queue must be dropped.
func (q *Queue) Replay(rec []byte, out *Effects) error {
	if len(rec) == 0 {
		return fmt.Errorf("%w: empty", ErrCorrupt)
	}
	k, r := kind(rec[0]), &reader{rest: rec[1:]}
	err := q.replay(k, r, out)
	switch {
	case err != nil:
	case r.bad:
		err = fmt.Errorf("%w: kind %#02x is cut short or out of range", ErrCorrupt, byte(k))
	case len(r.rest) > 0:
		err = fmt.Errorf("%w: kind %#02x has %d bytes too many", ErrCorrupt, byte(k), len(r.rest))
	}
	q.restore.begun = true
	return err
}

func (q *Queue) replay(k kind, r *reader, out *Effects) error {
	switch k {
	case kindEnqueue:
		return q.replayEnqueue(r, out)
	case kindActivate:
		return q.replayActivate(r, out)
	case kindGone:
		return q.replayGone(r, out)
	case kindFailed, kindDeferred, kindRewrite, kindReclass:
		return q.replayChange(k, r, out)
	case kindArrived:
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

// unseen reports whether a number belongs to a message that the snapshot has
// not brought yet. Its chunk was written later and shows what happened to it.
func (q *Queue) unseen(seq SeqNo) bool {
	return q.restore.building && seq <= q.restore.high && seq > q.restore.brought
}

func (q *Queue) replayEnqueue(r *reader, out *Effects) error {
	in, first, n := r.time(), r.seq(), r.uint()
	if !r.bad && first != q.index.msgs.last+1 {
		return fmt.Errorf("%w: message %d after %d", ErrCorrupt, first, q.index.msgs.last)
	}
	q.lastIn = max(q.lastIn, in)
	for ; n > 0 && !r.bad; n-- {
		it := r.item(in)
		if err := q.fitting(r, &it); err != nil || r.bad {
			return err
		}
		if it.hashed {
			q.sight(sighting{it.id, in})
		}
		q.place(q.index.msgs.last+1, &it, out)
	}
	return nil
}

// fitting refuses an item that this queue could not have written.
func (q *Queue) fitting(r *reader, it *item) error {
	if !r.bad && q.cfg.Sessions && !it.inSession {
		return fmt.Errorf("%w: message without a session", ErrCorrupt)
	}
	return nil
}

func (q *Queue) replayActivate(r *reader, out *Effects) error {
	in := r.time()
	q.lastIn = max(q.lastIn, in)
	for len(r.rest) > 0 {
		old, it := r.seq(), r.item(in)
		if err := q.fitting(r, &it); err != nil || r.bad {
			return err
		}
		if q.unseen(old) {
			q.place(q.index.msgs.last+1, &it, out)
			continue
		}
		if e := q.index.msgs.get(old); e == nil || !e.is(Scheduled) {
			return fmt.Errorf("%w: message %d is not scheduled", ErrCorrupt, old)
		}
		q.renumber(old, q.index.msgs.last+1, &it, out)
	}
	return nil
}

func (q *Queue) replayGone(r *reader, out *Effects) error {
	for len(r.rest) > 0 {
		seq := r.seq()
		if r.bad || q.unseen(seq) {
			continue
		}
		e := q.index.msgs.get(seq)
		if e == nil {
			return fmt.Errorf("%w: message %d is gone already", ErrCorrupt, seq)
		}
		q.remove(seq, e, out)
	}
	return nil
}

// replayChange applies a record about one message that stays.
func (q *Queue) replayChange(k kind, r *reader, out *Effects) error {
	seq := r.seq()
	var failures uint32
	var body Ref
	var class Reclass
	switch k {
	case kindFailed:
		failures = r.uint32()
	case kindRewrite:
		body = r.ref()
	case kindReclass:
		class = Reclass{Level: Level(r.byte()), Class: Class(r.byte()), Key: r.string()}
	}
	if r.bad || q.unseen(seq) {
		return nil
	}
	e := q.index.msgs.get(seq)
	if e == nil {
		return fmt.Errorf("%w: no message %d to change", ErrCorrupt, seq)
	}
	switch k {
	case kindFailed:
		e.failures = failures
	case kindRewrite:
		q.rebody(e, body, out)
		q.dropReason(seq, out)
	case kindReclass:
		q.reclass(seq, e, class)
	case kindDeferred:
		return q.replayDefer(seq, e)
	}
	return nil
}

func (q *Queue) replayDefer(seq SeqNo, e *entry) error {
	switch e.state() {
	case Ready:
		q.unstand(seq, e, Deferred)
		q.counts.Deferred++
		q.setAside(seq, e)
	case Scheduled:
		return fmt.Errorf("%w: message %d deferred before its time", ErrCorrupt, seq)
	}
	return nil
}

func (q *Queue) replayState(r *reader, out *Effects) {
	id, state, changed := r.string(), r.ref(), r.time()
	if !r.bad {
		q.setState(id, state, changed, out)
	}
}

func (q *Queue) replayConfig(k kind, r *reader) {
	cfg := r.settings(k)
	if r.bad {
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
