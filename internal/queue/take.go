// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/session"
)

// maxExpired is how many expired messages a Take removes before it leaves the others to
// Tick.
const maxExpired = 64

// Take delivers the best ready message that w accepts, locked unless w is
// ReceiveAndDelete. In a session queue it is the first of w.Session. It stops after
// maxExpired messages that have expired; Tick, which is due then, removes the others.
func (q *Queue) Take(now time.Time, w TakeOptions, out *Effects) (Delivery, bool) {
	return q.take(now, w, nil, out)
}

// TakeOrLock is Take with w ReceiveAndDelete, for an owner that must have the body, and the
// state that is saved beside it, before the message is removed. If inHand returns false for
// one of them, the message is locked without end instead: the Delivery has a token, and the
// owner completes, releases or dead-letters the message when it has read them.
func (q *Queue) TakeOrLock(now time.Time, w TakeOptions, inHand func(Ref) bool, out *Effects) (Delivery, bool) {
	return q.take(now, w, inHand, out)
}

func (q *Queue) take(now time.Time, w TakeOptions, inHand func(Ref) bool, out *Effects) (Delivery, bool) {
	at := q.core.At(now)
	if q.core.Config.ReceivePaused {
		return Delivery{}, false
	}
	for range maxExpired {
		k, e, ok := q.best(at, w)
		if !ok {
			return Delivery{}, false
		}
		if e.Expiry() <= at {
			q.expire(k.Seq, e, out)
			continue
		}
		q.core.Index.Uncount(e)
		q.core.Index.Ready--
		e.SetState(Locked)
		if q.core.Config.Sessions {
			q.core.SessionOf(e).Take(&q.core.Index, k.Seq, e)
		} else {
			q.core.Index.Take(k, e)
		}
		lockInstead := inHand != nil && !q.allInHand(k.Seq, e, inHand)
		w.ReceiveAndDelete = w.ReceiveAndDelete && !lockInstead
		w.DurableLock = w.DurableLock && !lockInstead
		d := q.deliver(k.Seq, e, w, at, out)
		if lockInstead && !q.core.Config.Sessions { // a session bounds the locks in it
			q.core.Locks.KeepForever(e.StateIndex)
		}
		return d, true
	}
	return Delivery{}, false
}

// allInHand reports whether inHand returns true for the body of a message and its saved state.
func (q *Queue) allInHand(seq SeqNo, e *entries.Entry, inHand func(Ref) bool) bool {
	if !inHand(e.Body()) {
		return false
	}
	saved, ok := q.core.Saved.Get(seq)
	return !ok || inHand(saved)
}

// best returns the message that Take would deliver.
func (q *Queue) best(at int64, w TakeOptions) (entries.OrderKey, *entries.Entry, bool) {
	var k entries.OrderKey
	ok := false
	if q.core.Config.Sessions {
		if s := q.lockedSession(w.Session, at); s != nil {
			k.Seq, ok = s.Next()
		}
	} else {
		k, ok = q.core.Index.Pick(at, w.lowest(), w.highest())
	}
	if !ok {
		return entries.OrderKey{}, nil, false
	}
	return k, q.core.Index.Entries.Get(k.Seq), true
}

// AllLevels reports whether w accepts messages of every level.
func (w *TakeOptions) AllLevels() bool { return w.lowest() == 0 && w.highest() == 255 }

func (w *TakeOptions) lowest() Level { return w.MinLevel }

func (w *TakeOptions) highest() Level {
	if w.MaxLevel == 0 && !w.HasMaxLevel {
		return 255
	}
	return w.MaxLevel
}

// TakeSeq delivers the deferred or ready message seq: ErrNotFound, ErrLocked,
// ErrReceivePaused, ErrSessionLockLost. An expired one is not found and is removed: a
// deferred message expires only here. Of w only Session and ReceiveAndDelete count.
func (q *Queue) TakeSeq(now time.Time, seq SeqNo, w TakeOptions, out *Effects) (Delivery, error) {
	at := q.core.At(now)
	if q.core.Config.ReceivePaused {
		return Delivery{}, ErrReceivePaused
	}
	var mine *session.Session
	if q.core.Config.Sessions {
		if mine = q.lockedSession(w.Session, at); mine == nil {
			return Delivery{}, ErrSessionLockLost
		}
	}
	e := q.core.Index.Entries.Get(seq)
	switch {
	case e == nil || mine != nil && q.core.SessionOf(e) != mine:
		return Delivery{}, ErrNotFound
	case e.Is(Locked):
		return Delivery{}, ErrLocked
	case e.Is(Scheduled), e.Is(Retrying):
		return Delivery{}, ErrNotFound
	case e.Expiry() <= at:
		q.expire(seq, e, out)
		return Delivery{}, ErrNotFound
	case e.Is(Ready):
		q.core.UnmarkReady(seq, e, Locked)
	default:
		q.core.ByState.Deferred--
		e.Flags |= entries.FlagDeferred
	}
	return q.deliver(seq, e, w, at, out), nil
}

