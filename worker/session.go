// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

// In a pool of sessions the task of a slot is a session. It begins with the first message of
// the session, and goes on with the next ones in the same slot, each an attempt of its own with
// the same number, until none comes for a while or the pool takes no more.

// session is what a pool needs of [client.Session].
type session interface {
	receiver
	ID() string
	LockedUntil() time.Time
	RenewSessionLock(ctx context.Context) error
	State(ctx context.Context) ([]byte, error)
	SetState(ctx context.Context, state []byte) error
}

// sessionOpener waits for a session that has messages and no receiver.
type sessionOpener func(ctx context.Context, entity string) (session, error)

func sessionsWith(c *client.Client) sessionOpener {
	return func(ctx context.Context, entity string) (session, error) {
		s, err := c.NextSession(ctx, entity, &client.ReceiverOptions{TellLevel: true})
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// heldSession is a session that a slot has. It belongs to the keeper of its present message.
type heldSession struct {
	session
	supply *supply
}

// RenewLock renews the lock of the session, which is that of its messages.
func (h *heldSession) RenewLock(ctx context.Context, m *client.Received) error {
	err := h.RenewSessionLock(ctx)
	if errors.Is(err, client.ErrSessionLockLost) {
		return fmt.Errorf("%w: %w", client.ErrLockLost, err)
	}
	m.LockedUntil = h.LockedUntil()
	return err
}

// SaveState is that of the session's receiver, with the error of a lock that is lost.
func (h *heldSession) SaveState(ctx context.Context, m *client.Received, state []byte) (time.Time, error) {
	until, err := h.session.SaveState(ctx, m, state)
	if errors.Is(err, client.ErrSessionLockLost) {
		return until, fmt.Errorf("%w: %w", client.ErrLockLost, err)
	}
	return until, err
}

// close lets go of the session. It does nothing without one.
func (h *heldSession) close() {
	if h != nil {
		h.supply.close(h.session)
	}
}

// delivery makes one of a message of the session.
func (h *heldSession) delivery(m *client.Received) delivery {
	if until := h.LockedUntil(); !until.IsZero() {
		m.LockedUntil = until
	}
	return delivery{Received: m, from: h, rank: slots.Rank{Level: levelOf(m)}, session: h}
}

// nextSession waits for a session and returns its first message.
func (s *supply) nextSession(ctx context.Context) ([]delivery, error) {
	if s.ordered(ctx); ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	got, err := s.sessions(ctx, s.sources[0].Entity)
	if err != nil {
		return nil, err
	}
	s.recovered()
	s.extensions.Store(got.Extensions())
	s.known.Store(true)
	h := &heldSession{session: got, supply: s}
	m, err := h.next(ctx)
	if m == nil {
		h.close()
		return nil, err
	}
	return []delivery{h.delivery(m)}, nil
}

// next waits for the next message of the session, while it is not idle for too long. The
// session stays locked. It returns nil when there is none.
func (h *heldSession) next(ctx context.Context) (*client.Received, error) {
	over := time.Now().Add(h.supply.sessionIdle)
	for {
		wait := time.Until(over)
		if until := h.LockedUntil(); !until.IsZero() {
			wait = min(wait, max(min(time.Until(until)/2, renewAtLeast), minLock))
		}
		brief, cancel := context.WithTimeout(ctx, wait)
		ms, err := h.Receive(brief, 1)
		expired := brief.Err() != nil
		cancel()
		switch {
		case len(ms) > 0:
			return ms[0], nil
		case ctx.Err() != nil || expired && !time.Now().Before(over):
			return nil, nil
		case err != nil && !expired:
			return nil, err
		}
		if err := h.RenewSessionLock(ctx); err != nil {
			return nil, err
		}
	}
}

// keepSession settles a message of a session, and goes on with the next one. The session waits
// for a message that is to be tried again, with a broker of ours wherever the session is then.
func (a *attempt) keepSession(lost bool, took time.Duration) {
	a.run.post(func(now time.Time) []slots.Action {
		a.returned = true
		a.run.restAfter(now, a.began, a.result)
		return nil
	})
	a.conclude(lost, took)
	if !lost && a.goOnWithSession() {
		return
	}
	a.session.close()
	a.run.post(func(now time.Time) []slots.Action { return a.run.machine.Ended(now, a.id) })
}

// goOnWithSession starts the next message of the session in the same slot. It returns false if
// there is none, or if the pool takes no more.
func (a *attempt) goOnWithSession() bool {
	if !a.mayGoOn(nil) {
		return false
	}
	m, err := a.session.next(a.run.asking)
	if err != nil && a.run.asking.Err() == nil {
		a.run.settings.log.Debug("session lost", "session", a.session.ID(), "err", err)
	}
	if m == nil {
		return false
	}
	d := a.session.delivery(m)
	next := newAttempt(a.run, a.id, d)
	if a.mayGoOn(next) {
		return true
	}
	next.cancel(nil)
	ctx, cancel := context.WithTimeout(a.run.life, settleTimeout)
	defer cancel()
	if err := next.handBack(ctx); err != nil {
		a.run.settings.log.Debug("message not released", "message", m.SeqNo, "err", err)
	}
	return false
}

// mayGoOn reports whether the slot may go on with its session, and starts the next message
// if there is one already.
func (a *attempt) mayGoOn(next *attempt) bool {
	answer := make(chan bool, 1)
	posted := a.run.post(func(now time.Time) []slots.Action {
		ok := a.run.machine.Next(a.id)
		if ok && next != nil {
			a.run.attempts[a.id] = next
			next.start()
		}
		answer <- ok
		return nil
	})
	return posted && <-answer
}

// errNoSession is returned for the state of a task without a session.
var errNoSession = errors.New("worker: task has no session")

// SessionState returns what was last set with SetSessionState, by whichever worker; nil if
// nothing was. It needs a pool with Sessions.
func (t *Task) SessionState(ctx context.Context) ([]byte, error) {
	if t.attempt == nil || t.attempt.session == nil {
		return nil, errNoSession
	}
	return t.attempt.session.State(ctx)
}

// SetSessionState keeps state with the session; nil forgets it. It is durable when this
// returns, and outlives the pool. The handler of the next message of the session sees it,
// whichever worker that has.
func (t *Task) SetSessionState(ctx context.Context, state []byte) error {
	if t.attempt == nil || t.attempt.session == nil {
		return errNoSession
	}
	return t.attempt.session.SetState(ctx, state)
}
