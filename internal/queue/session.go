// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/machine"
)

// session is a line of messages that one receiver at a time works through. It
// exists while it has messages, a lock or a state.
type session struct {
	id      string
	ready   seqList        // its ready messages by number, whatever their levels
	aside   seqList        // those that are locked, deferred or scheduled, by number
	levels  []sessionLevel // those of line, by level
	lock    uint32         // in locks; zero is free
	locked  ring           // locks of its messages
	state   Ref            // zero is none
	changed int64          // when state was set or cleared
	groups  int            // that refer to it
}

// sessions numbers sessions. Number zero is none.
type sessionTable struct {
	byID map[string]uint32
	all  []session
	free []uint32

	bytes int64 // what the states count toward Footprint
}

// open returns the number of a session, which it makes if needed.
func (ss *sessionTable) open(id string) uint32 {
	if n, ok := ss.byID[id]; ok {
		return n
	}
	if ss.byID == nil {
		ss.byID = make(map[string]uint32)
	}
	var n uint32
	if k := len(ss.free); k > 0 {
		n, ss.free = ss.free[k-1], ss.free[:k-1]
	} else {
		n = uint32(len(ss.all))
		ss.all = append(ss.all, session{})
	}
	id = strings.Clone(id)
	ss.all[n] = session{id: id}
	ss.byID[id] = n
	return n
}

// join counts a group of messages.
func (ss *sessionTable) join(id string) uint32 {
	n := ss.open(id)
	ss.all[n].groups++
	return n
}

func (ss *sessionTable) leave(n uint32) {
	ss.all[n].groups--
	ss.close(n)
}

// close forgets a session that nothing needs any more.
func (ss *sessionTable) close(n uint32) {
	s := &ss.all[n]
	if s.groups > 0 || s.lock != 0 || s.state != (Ref{}) {
		return
	}
	delete(ss.byID, s.id)
	*s = session{}
	ss.free = append(ss.free, n)
}

func (q *Queue) sessionOf(e *entry) *session {
	return &q.sessions.all[q.index.groups.all[e.group].sessionNo]
}

// heldSession returns the session that l holds, nil if l is lost.
func (q *Queue) lockedSession(l SessionLock, at int64) *session {
	n, ok := q.sessions.byID[l.ID]
	if !ok || q.sessions.all[n].lock == 0 {
		return nil
	}
	s := &q.sessions.all[n]
	if k := &q.locks.all[s.lock]; k.nonce != l.Nonce || k.until <= at {
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
	n := q.sessions.open(id)
	if q.sessions.all[n].lock != 0 {
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
	k, ok := q.index.pick(at, w.lowest(), w.highest())
	if !ok {
		return SessionLock{}, time.Time{}, false
	}
	e := q.index.msgs.get(k.seq)
	lock, until := q.lockSession(q.index.groups.all[e.group].sessionNo, at)
	q.index.levels.served(&q.index, e)
	return lock, until, true
}

func (q *Queue) lockSession(n uint32, at int64) (SessionLock, time.Time) {
	slot := q.locks.put(lock{nonce: q.nonce(), at: at, session: n})
	q.locks.begin(slot, at)
	s := &q.sessions.all[n]
	s.lock = slot
	s.unlist(&q.index)
	l := &q.locks.all[slot]
	return SessionLock{ID: s.id, Nonce: l.nonce}, moment(l.until)
}

// RenewSession extends a session lock, and with it the locks on its messages.
func (q *Queue) RenewSession(now time.Time, l SessionLock) (time.Time, error) {
	at := q.at(now)
	s := q.lockedSession(l, at)
	if s == nil {
		return time.Time{}, ErrSessionLockLost
	}
	q.locks.renew(s.lock, at)
	return moment(q.locks.all[s.lock].until), nil
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
	if s.locked.head == 0 {
		q.freeSession(s)
		return
	}
	q.locks.expireNow(s.lock, at)
	q.endSession(s.lock, tickWork, nil)
}

// endSession ends a session lock that ran out: what its holder had and did not settle
// has failed. If it was given back, it has not. It returns up to most messages, and how
// many that were; the rest waits for the next Tick, and nobody has the session so long.
func (q *Queue) endSession(slot uint32, most int, out *Effects) (done int) {
	l := &q.locks.all[slot]
	n, released := l.session, l.nonce == 0
	for ; q.sessions.all[n].locked.head != 0; done++ {
		if done >= most {
			return done
		}
		seq := q.locks.all[q.sessions.all[n].locked.head].seq
		e := q.index.msgs.get(seq)
		if released {
			q.unlock(seq, e)
			q.requeue(seq, e)
		} else {
			q.fail(seq, e, out)
		}
	}
	q.freeSession(&q.sessions.all[n])
	return done
}

func (q *Queue) freeSession(s *session) {
	q.locks.end(&q.locks.lists[q.locks.all[s.lock].list].ring, s.lock)
	s.lock = 0
	s.list(&q.index)
	q.sessions.close(q.sessions.byID[s.id])
}

// SessionState returns where the state of a session is kept, if it has one.
func (q *Queue) SessionState(id string) (Ref, bool) {
	n, ok := q.sessions.byID[id]
	if !ok {
		return Ref{}, false
	}
	state := q.sessions.all[n].state
	return state, state != Ref{}
}

// SetSessionState sets the state of a session, or clears it with the zero Ref.
func (q *Queue) SetSessionState(now time.Time, id string, state Ref, out *Effects) {
	at := q.at(now)
	q.setState(id, state, at, &out.Effects)
	out.Begin(kindState)
	writeState(&out.Effects, id, state, at)
	out.End()
}

func writeState(out *machine.Effects, id string, state Ref, changed int64) {
	out.String(id)
	out.Ref(state)
	out.Fixed(changed)
}

func (q *Queue) setState(id string, state Ref, changed int64, out *machine.Effects) {
	n := q.sessions.open(id)
	s := &q.sessions.all[n]
	if s.state != (Ref{}) {
		out.Freed = append(out.Freed, s.state)
	}
	if state != (Ref{}) {
		out.Added = append(out.Added, state)
	}
	q.sessions.bytes += stateCost(id, state) - stateCost(id, s.state)
	s.state, s.changed = state, changed
	q.sessions.close(n)
}

// Sessions returns the ids of sessions that have messages or a state; with since not
// zero, of those whose state changed after it. It visits up to most sessions, the
// first time from zero and then from next on, which is zero at the end. A session
// that is there all the while is returned once; one that comes or goes may be, or
// not, or twice.
func (q *Queue) Sessions(since time.Time, from, most int) (ids []string, next int) {
	for from++; from < len(q.sessions.all); from++ { // number zero is none
		if most == 0 {
			return ids, from - 1
		}
		most--
		q.index.msgs.visits++
		s := &q.sessions.all[from]
		listed := s.groups > 0 || s.state != Ref{}
		if !since.IsZero() {
			listed = s.state != Ref{} && s.changed > nanos(since)
		}
		if listed {
			ids = append(ids, s.id)
		}
	}
	return ids, 0
}

// setAside adds a message to those of its session that are not ready.
func (q *Queue) setAside(seq SeqNo, e *entry) {
	if q.cfg.Sessions && !q.restore.inSnapshot {
		q.sessionOf(e).aside.put(&q.index.msgs, seq)
	}
}
