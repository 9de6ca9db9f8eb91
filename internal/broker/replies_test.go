// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// ask returns a request with an id that wants its reply in the queue replies.
func ask(id string, level int32) message.Draft {
	return message.Draft{
		MessageID: codec.String(id), ReplyTo: "replies", Body: []byte(id),
		Application: []message.Pair{{Name: "Priority", Value: codec.Int(level)}},
	}
}

// answer returns the reply to the request of an id.
func answer(id string) message.Draft {
	return message.Draft{CorrelationID: codec.String(id), Body: []byte("re " + id)}
}

// serve hands the next message of a queue to a consumer, who keeps it.
func (r *rig) serve(addr string) Delivery {
	r.t.Helper()
	rec, k := r.receive(addr, 1, ReceiverOptions{})
	r.t.Cleanup(rec.Close)
	d := <-k.ds
	m, err := d.Message()
	if err != nil {
		r.t.Fatal(err)
	}
	r.NoteDelivered(addr, "", &d, m)
	return d
}

// first peeks at the only message of a queue.
func (r *rig) first(addr string) (Delivery, *message.Message) {
	r.t.Helper()
	ds, err := r.Peek(r.t.Context(), addr, 1, 10, nil)
	if err != nil || len(ds) != 1 {
		r.t.Fatalf("peek at %q: %d messages, %v, want one", addr, len(ds), err)
	}
	m, err := ds[0].Message()
	if err != nil {
		r.t.Fatal(err)
	}
	return ds[0], m
}

func TestReplyInheritsPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "work"})
		r.queue(entity.Queue{Name: "replies"})
		urgent, plain := ask("urgent", 8), ask("plain", 5)
		r.send("work", urgent.Message(), plain.Message())
		asked := time.Now()
		time.Sleep(time.Minute)
		r.serve("work")
		r.serve("work")
		late, soon := answer("plain"), answer("urgent")
		other := message.Draft{Body: []byte("other"), Priority: 7}
		r.send("replies", other.Message(), late.Message())
		r.send("replies", soon.Message())
		ds, err := r.Peek(t.Context(), "replies", 1, 10, nil)
		if err != nil || len(ds) != 3 {
			t.Fatalf("peek: %d messages, %v", len(ds), err)
		}
		for i, level := range []queue.Level{7, 5, 8} {
			if ds[i].Level != level || !ds[i].EnqueuedAt.Equal(asked.Add(time.Minute)) {
				t.Errorf("message %d: level %d, enqueued %v, want %d now", i+1, ds[i].Level, ds[i].EnqueuedAt, level)
			}
		}
		if got := ds[2].OrderTime; !got.Equal(asked.Truncate(time.Millisecond)) {
			t.Errorf("the age of the reply counts from %v, want %v", got, asked)
		}
		x := r.explain("replies", 3)
		for _, part := range []string{
			"level 8, because it answers a request of level 8 and asks for none itself.",
			"Its age counts from ", "Nothing is ahead of it; it is next",
		} {
			if !strings.Contains(x.Text(), part) || x.Since == nil {
				t.Errorf("%q is missing in\n%s", part, x.Text())
			}
		}
		r = r.restart()
		wantBodies(t, "after a restart", r.take("replies"), "re urgent", "other", "re plain")
	})
}

