// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
)

func TestSessions(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, ctx := b.Client(), deadline(t)
	s, err := c.OpenSender(ctx, "sessions", nil)
	must(t, err)
	for _, m := range []client.Message{
		{Session: "red", Body: []byte("r1")}, {Session: "blue", Body: []byte("b1")}, {Session: "red", Body: []byte("r2")},
	} {
		must(t, s.Send(ctx, &m))
	}
	wantError(t, "send without a session", s.Send(ctx, &client.Message{}), client.ErrNotAllowed)
	_, err = c.OpenReceiver(ctx, "sessions", nil)
	wantError(t, "open a plain receiver", err, client.ErrNotAllowed)

	ids, err := c.Sessions(ctx, "sessions")
	must(t, err)
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"blue", "red"}) {
		t.Errorf("sessions %q", ids)
	}

	red, err := c.OpenSession(ctx, "sessions", "red", nil)
	must(t, err)
	if red.ID() != "red" || !red.LockedUntil().After(time.Now()) {
		t.Errorf("session %q until %v", red.ID(), red.LockedUntil())
	}
	_, err = c.OpenSession(ctx, "sessions", "red", nil)
	wantError(t, "open it twice", err, client.ErrSessionLocked)

	next, err := c.NextSession(ctx, "sessions", nil)
	must(t, err)
	if next.ID() != "blue" {
		t.Errorf("the next session is %q, want blue", next.ID())
	}
	wantBodies(t, take(t, ctx, next.Receiver, 1), "b1")

	ms := take(t, ctx, red.Receiver, 2)
	wantBodies(t, ms, "r1 r2")
	if state, err := red.State(ctx); err != nil || state != nil {
		t.Errorf("state of a new session: %q, %v", state, err)
	}
	must(t, red.SetState(ctx, []byte("half way")))
	must(t, red.RenewSessionLock(ctx))
	must(t, red.Complete(ctx, ms[0]))
	must(t, red.Close())

	again, err := c.OpenSession(ctx, "sessions", "red", nil)
	must(t, err)
	if state, err := again.State(ctx); err != nil || string(state) != "half way" {
		t.Errorf("state: %q, %v", state, err)
	}
	rest := take(t, ctx, again.Receiver, 1)
	wantBodies(t, rest, "r2")
	if rest[0].DeliveryCount != 0 {
		t.Errorf("closing a session counted as a failure: %d", rest[0].DeliveryCount)
	}
	must(t, again.SetState(ctx, nil))
	if state, err := again.State(ctx); err != nil || state != nil {
		t.Errorf("state after clearing: %q, %v", state, err)
	}
}

func TestNextSessionWaits(t *testing.T) {
	b := triagetest.Start(t, entities)
	c, ctx := b.Client(), deadline(t)
	brief, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err := c.NextSession(brief, "sessions", nil)
	wantError(t, "no session", err, context.DeadlineExceeded)

	type answer struct {
		id  string
		err error
	}
	granted := make(chan answer, 1)
	go func() { // ends with the receive below
		s, err := c.NextSession(ctx, "sessions", nil)
		if err != nil {
			granted <- answer{err: err}
			return
		}
		granted <- answer{id: s.ID()}
	}()
	s, err := c.OpenSender(ctx, "sessions", nil)
	must(t, err)
	must(t, s.Send(ctx, &client.Message{Session: "late"}))
	if a := <-granted; a.id != "late" || a.err != nil {
		t.Errorf("granted %q, %v, want the late one", a.id, a.err)
	}
}

func TestPlainQueueHasNoSessions(t *testing.T) {
	b := triagetest.Start(t, entities)
	_, err := b.Client().OpenSession(deadline(t), "orders", "x", nil)
	if err == nil || !errors.Is(err, client.ErrNotAllowed) {
		t.Errorf("session of a plain queue: %v, want %v", err, client.ErrNotAllowed)
	}
}
