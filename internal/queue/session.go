// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/queue/entries"
	"github.com/triagemq/triagemq/internal/queue/lease"
	"github.com/triagemq/triagemq/internal/queue/record"
	"github.com/triagemq/triagemq/internal/queue/session"
)

func (q *Queue) sessionOf(e *entries.Entry) *session.Session { return q.sessions.Of(&q.index, e) }

// lockedSession returns the session that l holds, nil if l is lost.
func (q *Queue) lockedSession(l SessionLock, at int64) *session.Session {
	s := q.sessions.Find(l.ID)
	if s == nil || s.Lock == 0 {
		return nil
	}
	if k := &q.locks.All[s.Lock]; k.Nonce != l.Nonce || k.Until <= at {
		return nil
	}
	return s
}

// LockSession locks a session by its id, which need not have messages;
// ErrSessionLocked. A queue without sessions answers ErrNotAllowed.
func (q *Queue) LockSession(now time.Time, id string) (SessionLock, time.Time, error) {
	at := q.at(now)
	if !q.cfg.Sessions {
		return SessionLock{}, time.Time{}, ErrNotAllowed
	}
	n := q.sessions.Open(id)
	if q.sessions.All[n].Lock != 0 {
		return SessionLock{}, time.Time{}, ErrSessionLocked
	}
	l, until := q.lockSession(n, at)
	return l, until, nil
}

// LockNextSession locks the free session whose best message ranks best, among
// the messages whose level w accepts. Who has a session gets all of it in order.
func (q *Queue) LockNextSession(now time.Time, w Want) (SessionLock, time.Time, bool) {
	at := q.at(now)
	if !q.cfg.Sessions || q.cfg.ReceivePaused {
		return SessionLock{}, time.Time{}, false
	}
	k, ok := q.index.Pick(at, w.lowest(), w.highest())
	if !ok {
		return SessionLock{}, time.Time{}, false
	}
	e := q.index.Entries.Get(k.Seq)
	lock, until := q.lockSession(q.index.Groups.All[e.Group].SessionNo, at)
	q.index.Served(e)
	return lock, until, true
}

func (q *Queue) lockSession(n uint32, at int64) (SessionLock, time.Time) {
	slot := q.locks.Put(lease.Lock{Nonce: q.nonce(), At: at, Session: n})
	q.locks.Begin(slot, at)
	s := &q.sessions.All[n]
	s.Lock = slot
	s.Unlist(&q.index)
	l := &q.locks.All[slot]
	return SessionLock{ID: s.ID, Nonce: l.Nonce}, entries.Moment(l.Until)
}

// RenewSession extends a session lock, and with it the locks on its messages.
func (q *Queue) RenewSession(now time.Time, l SessionLock) (time.Time, error) {
	at := q.at(now)
	s := q.lockedSession(l, at)
	if s == nil {
		return time.Time{}, ErrSessionLockLost
	}
	q.locks.Renew(s.Lock, at)
	return entries.Moment(q.locks.All[s.Lock].Until), nil
}

// HoldsSession reports whether l is still valid.
func (q *Queue) HoldsSession(now time.Time, l SessionLock) bool {
	return q.lockedSession(l, q.at(now)) != nil
}

// ReleaseSession gives a session back. Its locked messages return uncounted. A
// lock that is lost already is ignored.
func (q *Queue) ReleaseSession(now time.Time, l SessionLock, _ *Effects) {
	at := q.at(now)
	s := q.lockedSession(l, at)
	if s == nil {
		return
	}
	if s.Locked.First() == 0 {
		q.freeSession(s)
		return
	}
	q.locks.ExpireNow(s.Lock, at)
	q.endSession(s.Lock, tickWork, nil)
}

// endSession ends a session lock that ran out: what its holder had and did not settle
// has failed. If it was given back, it has not. It returns up to most messages, and how
// many that were; the rest waits for the next Tick, and nobody has the session so long.
func (q *Queue) endSession(slot uint32, most int, out *Effects) (done int) {
	l := &q.locks.All[slot]
	n, released := l.Session, l.Nonce == 0
	for ; q.sessions.All[n].Locked.First() != 0; done++ {
		if done >= most {
			return done
		}
		seq := q.locks.All[q.sessions.All[n].Locked.First()].Seq
		e := q.index.Entries.Get(seq)
		if released {
			q.unlock(seq, e)
			q.requeue(seq, e)
		} else {
			q.fail(seq, e, out)
		}
	}
	q.freeSession(&q.sessions.All[n])
	return done
}

func (q *Queue) freeSession(s *session.Session) {
	q.locks.End(s.Lock)
	s.Lock = 0
	s.List(&q.index)
	q.sessions.CloseSession(s)
}

// SessionState returns where the state of a session is kept, if it has one.
func (q *Queue) SessionState(id string) (Ref, bool) {
	s := q.sessions.Find(id)
	if s == nil {
		return Ref{}, false
	}
	return s.State, s.State != Ref{}
}

// SetSessionState sets the state of a session, or clears it with the zero Ref.
func (q *Queue) SetSessionState(now time.Time, id string, state Ref, out *Effects) {
	at := q.at(now)
	q.sessions.SetState(id, state, at, &out.Effects)
	out.Begin(record.KindState)
	writeState(&out.Effects, id, state, at)
	out.End()
}

func writeState(out *machine.Effects, id string, state Ref, changed int64) {
	out.String(id)
	out.Ref(state)
	out.Fixed(changed)
}

// Sessions returns the ids of sessions that have messages or a state; with since not
// zero, of those whose state changed after it. It visits up to most sessions, the
// first time from zero and then from next on, which is zero at the end. A session
// that is there all the while is returned once; one that comes or goes may be, or
// not, or twice.
func (q *Queue) Sessions(since time.Time, from, most int) (ids []string, next int) {
	return q.sessions.List(&q.index, since, from, most)
}

// setAside adds a message to those of its session that are not ready.
func (q *Queue) setAside(seq SeqNo, e *entries.Entry) {
	if q.cfg.Sessions && !q.restore.inSnapshot {
		q.sessionOf(e).SetAside(&q.index, seq)
	}
}
