// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/queue"
)

// sessionWaiter is a consumer that waits for a free session.
type sessionWaiter struct {
	a     Attachment
	sink  Sink
	queue *hostedQueue
	done  SessionDone
}

// SessionDone gets the session that a consumer was granted, and until when it is locked.
type SessionDone func(lock queue.SessionLock, until time.Time, err error)

// AcceptSession attaches a consumer to a session: the named one, at once or not at all, or
// the best free one as soon as there is one. CancelAccept ends the wait. done runs on the
// shard's goroutine.
func (s *Shard) AcceptSession(a Attachment, name *string, done SessionDone) error {
	fail := func(err error) {
		s.sinks.take(a.Consumer)
		done(queue.SessionLock{}, time.Time{}, err)
	}
	err := s.push(&task{do: func(s *Shard) error {
		hq, err := s.hostedQueue(a.ID, a.SubQueue)
		if err != nil {
			fail(err)
			return nil
		}
		if name == nil {
			w := &sessionWaiter{a: a, sink: s.sinks.take(a.Consumer), queue: hq, done: done}
			hq.sessionWaiters = append(hq.sessionWaiters, w)
			s.sessionWaiters[a.Consumer] = w
			s.touch(hq)
			return nil
		}
		lock, until, err := hq.q.LockSession(s.tx.Now(), *name)
		if err != nil {
			fail(err)
			return nil
		}
		s.grantSession(&sessionWaiter{a: a, sink: s.sinks.take(a.Consumer), queue: hq, done: done}, lock, until)
		return nil
	}, onDropped: fail})
	if err != nil {
		s.sinks.take(a.Consumer)
	}
	return err
}

// CancelAccept ends the wait of a consumer for a session; AcceptSession then answers with
// ErrAcceptCanceled. If the session was granted before, it does nothing.
func (s *Shard) CancelAccept(id ConsumerID) error {
	return s.push(&task{do: func(s *Shard) error {
		w := s.sessionWaiters[id]
		if w == nil {
			return nil
		}
		w.queue.sessionWaiters = slices.DeleteFunc(w.queue.sessionWaiters, func(o *sessionWaiter) bool { return o == w })
		w.queue.entity.used = s.tx.Now() // until now
		delete(s.sessionWaiters, id)
		w.refuse(ErrAcceptCanceled)
		return nil
	}})
}

// refuse tells a consumer that it does not get a session.
func (w *sessionWaiter) refuse(err error) { w.done(queue.SessionLock{}, time.Time{}, err) }

// ErrAcceptCanceled answers an AcceptSession that was canceled.
var ErrAcceptCanceled = errors.New("queueserver: gave up waiting for a session")

// grantSessions grants free sessions to waiting receivers in order of arrival. A
// receiver that wants certain levels only, and finds none, does not block the others.
func (s *Shard) grantSessions(hq *hostedQueue) {
	for i := 0; i < len(hq.sessionWaiters); {
		w := hq.sessionWaiters[i]
		lock, until, ok := hq.q.LockNextSession(s.tx.Now(), w.a.Take)
		switch {
		case ok:
			hq.sessionWaiters = slices.Delete(hq.sessionWaiters, i, i+1)
			s.grantSession(w, lock, until)
		case w.a.Take.AllLevels():
			return // no session is free
		default:
			i++
		}
	}
}

// grantSession attaches a consumer to the session that it got. The consumer learns of it
// when everything before is durable: a session may exist by a message that is not.
func (s *Shard) grantSession(w *sessionWaiter, lock queue.SessionLock, until time.Time) {
	delete(s.sessionWaiters, w.a.Consumer)
	a := w.a
	a.Take.Session = lock
	a.Recall, a.Probing, a.Internal = false, false, false // not for sessions
	c := s.attach(w.queue, w.sink, &a)
	c.granting = true
	s.touch(w.queue)
	if o, ok := w.queue.observer.(SessionObserver); ok {
		o.SessionGranted(s.tx.Now(), c.id, lock, until)
	}
	s.tx.Reply(engine.ReplyFunc(func(err error) {
		if err = cmp.Or(err, c.refusal); err != nil {
			w.refuse(err)
			return
		}
		c.granting = false
		w.done(lock, until, nil)
	}), nil)
}

// checkSessions ends the consumers whose session lock has expired.
func (hq *hostedQueue) checkSessions(s *Shard) {
	for i := 0; i < len(hq.consumers); i++ {
		c := hq.consumers[i]
		if c.take.Session == (queue.SessionLock{}) || hq.q.SessionLockValid(s.tx.Now(), c.take.Session) {
			continue
		}
		s.withdraw(c)
		hq.consumers = slices.Delete(hq.consumers, i, i+1)
		i--
		s.ended(c)
		switch {
		case c.leaving: // it was detached
		case c.granting: // it learns of its session first
			s.tx.Reply(engine.ReplyFunc(func(error) { c.notifyEnded(queue.ErrSessionLockLost) }), nil)
		default:
			c.notifyEnded(queue.ErrSessionLockLost)
		}
	}
}
