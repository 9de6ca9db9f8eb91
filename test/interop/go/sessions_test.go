// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// sendTo sends a message of a session.
func (q *queue) sendTo(session, body string) {
	q.t.Helper()
	q.sendMessage(&azservicebus.Message{Body: []byte(body), SessionID: &session})
}

func (q *queue) accept(session string) *azservicebus.SessionReceiver {
	q.t.Helper()
	r, err := q.AcceptSessionForQueue(q.ctx, q.name, session, nil)
	if err != nil {
		q.t.Fatalf("accept session %q: %v", session, err)
	}
	return r
}

func TestNamedSessionWithState(t *testing.T) {
	t.Parallel()
	q := open(t, "sessions")
	q.sendTo("red", "r1")
	q.sendTo("blue", "b1")
	q.sendTo("red", "r2")
	r := q.accept("red")
	if r.SessionID() != "red" || r.LockedUntil().Before(time.Now()) {
		t.Errorf("session %q until %v", r.SessionID(), r.LockedUntil())
	}
	ms := take(t, q.ctx, r, 2)
	if got := bodies(ms); got != "r1 r2" {
		t.Errorf("received %q, want \"r1 r2\"", got)
	}
	if ms[0].SessionID == nil || *ms[0].SessionID != "red" {
		t.Errorf("message of session %v, want red", ms[0].SessionID)
	}
	if state, err := r.GetSessionState(q.ctx, nil); err != nil || state != nil {
		t.Errorf("state of a new session: %q, %v, want none", state, err)
	}
	if err := r.SetSessionState(q.ctx, []byte("step 2"), nil); err != nil {
		t.Fatal(err)
	}
	before := r.LockedUntil()
	if err := r.RenewSessionLock(q.ctx, nil); err != nil || r.LockedUntil().Before(before) {
		t.Errorf("renew session: %v; until %v, before %v", err, r.LockedUntil(), before)
	}
	for _, m := range ms {
		if err := r.CompleteMessage(q.ctx, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(q.ctx); err != nil {
		t.Fatal(err)
	}
	again := q.accept("red")
	if state, err := again.GetSessionState(q.ctx, nil); err != nil || string(state) != "step 2" {
		t.Errorf("state after reopening: %q, %v, want \"step 2\"", state, err)
	}
	if err := again.SetSessionState(q.ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if state, err := again.GetSessionState(q.ctx, nil); err != nil || state != nil {
		t.Errorf("state after clearing: %q, %v, want none", state, err)
	}
}

func TestNextAvailableSession(t *testing.T) {
	t.Parallel()
	q := open(t, "next-session")
	short, cancel := context.WithTimeout(q.ctx, time.Second)
	defer cancel()
	// The SDK sends the broker a timeout that is only a random hundredth shorter
	// than its own, so either may be first.
	_, err := q.AcceptNextSessionForQueue(short, q.name, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		wantCode(t, "accept the next of no sessions", err, azservicebus.CodeTimeout)
	}

	q.sendTo("one", "1a")
	q.sendTo("two", "2a")
	q.sendTo("one", "1b")
	var got []string
	for range 2 {
		r, err := q.AcceptNextSessionForQueue(q.ctx, q.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{"one": 2, "two": 1}[r.SessionID()]
		ms := take(t, q.ctx, r, n)
		got = append(got, r.SessionID()+": "+bodies(ms))
		for _, m := range ms {
			if err := r.CompleteMessage(q.ctx, m, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	slices.Sort(got)
	if want := []string{"one: 1a 1b", "two: 2a"}; !slices.Equal(got, want) {
		t.Errorf("sessions %q, want %q", got, want)
	}

	// A waiting receiver gets a session that appears later.
	type answer struct {
		*azservicebus.SessionReceiver
		error
	}
	granted := make(chan answer, 1)
	go func() { // ends with the receive below
		r, err := q.AcceptNextSessionForQueue(q.ctx, q.name, nil)
		granted <- answer{r, err}
	}()
	q.sendTo("three", "3a")
	late := <-granted
	if late.error != nil || late.SessionID() != "three" {
		t.Fatalf("the waiting receiver got %v, want session \"three\"", late)
	}
	if err := late.CompleteMessage(q.ctx, take(t, q.ctx, late, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
}

func TestSessionHasOneReceiver(t *testing.T) {
	t.Parallel()
	q := open(t, "contended")
	q.sendTo("s", "a")
	holder := q.accept("s")
	m := take(t, q.ctx, holder, 1)[0]

	other := connect(t, shared.Connection())
	_, err := other.AcceptSessionForQueue(q.ctx, q.name, "s", nil)
	if err == nil || !strings.Contains(err.Error(), "com.microsoft:session-cannot-be-locked") {
		t.Fatalf("second receiver of a session: %v, want session-cannot-be-locked", err)
	}
	if err := holder.Close(q.ctx); err != nil {
		t.Fatal(err)
	}
	r, err := other.AcceptSessionForQueue(q.ctx, q.name, "s", nil)
	if err != nil {
		t.Fatalf("accept after the first receiver left: %v", err)
	}
	again := take(t, q.ctx, r, 1)[0]
	if string(again.Body) != string(m.Body) || again.DeliveryCount != 1 {
		t.Errorf("redelivered %q with count %d, want %q with count 1", again.Body, again.DeliveryCount, m.Body)
	}
	if err := r.CompleteMessage(q.ctx, again, nil); err != nil {
		t.Fatal(err)
	}
}

func TestListSessions(t *testing.T) {
	t.Parallel()
	q := open(t, "session-list")
	for _, id := range []string{"c", "a", "b", "a"} {
		q.sendTo(id, "x")
	}
	var ids []string
	pager := q.NewListSessionsForQueuePager(q.name, nil)
	for pager.More() {
		page, err := pager.NextPage(q.ctx)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, page.Sessions...)
	}
	slices.Sort(ids)
	if got := strings.Join(ids, " "); got != "a b c" {
		t.Errorf("sessions %q, want \"a b c\"", got)
	}
}

func TestQueueThatRequiresSessionsRefusesOthers(t *testing.T) {
	t.Parallel()
	q := open(t, "session-rules")
	ctx, cancel := context.WithTimeout(q.ctx, 5*time.Second)
	defer cancel()
	_, err := q.ReceiveMessages(ctx, 1, nil)
	if err == nil || !strings.Contains(err.Error(), "It is not possible for an entity that requires sessions to create a non-sessionful message receiver") {
		t.Errorf("plain receiver: %v, want an error that says why", err)
	}
	if err := q.SendMessage(ctx, &azservicebus.Message{Body: []byte("x")}, nil); err == nil {
		t.Error("a message without a session was accepted")
	}
	// The empty string is a session id like any other.
	q.sendTo("", "nameless")
	r := q.accept("")
	if m := take(t, q.ctx, r, 1)[0]; string(m.Body) != "nameless" {
		t.Errorf("received %q, want \"nameless\"", m.Body)
	}
}