// HasReady reports cheaply whether Take with w would find a message. It may be true
// although all ready messages have expired. It becomes true not only by an arrival: a
// settlement may bring a fair key below its cap, and Tick may make a key eligible.
func (q *Queue) HasReady(now time.Time, w TakeOptions) bool {
	if q.core.Config.ReceivePaused {
		return false
	}
	if q.core.Config.Sessions {
		s := q.lockedSession(w.Session, q.core.At(now))
		return s != nil && s.HasReady()
	}
	return q.core.Index.HasReady(w.lowest(), w.highest())
}

// deliver locks or removes a message that is in no list any more, and returns it.
func (q *Queue) deliver(seq SeqNo, e *entries.Entry, w TakeOptions, at int64, out *Effects) Delivery {
	q.noteStarted(e, out)
	if w.ReceiveAndDelete {
		e.SetState(e.UnlockedState()) // it has no lock
		d := q.delivery(seq, e)
		e.SetState(Locked)
		q.core.Free(seq, e, &out.Effects)
		logRemoved(&out.Effects, seq)
		return d
	}
	e.SetState(Locked)
	l := lease.Lock{Seq: seq, Nonce: q.nonce(), At: at}
	if q.core.Config.Sessions {
		l.Session, l.List = q.core.Index.Groups.All[e.Group].SessionNo, lease.InSession
		e.StateIndex = q.core.Locks.Put(l)
		q.core.Locks.Link(&q.core.Sessions.All[l.Session].Locked, e.StateIndex)
		if e.Flags&entries.FlagDeferred == 0 { // else it is listed
			q.core.SetAside(seq, e)
		}
	} else {
		e.StateIndex = q.core.Locks.Put(l)
		q.core.Locks.Begin(e.StateIndex, at)
		if w.DurableLock {
			q.makeDurable(e.StateIndex, at, out)
		}
	}
	q.core.Locks.Note(l.Nonce, q.core.Index.Entries.Hint)
	q.core.ByState.Locked++
	q.core.Index.IncInFlight(e)
	d := q.delivery(seq, e)
	d.Token = Token{Seq: seq, Nonce: l.Nonce}
	e.Flags |= entries.FlagDelivered
	return d
}

// nonce returns a number that no other token of this queue has.
func (q *Queue) nonce() uint64 {
	q.nonces++
	if q.nonces == 0 {
		q.nonces = 1 // epoch zero and nonce zero would be the zero token
	}
	return uint64(q.epoch)<<32 | uint64(q.nonces)
}

// DeadLettersExpired reports whether messages that expire become dead letters.
func (q *Queue) DeadLettersExpired() bool { return q.core.DeadLettersExpired() }

// ExpirySpace is how much of Settling is for messages that become dead letters because they
// expire, if they do.
func (q *Queue) ExpirySpace() uint64 { return q.core.ExpirySpace() }

// expire removes a ready or deferred message that has expired.
func (q *Queue) expire(seq SeqNo, e *entries.Entry, out *Effects) {
	if q.DeadLettersExpired() {
		out.DeadLettered = append(out.DeadLettered, DeadLetter{Delivery: q.delivery(seq, e), Reason: ReasonExpired,
			Description: "The message expired and was dead lettered."})
	} else {
		out.Expired = append(out.Expired, Expired{Seq: seq, Class: e.Class, FirstDelivery: e.Flags&entries.FlagDelivered == 0})
	}
	q.core.Remove(seq, e, &out.Effects)
	logRemoved(&out.Effects, seq)
}

// noteStarted logs that this delivery starts the fair key of a message, if it does.
func (q *Queue) noteStarted(e *entries.Entry, out *Effects) {
	k, logged := q.core.Index.Start(e)
	if !logged {
		return
	}
	out.Begin(record.KindStarted)
	record.WriteStarted(&out.Effects, k.Number, k.Name)
	out.End()
}
