// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/session"
)

// lockedSession returns the session that l has locked, nil if l is lost.
func (q *Queue) lockedSession(l SessionLock, at int64) *session.Session {
	s := q.core.Sessions.Find(l.ID)
	if s == nil || s.Lock == 0 {
		return nil
	}
	if k := &q.core.Locks.All[s.Lock]; k.Nonce != l.Nonce || k.Until <= at {
		return nil
	}
	return s
}

// LockSession locks a session by its id, which need not have messages;
// ErrSessionLocked. A queue without sessions returns ErrNotAllowed.
func (q *Queue) LockSession(now time.Time, id string) (SessionLock, time.Time, error) {
	at := q.core.At(now)
	if !q.core.Config.Sessions {
		return SessionLock{}, time.Time{}, ErrNotAllowed
	}
	n := q.core.Sessions.Open(id)
	if q.core.Sessions.All[n].Lock != 0 {
		return SessionLock{}, time.Time{}, ErrSessionLocked
	}
	l, until := q.lockSession(n, at)
	return l, until, nil
}

// LockNextSession locks the free session whose best message ranks best, among the
// messages whose level w accepts. Its receiver gets all messages of the session in
// sequence order.
func (q *Queue) LockNextSession(now time.Time, w TakeOptions) (SessionLock, time.Time, bool) {
	at := q.core.At(now)
	if !q.core.Config.Sessions || q.core.Config.ReceivePaused {
		return SessionLock{}, time.Time{}, false
	}
	k, ok := q.core.Index.Pick(at, w.lowest(), w.highest())
	if !ok {
		return SessionLock{}, time.Time{}, false
	}
	e := q.core.Index.Entries.Get(k.Seq)
	lock, until := q.lockSession(q.core.Index.Groups.All[e.Group].SessionNo, at)
	q.core.Index.Served(e)
	return lock, until, true
}

func (q *Queue) lockSession(n uint32, at int64) (SessionLock, time.Time) {
	slot := q.core.Locks.Put(lease.Lock{Nonce: q.nonce(), At: at, Session: n})
	q.core.Locks.Begin(slot, at)
	s := q.core.Sessions.All[n]
	s.Lock = slot
	s.Unlist(&q.core.Index)
	l := &q.core.Locks.All[slot]
	return SessionLock{ID: s.ID, Nonce: l.Nonce}, entries.Moment(l.Until)
}

// RenewSession extends a session lock, and with it the locks on its messages.
func (q *Queue) RenewSession(now time.Time, l SessionLock) (time.Time, error) {
	at := q.core.At(now)
	s := q.lockedSession(l, at)
	if s == nil {
		return time.Time{}, ErrSessionLockLost
	}
	q.core.Locks.Renew(s.Lock, at)
	return entries.Moment(q.core.Locks.All[s.Lock].Until), nil
}

// SessionLockValid reports whether l is still valid.
func (q *Queue) SessionLockValid(now time.Time, l SessionLock) bool {
	return q.lockedSession(l, q.core.At(now)) != nil
}

// ReleaseSession unlocks a session. Its locked messages are requeued without a failed
// delivery. A lock that is lost already is ignored.
func (q *Queue) ReleaseSession(now time.Time, l SessionLock, _ *Effects) {
	at := q.core.At(now)
	s := q.lockedSession(l, at)
	if s == nil {
		return
	}
	if s.Locked.First() == 0 {
		q.freeSession(s)
		return
	}
	q.core.Locks.ExpireNow(s.Lock, at)
	q.endSession(s.Lock, tickWork, q.endUncounted, nil)
}

// endSession ends a session lock that expired or was released. If it expired, end decides
// about the messages that its receiver did not settle. It requeues up to most
// messages and returns how many; the next Tick continues. Until then the session is not
// free.
func (q *Queue) endSession(slot uint32, most int, end endLock, out *Effects) (done int) {
	l := &q.core.Locks.All[slot]
	n := l.Session
	if l.Nonce == 0 { // it was released
		end = q.endUncounted
	}
	for ; q.core.Sessions.All[n].Locked.First() != 0; done++ {
		if done >= most {
			return done
		}
		seq := q.core.Locks.All[q.core.Sessions.All[n].Locked.First()].Seq
		e := q.core.Index.Entries.Get(seq)
		end(seq, e, out)
	}
	q.freeSession(q.core.Sessions.All[n])
	return done
}

func (q *Queue) freeSession(s *session.Session) {
	q.core.Locks.End(s.Lock)
	s.Lock = 0
	s.List(&q.core.Index)
	q.core.Sessions.CloseSession(s)
}

// SessionState returns where the state of a session is stored, if it has one.
func (q *Queue) SessionState(id string) (Ref, bool) {
	s := q.core.Sessions.Find(id)
	if s == nil {
		return Ref{}, false
	}
	return s.State, s.State != Ref{}
}

// SetSessionState sets the state of a session, or clears it with the zero Ref. To clear the
// state of a session without one does nothing.
func (q *Queue) SetSessionState(now time.Time, id string, state Ref, out *Effects) {
	at := q.core.At(now)
	if _, has := q.SessionState(id); !has && state == (Ref{}) {
		return
	}
	q.core.Sessions.SetState(id, state, at, &out.Effects)
	out.Begin(record.KindState)
	record.WriteState(&out.Effects, id, state, at)
	out.End()
}

// Sessions returns the ids of sessions that have messages or a state; with since not
// zero, of those whose state changed after it. It visits up to most sessions, the first
// time from zero and then from next on, which is zero at the end. A session that exists
// all the time is returned once; one that is added or removed meanwhile may be missing
// or returned twice.
func (q *Queue) Sessions(since time.Time, from, most int) (ids []string, next int) {
	return q.core.Sessions.List(&q.core.Index, since, from, most)
}
