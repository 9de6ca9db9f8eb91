// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// sendAs sends as a client that writes a zero for no priority, or as one that means
// it.
func (r *rig) sendAs(addr string, o SenderOptions, batch ...*message.Message) {
	r.t.Helper()
	s, err := r.OpenSender(addr, o)
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	s.Send(batch, func(err error) { done <- err })
	if err := <-done; err != nil {
		r.t.Fatalf("send to %q: %v", addr, err)
	}
}

// wantLevels waits for the two messages and compares their levels.
func (r *rig) wantLevels(what, addr string, unset, zero queue.Level) {
	r.t.Helper()
	synctest.Wait()
	ds, err := r.Peek(r.t.Context(), addr, 0, 10, nil)
	if err != nil || len(ds) != 2 {
		r.t.Errorf("%s: %d messages in %q, %v; want two", what, len(ds), addr, err)
		return
	}
	for i := range ds {
		want := map[string]queue.Level{"unset": unset, "zero": zero}[body(r.t, ds[i])]
		if ds[i].Level != want {
			r.t.Errorf("%s: %q has level %d in %q, want %d", what, body(r.t, ds[i]), ds[i].Level, addr, want)
		}
	}
}

// TestHeaderPriorityZeroIsReadOnce is for B5: whether a zero in the header is a
// priority depends on the client that sent it. That is decided when the message
// comes, and every later path agrees: forwarding, topics that hold messages, dead
// letters that go elsewhere or back, and policies that come and go.
func TestHeaderPriorityZeroIsReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		send := func(addr string, later time.Duration) {
			t.Helper()
			for _, name := range []string{"unset", "zero"} {
				d := message.Draft{Body: []byte(name), MessageID: codec.String(name), PrioritySet: true, TTL: time.Hour}
				if later > 0 {
					d.Annotations = []message.Pair{{Name: message.AnnotationScheduledEnqueueTime, Value: codec.Timestamp(time.Now().Add(later))}}
				}
				r.sendAs(addr, SenderOptions{ZeroPriorityUnset: name == "unset"}, d.Message())
			}
		}

		r.queue(entity.Queue{Name: "plain"})
		send("plain", 0)
		r.wantLevels("sent", "plain", 4, 0)

		for i, to := range []string{"a", "b", "c", "d"} { // in either shard
			from := fmt.Sprint("from", i)
			r.queue(entity.Queue{Name: to})
			r.queue(entity.Queue{Name: from, ForwardTo: to})
			send(from, 0)
			r.wantLevels("forwarded", to, 4, 0)
		}

		r.topic(entity.Topic{Name: "topic"}, entity.Subscription{Name: "s"},
			entity.Subscription{Name: "shaped", Rules: []entity.Rule{shapes("r")}})
		send("topic", 0)
		r.wantLevels("published", "topic/Subscriptions/s", 4, 0)
		r.wantLevels("shaped by an action", "topic/Subscriptions/shaped", 4, 0)

		r.topic(entity.Topic{Name: "once", RequiresDuplicateDetection: true}, entity.Subscription{Name: "s"})
		send("once", 0)
		r.wantLevels("published once", "once/Subscriptions/s", 4, 0)

		r.topic(entity.Topic{Name: "later"}, entity.Subscription{Name: "s"})
		send("later", time.Minute)
		time.Sleep(2 * time.Minute)
		r.wantLevels("published later", "later/Subscriptions/s", 4, 0)

		r.queue(entity.Queue{Name: "calendar"})
		send("calendar", time.Minute)
		time.Sleep(2 * time.Minute)
		r.wantLevels("scheduled", "calendar", 4, 0)

		r.deadLetter("plain", 2)
		r = r.restart()
		if got, err := r.Redrive(t.Context(), "plain", Redrive{}); err != nil || got.Moved != 2 {
			t.Fatalf("redrive: %+v, %v", got, err)
		}
		r.wantLevels("redriven", "plain", 4, 0)
		r.queue(entity.Queue{Name: "repair"})
		r.deadLetter("plain", 2)
		if got, err := r.Redrive(t.Context(), "plain", Redrive{To: "repair"}); err != nil || got.Moved != 2 {
			t.Fatalf("redrive: %+v, %v", got, err)
		}
		r.wantLevels("redriven elsewhere", "repair", 4, 0)

		for _, level := range []int{9, 4, 0} {
			policy := fmt.Sprintf(`{"classes": [{"name": "all", "level": %d}]}`, level)
			if _, err := r.SetPolicy(t.Context(), "repair", []byte(policy)); err != nil {
				t.Fatal(err)
			}
			r.wantLevels("classified", "repair", queue.Level(level), queue.Level(level))
			if _, err := r.SetPolicy(t.Context(), "repair", []byte("null")); err != nil {
				t.Fatal(err)
			}
			r.wantLevels(fmt.Sprintf("after a policy of level %d", level), "repair", 4, 0)
		}
	})
}
