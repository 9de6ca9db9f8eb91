// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
)

// Renew extends a lock to now plus the lock duration. Inside a session the lock is the
// session's, and Renew only returns when that ends. A durable lock stays durable, but a
// restart does not know that it was extended.
func (q *Queue) Renew(now time.Time, t Token) (time.Time, error) {
	at := q.core.At(now)
	e, err := q.lockedEntry(t, at)
	if err != nil {
		return time.Time{}, err
	}
	if q.core.Locks.All[e.StateIndex].List != lease.InSession {
		q.core.Locks.Renew(e.StateIndex, at)
	}
	return entries.Moment(q.lockedUntil(e.StateIndex)), nil
}

// RenewDurably is Renew with a lock that survives a restart: until it ends, its token is
// valid, and nobody else gets the message. In a session it is Renew: the locks of sessions
// are not logged.
func (q *Queue) RenewDurably(now time.Time, t Token, out *Effects) (time.Time, error) {
	until, err := q.Renew(now, t)
	if err == nil && !q.core.Config.Sessions {
		q.makeDurable(q.core.Index.Entries.Get(t.Seq).StateIndex, q.core.At(now), out)
	}
	return until, err
}

// makeDurable makes a lock that begins at at, or was renewed then, one that is logged.
func (q *Queue) makeDurable(slot uint32, at int64, out *Effects) {
	q.core.Locks.RenewDurable(slot, at)
	out.Extend(record.KindLocks)
	record.WriteLock(&out.Effects, &q.core.Locks.All[slot])
	out.End()
}

// LockDurable reports whether a token is that of a durable lock.
func (q *Queue) LockDurable(now time.Time, t Token) bool {
	e, err := q.lockedEntry(t, q.core.At(now))
	return err == nil && q.core.DurableLock(e)
}

// Save keeps a state beside a locked message, in place of the one that it has; the zero Ref
// is none. It is delivered with the message from now on, and removed with it.
func (q *Queue) Save(now time.Time, t Token, saved Ref, out *Effects) error {
	if _, err := q.lockedEntry(t, q.core.At(now)); err != nil {
		return err
	}
	q.core.Saved.Put(t.Seq, saved, &out.Effects)
	out.Begin(record.KindSaved)
	out.Uint(uint64(t.Seq))
	out.Ref(saved)
	out.End()
	return nil
}

// SavedFits reports whether a queue that may have so many bytes, zero is no limit, has space for
// a state of size bytes beside a message.
func (q *Queue) SavedFits(seq SeqNo, size int, most int64) bool {
	earlier, _ := q.core.Saved.Get(seq)
	grown := int64(size) - int64(earlier.Size)
	return grown <= 0 || most == 0 || q.Footprint()+grown <= most
}

// Complete removes a message.
func (q *Queue) Complete(now time.Time, t Token, out *Effects) (Settled, error) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return Settled{}, err
	}
	s := q.unlock(t.Seq, e)
	q.core.Free(t.Seq, e, &out.Effects)
	logRemoved(&out.Effects, t.Seq)
	return s, nil
}

// Abandon requeues a message and counts a failed delivery; at the limit the message
// becomes a dead letter instead. A deferred one stays deferred.
func (q *Queue) Abandon(now time.Time, t Token, out *Effects) (Settled, error) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return Settled{}, err
	}
	return q.fail(t.Seq, e, out), nil
}

// Retry is Abandon of a message that nobody gets before a time. It keeps its place
// meanwhile, and a session waits for its message. A deferred message stays deferred.
func (q *Queue) Retry(now time.Time, t Token, notBefore time.Time, out *Effects) (Settled, error) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return Settled{}, err
	}
	s := q.fail(t.Seq, e, out)
	if at := min(entries.Nanos(notBefore), e.Expiry()); !s.DeadLettered && e.Is(Ready) && at > q.core.At(now) {
		q.core.UnmarkReady(t.Seq, e, Locked)
		q.core.SetAside(t.Seq, e)
		q.core.Wait(t.Seq, e, at)
		out.Begin(record.KindRetries)
		out.Uint(uint64(t.Seq))
		out.Fixed(at)
		out.End()
	}
	return s, nil
}

// Release requeues a message without a failed delivery.
func (q *Queue) Release(now time.Time, t Token, out *Effects) (Settled, error) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return Settled{}, err
	}
	return q.release(t.Seq, e, out), nil
}

// release requeues a locked message. The end of a durable lock is logged.
func (q *Queue) release(seq SeqNo, e *entries.Entry, out *Effects) Settled {
	if q.core.DurableLock(e) {
		out.Extend(record.KindUnlocked)
		out.Uint(uint64(seq))
		out.End()
	}
	s := q.unlock(seq, e)
	q.core.Requeue(seq, e)
	return s
}

