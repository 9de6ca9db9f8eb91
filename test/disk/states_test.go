// SPDX-License-Identifier: Apache-2.0

//go:build linux

package disk

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// Who may only receive sets states of sessions on a full disk, again and again: they are
// refused, everything can be consumed all the same, and a restart works.
func TestFullDiskWithSessionStates(t *testing.T) {
	needMounts(t)
	t.Parallel()
	d := newDisk(t, 60<<20)
	ctx := t.Context()
	l := &ledger{t: t, size: tiny}
	b := d.start()
	b.defineSessions(ctx, "sessions")
	l.burst(ctx, b, 0)
	d.take(1)
	var all crew
	for _, id := range []string{"a", "b", "c", "d"} {
		all.Go(func() error { return b.setStates(ctx, id) })
	}
	if err := all.wait(); err != nil {
		t.Fatalf("%v\n%s", err, b.lastWords())
	}
	l.mustConsume(ctx, b, 0.3, everyQueue...)
	b.Kill()
	b = d.start()
	l.drain(ctx, b)
	l.admitted(ctx, b)
	b.stop()
}

// setStates sets large states of a session until that was refused several times.
func (b *broker) setStates(ctx context.Context, id string) error {
	c, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.OpenSession(ctx, "sessions", id, nil)
	if err != nil {
		return err
	}
	state := []byte(strings.Repeat("x", 250_000))
	for refused := 0; refused < 5; {
		switch err := s.SetState(ctx, state); {
		case isFull(err):
			refused++
		case err != nil:
			return err
		}
	}
	return nil
}

// defineSessions makes a queue of sessions.
func (b *broker) defineSessions(ctx context.Context, name string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+b.Addr+"/api/v1/queues/"+name, strings.NewReader(`{"requiresSession": true}`))
	if err != nil {
		b.t.Fatal(err)
	}
	req.SetBasicAuth("root", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		b.t.Fatalf("define a queue: %s", resp.Status)
	}
}
