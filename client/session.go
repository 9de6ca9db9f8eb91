// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// Session receives the messages of one session, to the exclusion of every other
// receiver, in the order in which they were sent. Closing it lets go of the
// session.
type Session struct {
	*Receiver
	until atomic.Pointer[time.Time]
}

// The names of sessions on the wire.
const (
	sessionFilter      = names.SessionFilter
	sessionFilterCode  = 0x137000000C
	sessionLockedUntil = names.LockedUntil
	sessionTimeout     = names.Timeout
)

// sessionWait is how long one attempt to get the next session lasts; after it
// the peer is asked again.
const sessionWait = 30 * time.Second

// OpenSession opens the session of that id, which need not exist yet. If another
// receiver has it the error is [ErrSessionLocked].
func (c *Client) OpenSession(ctx context.Context, entity, id string, o *ReceiverOptions) (*Session, error) {
	return c.openSession(ctx, entity, "OpenSession", &id, o)
}

// NextSession opens a session that has messages and no receiver; if there is
// none it waits for one until ctx ends.
func (c *Client) NextSession(ctx context.Context, entity string, o *ReceiverOptions) (*Session, error) {
	return c.openSession(ctx, entity, "NextSession", nil, o)
}

func (c *Client) openSession(ctx context.Context, entity, called string, id *string, o *ReceiverOptions) (*Session, error) {
	s := &Session{Receiver: c.newReceiver(entity, o)}
	s.session = true
	if err := o.check(called); err != nil {
		return nil, failure("open session of", s.entity, err)
	}
	s.attach = func(ctx context.Context, conn *connection) (*link, error) {
		return s.attachSession(ctx, conn, id)
	}
	err := c.retry(ctx, func(outage *outage) error {
		_, err := s.open(ctx)
		if hasCondition(err, conditionTimeout) {
			outage.reset(time.Now()) // no outage: there is no session yet
		}
		return err
	})
	if err != nil {
		return nil, failure("open session of", s.entity, err)
	}
	return s, nil
}

// attachSession attaches with a session filter: a wanted id, or nil for any. Once
// an id was granted, it is the one to come back to after an outage.
func (s *Session) attachSession(ctx context.Context, conn *connection, id *string) (*link, error) {
	o := s.linkOptions()
	var wanted any
	again := s.group != nil
	switch {
	case again:
		wanted = *s.group
	case id != nil:
		wanted = *id
	default:
		if o.Properties == nil {
			o.Properties = map[string]any{}
		}
		o.Properties[sessionTimeout] = waitFor(ctx)
	}
	o.Filters = []amqp.LinkFilter{amqp.NewLinkFilter(sessionFilter, sessionFilterCode, wanted)}
	l, err := s.granted(conn.openReceiver(ctx, s.entity, o))
	if err != nil {
		if again && hasCondition(err, names.SessionCannotBeLocked) {
			err = s.reattachError()
		}
		return nil, err
	}
	granted, ok := l.receiver.LinkSourceFilterValue(sessionFilter).(string)
	if !ok {
		_ = l.close(ctx) // the reason below is the one that counts
		return nil, fmt.Errorf("%w: %q has no sessions", ErrNotAllowed, s.entity)
	}
	if ticks, ok := integer(l.receiver.Properties()[sessionLockedUntil]); ok {
		until := fromTicks(ticks)
		s.until.Store(&until)
	}
	if !again {
		s.group = &granted
	}
	return l, nil
}

// errStillLocked is waited out like any outage.
var errStillLocked = errors.New("client: session is still locked")

// reattachError says what it means that the session cannot be locked again after an
// outage: while our own lock lasts, most likely that the broker has not noticed
// yet that the old connection is gone; after that, that someone else has it.
func (s *Session) reattachError() error {
	if time.Now().Before(s.LockedUntil()) {
		return errStillLocked
	}
	return fmt.Errorf("%w: another receiver took the session during an outage", ErrSessionLockLost)
}

// waitFor is how long the peer may look for a session, in milliseconds: a little
// less than ctx allows, so that its answer is still heard.
func waitFor(ctx context.Context) uint32 {
	wait := sessionWait
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		wait = min(wait, left-min(left/10, 100*time.Millisecond))
	}
	return uint32(max(wait, time.Millisecond).Milliseconds())
}

// fromTicks reads a .NET time: hundreds of nanoseconds since the year 1.
func fromTicks(ticks int64) time.Time {
	const unixEpoch = 621355968000000000
	t := ticks - unixEpoch
	return time.Unix(t/1e7, t%1e7*100).UTC()
}

// ID returns the id of the session.
func (s *Session) ID() string { return *s.group }

// LockedUntil returns when the lock on the session runs out;
// [Session.RenewSessionLock] moves it.
func (s *Session) LockedUntil() time.Time {
	if until := s.until.Load(); until != nil {
		return *until
	}
	return time.Time{}
}

// RenewSessionLock moves the lock on the session, and on all its messages, into the
// future.
func (s *Session) RenewSessionLock(ctx context.Context) error {
	reply, err := s.manage(ctx, names.RenewSessionLock, map[string]any{})
	if err != nil {
		return failure(fmt.Sprintf("renew session %q of", s.ID()), s.entity, err)
	}
	if until, ok := reply["expiration"].(time.Time); ok {
		s.until.Store(&until)
	}
	return nil
}

// State returns what was last set with SetState, nil if nothing was. It belongs
// to the session and outlives its receivers.
func (s *Session) State(ctx context.Context) ([]byte, error) {
	reply, err := s.manage(ctx, names.GetSessionState, map[string]any{})
	if err != nil {
		return nil, failure(fmt.Sprintf("state of session %q of", s.ID()), s.entity, err)
	}
	state, _ := reply["session-state"].([]byte)
	return state, nil
}

// SetState keeps state with the session; nil forgets it.
func (s *Session) SetState(ctx context.Context, state []byte) error {
	fields := map[string]any{"session-state": nil}
	if state != nil {
		fields["session-state"] = state
	}
	if _, err := s.manage(ctx, names.SetSessionState, fields); err != nil {
		return failure(fmt.Sprintf("set state of session %q of", s.ID()), s.entity, err)
	}
	return nil
}

// allSessions is the time that asks for every session with messages or state,
// instead of those whose state changed since: the first instant of year 10000.
var allSessions = time.UnixMilli(253402300800000)

// sessionsPage is how many ids one answer may hold.
const sessionsPage = 100

// Sessions returns the ids of an entity's sessions that have messages or state.
func (c *Client) Sessions(ctx context.Context, entity string) ([]string, error) {
	entity = c.entity(entity)
	var out []string
	for {
		reply, err := c.manage(ctx, entity, names.GetMessageSessions, request{fields: map[string]any{
			"last-updated-time": allSessions,
			"skip":              int32(len(out)),
			"top":               int32(sessionsPage),
		}})
		if err != nil {
			return nil, failure("sessions of", entity, err)
		}
		page, _ := reply["sessions-ids"].([]string)
		out = append(out, page...)
		if len(page) < sessionsPage {
			return out, nil
		}
	}
}