// Revoke requeues a message that never reached the holder of the token, without a failed
// delivery. It accepts the token of a lock that has expired and that Tick has not ended
// yet.
func (q *Queue) Revoke(now time.Time, t Token, out *Effects) error {
	q.core.At(now)
	e := q.core.Index.Entries.Get(t.Seq)
	if e == nil || !e.Is(Locked) || q.core.Locks.All[e.StateIndex].Nonce != t.Nonce {
		return q.lost()
	}
	q.release(t.Seq, e, out)
	return nil
}

// Defer makes a message deferred: it is delivered only by its sequence number. Like
// Abandon it counts a delivery, and at the limit the message becomes a dead letter.
func (q *Queue) Defer(now time.Time, t Token, out *Effects) (Settled, error) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return Settled{}, err
	}
	e.Flags |= entries.FlagDeferred
	s := q.fail(t.Seq, e, out)
	if s.DeadLettered {
		return s, nil
	}
	out.Begin(record.KindDeferred)
	out.Uint(uint64(t.Seq))
	out.End()
	return s, nil
}

// Reject makes a message a dead letter. A dead-letter queue returns ErrNotAllowed.
func (q *Queue) Reject(now time.Time, t Token, reason, description string, out *Effects) (Settled, error) {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return Settled{}, err
	}
	if q.core.Config.DeadLetterQueue {
		return Settled{}, ErrNotAllowed
	}
	return q.deadLetter(t.Seq, e, reason, description, out), nil
}

// Rewrite replaces the body of a locked message. A reason that a dead letter has beside
// the old body is dropped: the owner has written it into the new one.
func (q *Queue) Rewrite(now time.Time, t Token, body Ref, out *Effects) error {
	e, err := q.lockedEntry(t, q.core.At(now))
	if err != nil {
		return err
	}
	q.core.ReplaceBody(e, body, &out.Effects)
	q.core.Reasons.Drop(t.Seq, &out.Effects)
	out.Begin(record.KindRewrite)
	out.Uint(uint64(t.Seq))
	out.Ref(body)
	out.End()
	return nil
}

// lockedEntry returns the message that a token has locked. An expired lock is lost even
// before Tick requeues the message.
func (q *Queue) lockedEntry(t Token, at int64) (*entries.Entry, error) {
	q.core.Index.Entries.Hint = q.core.Locks.Hint(t.Nonce)
	e := q.core.Index.Entries.Get(t.Seq)
	if e == nil || !e.Is(Locked) || q.core.Locks.All[e.StateIndex].Nonce != t.Nonce {
		return nil, q.lost()
	}
	if q.lockedUntil(e.StateIndex) <= at {
		return nil, q.lost()
	}
	return e, nil
}

// lost returns the error for a token that locks nothing.
func (q *Queue) lost() error {
	if q.core.Config.Sessions {
		return ErrSessionLockLost
	}
	return ErrLockLost
}

func (q *Queue) lockedUntil(slot uint32) int64 {
	l := &q.core.Locks.All[slot]
	if l.List == lease.InSession {
		return q.core.Locks.All[q.core.Sessions.All[l.Session].Lock].Until
	}
	return l.Until
}

// unlock ends the lock of a message. The caller lists or removes the message.
func (q *Queue) unlock(seq SeqNo, e *entries.Entry) Settled {
	l := &q.core.Locks.All[e.StateIndex]
	s := Settled{
		Seq:        seq,
		Body:       e.Body(),
		Level:      e.Level,
		Class:      e.Class,
		Failures:   e.Failures,
		EnqueuedAt: entries.Moment(q.core.EnqueuedAt(seq, e)),
		LockedAt:   entries.Moment(l.At),
	}
	q.core.EndLock(e)
	return s
}

// fail ends a delivery that did not succeed.
func (q *Queue) fail(seq SeqNo, e *entries.Entry, out *Effects) Settled {
	if q.core.Config.DeadLetterQueue {
		return q.release(seq, e, out)
	}
	if e.Failures < math.MaxUint32 {
		e.Failures++
	}
	if q.core.Config.MaxFailures > 0 && e.Failures >= q.core.Config.MaxFailures {
		d := tooManyFailures(Delivery{Failures: e.Failures})
		return q.deadLetter(seq, e, d.Reason, d.Description, out)
	}
	s := q.unlock(seq, e)
	q.core.Requeue(seq, e)
	out.Begin(record.KindFailed)
	out.Uint(uint64(seq))
	out.Uint(uint64(e.Failures))
	out.End()
	return s
}

// deadLetter makes a locked message a dead letter.
func (q *Queue) deadLetter(seq SeqNo, e *entries.Entry, reason, description string, out *Effects) Settled {
	d := DeadLetter{Delivery: q.delivery(seq, e), Reason: reason, Description: description}
	d.LockedUntil = time.Time{}
	s := q.unlock(seq, e)
	s.DeadLettered = true
	out.DeadLettered = append(out.DeadLettered, d)
	q.core.Free(seq, e, &out.Effects)
	logRemoved(&out.Effects, seq)
	return s
}
