// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/queue"
)

// seeker waits for a free session.
type seeker struct {
	a    Attachment
	done func(*Consumer, time.Time, error)
	over bool
}

// Seek attaches a consumer to a session: the named one, at once or not at all, or
// the best free one as soon as there is one. cancel gives up; a session that was
// granted meanwhile goes back.
func (s *Shard) Seek(a Attachment, name *string, done func(*Consumer, time.Time, error)) (cancel func(), err error) {
	k := &seeker{a: a}
	k.done = func(c *Consumer, until time.Time, err error) { k.over = true; done(c, until, err) }
	err = s.push(&task{do: func(s *Shard) error {
		hq, err := s.hostedQueue(a.ID, a.Part)
		if err != nil {
			k.done(nil, time.Time{}, err)
			return nil
		}
		if name == nil {
			hq.seekers = append(hq.seekers, k)
			s.touch(hq)
			return nil
		}
		lock, until, err := hq.q.LockSession(s.tx.Now(), *name)
		if err != nil {
			k.done(nil, time.Time{}, err)
			return nil
		}
		s.sit(hq, k, lock, until)
		return nil
	}, onDropped: func(err error) { k.done(nil, time.Time{}, err) }})
	cancel = func() {
		// A shard that has stopped has nothing left to give up.
		_ = s.push(&task{do: func(s *Shard) error {
			if k.over {
				return nil
			}
			if hq, err := s.hostedQueue(a.ID, a.Part); err == nil {
				hq.seekers = slices.DeleteFunc(hq.seekers, func(o *seeker) bool { return o == k })
			}
			k.done(nil, time.Time{}, ErrGaveUp)
			return nil
		}})
	}
	return cancel, err
}

// ErrGaveUp answers a Seek that was called off.
var ErrGaveUp = errors.New("shard: gave up waiting for a session")

// seat gives free sessions to those who wait for one, first come first served.
// Who wants certain levels only, and finds none, does not keep the others waiting.
func (s *Shard) seat(hq *hostedQueue) {
	for i := 0; i < len(hq.seekers); {
		k := hq.seekers[i]
		lock, until, ok := hq.q.LockNextSession(s.tx.Now(), k.a.Want)
		switch {
		case ok:
			hq.seekers = slices.Delete(hq.seekers, i, i+1)
			s.sit(hq, k, lock, until)
		case k.a.Want.AllLevels():
			return // no session is free
		default:
			i++
		}
	}
}

// sit attaches a seeker that got a session.
func (s *Shard) sit(hq *hostedQueue, k *seeker, lock queue.SessionLock, until time.Time) {
	want := k.a.Want
	want.Session = lock
	c := &Consumer{shard: s, queue: hq, sink: k.a.Sink, want: want}
	hq.consumers = append(hq.consumers, c)
	s.touch(hq)
	k.done(c, until, nil)
}

// SessionLock returns the session of a consumer that Seek attached.
func (c *Consumer) SessionLock() queue.SessionLock { return c.want.Session }

// checkSessions ends the consumers whose session lock ran out.
func (hq *hostedQueue) checkSessions(s *Shard) {
	for i := 0; i < len(hq.consumers); i++ {
		c := hq.consumers[i]
		if c.want.Session == (queue.SessionLock{}) || hq.q.HoldsSession(s.tx.Now(), c.want.Session) {
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
