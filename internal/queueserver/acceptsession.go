// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"errors"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// sessionWaiter is a receiver that waits for a free session.
type sessionWaiter struct {
	a    Attachment
	done func(*Consumer, time.Time, error)
	over bool
}

// AcceptSession attaches a consumer to a session: the named one, at once or not at all, or
// the best free one as soon as there is one. cancel gives up; a session that was
// granted meanwhile goes back.
func (s *Shard) AcceptSession(a Attachment, name *string, done func(*Consumer, time.Time, error)) (cancel func(), err error) {
	w := &sessionWaiter{a: a}
	w.done = func(c *Consumer, until time.Time, err error) { w.over = true; done(c, until, err) }
	err = s.push(&task{do: func(s *Shard) error {
		hq, err := s.hostedQueue(a.ID, a.SubQueue)
		if err != nil {
			w.done(nil, time.Time{}, err)
			return nil
		}
		if name == nil {
			hq.sessionWaiters = append(hq.sessionWaiters, w)
			s.touch(hq)
			return nil
		}
		lock, until, err := hq.q.LockSession(s.tx.Now(), *name)
		if err != nil {
			w.done(nil, time.Time{}, err)
			return nil
		}
		s.grantSession(hq, w, lock, until)
		return nil
	}, onDropped: func(err error) { w.done(nil, time.Time{}, err) }})
	cancel = func() {
		// A shard that has stopped has nothing left to give up.
		_ = s.push(&task{do: func(s *Shard) error {
			if w.over {
				return nil
			}
			if hq, err := s.hostedQueue(a.ID, a.SubQueue); err == nil {
				hq.sessionWaiters = slices.DeleteFunc(hq.sessionWaiters, func(o *sessionWaiter) bool { return o == w })
				hq.entity.used = s.tx.Now() // until now
			}
			w.done(nil, time.Time{}, ErrAcceptCanceled)
			return nil
		}})
	}
	return cancel, err
}

// ErrAcceptCanceled answers a Seek that was called off.
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
			s.grantSession(hq, w, lock, until)
		case w.a.Take.AllLevels():
			return // no session is free
		default:
			i++
		}
	}
}

// grantSession attaches a waiting receiver to the session that it got.
func (s *Shard) grantSession(hq *hostedQueue, w *sessionWaiter, lock queue.SessionLock, until time.Time) {
	want := w.a.Take
	want.Session = lock
	c := &Consumer{shard: s, queue: hq, sink: w.a.Sink, take: want}
	hq.consumers = append(hq.consumers, c)
	s.touch(hq)
	w.done(c, until, nil)
}

// SessionLock returns the session of a consumer that Seek attached.
func (c *Consumer) SessionLock() queue.SessionLock { return c.take.Session }

// checkSessions ends the consumers whose session lock ran out.
func (hq *hostedQueue) checkSessions(s *Shard) {
	for i := 0; i < len(hq.consumers); i++ {
		c := hq.consumers[i]
		if c.take.Session == (queue.SessionLock{}) || hq.q.SessionLockValid(s.tx.Now(), c.take.Session) {
			continue
		}
		s.withdraw(c)
		hq.consumers = slices.Delete(hq.consumers, i, i+1)
		i--
		c.gone = true
		if !c.leaving { // else it has asked for that
			c.sink.Ended(queue.ErrSessionLockLost)
		}
	}
}
