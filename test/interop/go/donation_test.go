// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// An unmodified worker answers an urgent request: the reply inherits its
// priority, over any connection.
func TestReplyInheritsPriority(t *testing.T) {
	t.Parallel()
	asking, answers := open(t, "asking"), open(t, "answers")
	worker := openOn(t, connect(t, shared.Connection()), "asking")
	answering := openOn(t, connect(t, shared.Connection()), "answers")
	ask := func(id, priority string) {
		asking.sendMessage(&azservicebus.Message{
			MessageID: &id, ReplyTo: ptr("answers"), Body: []byte(id), ApplicationProperties: map[string]any{"Priority": priority},
		})
	}
	ask("slow", "low")
	ask("fast", "critical")
	requests := worker.receive(2)
	if got, want := bodies(requests), "fast slow"; got != want {
		t.Fatalf("requests %q, want %q", got, want)
	}
	asked := requests[0].EnqueuedTime
	answering.send("other")
	for _, i := range []int{1, 0} {
		// With a time to live this SDK writes a header, and priority 0 into it.
		answering.sendMessage(&azservicebus.Message{
			CorrelationID: &requests[i].MessageID, Body: requests[i].Body, TimeToLive: ptr(time.Minute),
		})
	}
	worker.complete(requests...)
	got := answers.receive(3)
	if want := "fast other slow"; bodies(got) != want {
		t.Errorf("replies %q, want %q", bodies(got), want)
	}
	if enqueued := got[0].EnqueuedTime; enqueued.Before(*asked) {
		t.Errorf("the reply was enqueued at %v, before its request at %v", enqueued, asked)
	}
	answers.complete(got...)
}

// An urgent message takes the ones before it in its session along.
func TestUrgentMessageLiftsItsSession(t *testing.T) {
	t.Parallel()
	q := open(t, "lifted")
	send := func(session, body, priority string) {
		q.sendMessage(&azservicebus.Message{SessionID: &session, Body: []byte(body), ApplicationProperties: map[string]any{"Priority": priority}})
	}
	send("one", "1a", "low")
	send("two", "2a", "normal")
	send("one", "1b", "critical")
	for _, want := range []struct {
		session, bodies string
		n               int
	}{{"one", "1a 1b", 2}, {"two", "2a", 1}} {
		r, err := q.AcceptNextSessionForQueue(q.ctx, q.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.SessionID() != want.session {
			t.Fatalf("the next session is %q, want %q", r.SessionID(), want.session)
		}
		ms := take(t, q.ctx, r, want.n)
		if got := bodies(ms); got != want.bodies {
			t.Errorf("session %q has %q, want %q", want.session, got, want.bodies)
		}
		for _, m := range ms {
			if err := r.CompleteMessage(q.ctx, m, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