func TestReplyHasTheRemainingDeadline(t *testing.T) {
	for _, policy := range []string{
		`{"discipline": "deadline", "classes": [{"name": "any", "level": 4, "objective": {"wait": "10m"}}]}`,
		`{"discipline": "aging", "aging": {"every": "1m", "upTo": 9}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t)
			r.queue(entity.Queue{Name: "work"})
			r.ranked("replies", policy)
			request := ask("q", 4)
			r.send("work", request.Message())
			time.Sleep(5 * time.Minute)
			r.send("replies", msg("older"))
			time.Sleep(time.Minute)
			r.serve("work")
			reply := answer("q")
			r.send("replies", reply.Message())
			r = r.restart()
			wantBodies(t, policy, r.take("replies"), "re q", "older")
		})
	}
}

func TestReplyHasItsOwnAgeWhereTheNewestGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "work"})
		r.ranked("replies", `{"within": "lifo"}`)
		request := ask("q", 4)
		r.send("work", request.Message())
		time.Sleep(time.Minute)
		r.serve("work")
		reply := answer("q")
		r.send("replies", msg("older"), reply.Message())
		wantBodies(t, "newest first", r.take("replies"), "re q", "older")
	})
}

func TestReplyIsNotLifted(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "work"})
	r.queue(entity.Queue{Name: "replies"})
	r.queue(entity.Queue{Name: "elsewhere"})
	request := ask("q", 8)
	r.send("work", request.Message())
	early, outsider, own, named, claimed := answer("q"), answer("other"), answer("q"), answer("q"), answer("other")
	own.Priority = 2
	named.Application = []message.Pair{{Name: "Priority", Value: codec.String("Low")}}
	inherited := message.Inherited{Level: 9, Class: "paid", Since: time.Unix(1, 0)}
	for _, c := range inherited.Changes() {
		claimed.Annotations = append(claimed.Annotations, message.Pair{Name: c.Name, Value: c.Value})
	}
	try := func(what, to string, d message.Draft, want queue.Level) {
		t.Helper()
		r.send(to, d.Message())
		got, m := r.first(to)
		if got.Level != want || !got.OrderTime.IsZero() || m.WithoutReserved() != m {
			t.Errorf("%s: level %d, since %v, claims %t, want %d", what, got.Level, got.OrderTime, m.WithoutReserved() != m, want)
		}
		r.take(to)
	}
	try("before the request was delivered", "replies", early, 4)
	r.serve("work")
	try("another id", "replies", outsider, 4)
	try("another queue", "elsewhere", early, 4)
	try("a header of its own", "replies", own, 2)
	try("a property of its own", "replies", named, 2)
	try("a loan that its sender made up", "replies", claimed, 4)
}

func TestReplyAndTheClassesOfItsQueue(t *testing.T) {
	r := start(t)
	r.ranked("work", paidFirst)
	r.ranked("replies", `{"classes": [
		{"name": "error", "level": 9, "when": "failed = 'yes'"},
		{"name": "paid", "level": 6, "when": "plan = 'paid'"},
		{"name": "rest", "level": 1}
	]}`)
	plan := func(id, plan string) *message.Message {
		d := message.Draft{MessageID: codec.String(id), ReplyTo: "amqps://broker.example.com/Replies",
			Application: []message.Pair{{Name: "plan", Value: codec.String(plan)}}}
		return d.Message()
	}
	r.send("work", plan("a", "paid"), plan("b", "free"))
	r.serve("work")
	r.serve("work")
	try := func(what string, d message.Draft, level queue.Level, class queue.Class, why string) {
		t.Helper()
		r.send("replies", d.Message())
		got, _ := r.first("replies")
		if got.Level != level || got.Class != class {
			t.Errorf("%s: level %d of class %d, want %d of %d", what, got.Level, got.Class, level, class)
		}
		if x := r.explain("replies", got.Seq); !strings.Contains(x.Why, why) {
			t.Errorf("%s: %q is missing in %q", what, why, x.Why)
		}
	}
	failed := answer("a")
	failed.Application = []message.Pair{{Name: "failed", Value: codec.String("yes")}}
	try("a condition wins", failed, 9, 1, `class "error" takes it, because failed`)
	r.take("replies")
	try("the class has a namesake", answer("a"), 6, 2, `class "paid" takes it, because it answers a request of that class; the class has level 6`)
	r.take("replies")
	try("the class has none", answer("b"), 3, 3,
		`class "rest" takes every message that no class before it takes; the class has level 1, but this one has 3, because it answers a request of level 3`)

	// A new policy finds the loan again.
	if _, err := r.SetPolicy(t.Context(), "replies", []byte(`{"classes": [{"name": "FREE", "level": 7, "when": "1 = 2"}]}`)); err != nil {
		t.Fatal(err)
	}
	if got, _ := r.first("replies"); got.Level != 7 || got.Class != 1 {
		t.Errorf("after a change: level %d of class %d, want 7 of 1", got.Level, got.Class)
	}
}

func TestReplyOutlivesNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "work"})
		r.queue(entity.Queue{Name: "replies"})
		short := ask("short", 4)
		short.TTL = time.Minute
		endless := ask("endless", 4)
		r.send("work", short.Message(), endless.Message())
		r.serve("work")
		r.serve("work")
		time.Sleep(20 * time.Second)
		own := answer("short")
		own.TTL = time.Hour
		for _, tt := range []struct {
			reply message.Draft
			take  time.Duration // zero is as long as the queue lets it
		}{{answer("short"), 40 * time.Second}, {own, time.Hour}, {answer("endless"), 0}} {
			r.send("replies", tt.reply.Message())
			d, m := r.first("replies")
			want := tt.take
			if left := d.ExpiresAt.Sub(d.EnqueuedAt); want > 0 && left.Round(time.Millisecond) != want {
				t.Errorf("%s lives %v, want %v", body(t, d), left, want)
			}
			if h := m.Header(); h.TTLSet != (want > 0) {
				t.Errorf("%s: its header has a time to live: %t", body(t, d), h.TTLSet)
			}
			r.take("replies")
		}
	})
}

func TestReplyThroughATopic(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "work"})
	r.topic(entity.Topic{Name: "replies"}, entity.Subscription{Name: "all"})
	request := ask("q", 8)
	r.send("work", request.Message())
	r.serve("work")
	reply := answer("q")
	r.send("replies", msg("other"), reply.Message())
	wantBodies(t, "a subscription", r.take("replies/Subscriptions/all"), "re q", "other")
}

func TestRequestsAreForgotten(t *testing.T) {
	rs, n := newRequests(), new(catalog.Entity)
	for i := range maxRequests + 2 {
		rs.put(n, "key", fmt.Sprint(i), request{until: time.Unix(int64(i), 0)})
		rs.put(n, "key", fmt.Sprint(i), request{until: time.Unix(int64(i), 0)}) // delivered again
	}
	for id, want := range map[string]bool{"0": false, "1": false, "2": true, fmt.Sprint(maxRequests + 1): true} {
		if _, ok := rs.find(n, "key", id); ok != want {
			t.Errorf("request %s is known: %t, want %t", id, ok, want)
		}
	}
	if len(rs.all) != maxRequests || len(rs.oldest) != maxRequests {
		t.Errorf("%d requests and %d keys are kept, want %d", len(rs.all), len(rs.oldest), maxRequests)
	}
	if _, ok := rs.find(new(catalog.Entity), "key", "2"); ok {
		t.Error("found at another queue")
	}
	if _, ok := rs.find(n, "another", "2"); ok {
		t.Error("found for another key")
	}
}
