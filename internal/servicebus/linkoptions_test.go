// SPDX-License-Identifier: Apache-2.0

package servicebus

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// wish is how our own clients attach a receiver.
func linkProperties(properties map[string]any) *amqp.ReceiverOptions {
	o := peekLock()
	o.Properties = properties
	return o
}

func withPriority(body string, level uint8) *amqp.Message {
	m := amqp.NewMessage([]byte(body))
	m.Header = &amqp.MessageHeader{Priority: level}
	return m
}

func TestReceiverOfLevels(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", withPriority("low", 1), withPriority("high", 8), withPriority("middle", 5))
	for _, c := range []struct {
		properties map[string]any
		want       string
	}{
		{map[string]any{names.MinLevel: int32(8)}, "high"},
		{map[string]any{names.MinLevel: uint8(3), names.MaxLevel: int64(6)}, "middle"},
		{map[string]any{names.MaxLevel: 1.0}, "low"}, // as JavaScript writes it
	} {
		r := p.receiver("q", linkProperties(c.properties))
		if r.Properties()[names.Granted] != true {
			t.Errorf("%v: the answer has the properties %v, want %s", c.properties, r.Properties(), names.Granted)
		}
		if got := string(p.next(r).GetData()); got != c.want {
			t.Errorf("%v: got %q, want %q", c.properties, got, c.want)
		}
	}
	for _, bad := range []map[string]any{
		{names.MinLevel: int32(256)}, {names.MaxLevel: "high"}, {names.MinClass: "nobody"},
		{names.Sources: []string{"q"}, names.SourceSelection: "magic"}, {names.Sources: []any{"q", int32(1)}},
		{names.Sources: []string{"t/subscriptions/s", "q"}},
	} {
		_, err := p.session().NewReceiver(p.ctx(), "q", linkProperties(bad))
		wantCondition(t, fmt.Sprint(bad), err, names.ArgumentError)
	}
}

func TestReceiverOfAClass(t *testing.T) {
	b := start(t)
	_, err := b.broker.SetPolicy(t.Context(), "q", []byte(`{"classes": [
		{"name": "paid", "level": 8, "when": "plan = 'paid'"}, {"name": "free", "level": 0}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p := b.login(t, rootRule)
	paid := amqp.NewMessage([]byte("p"))
	paid.ApplicationProperties = map[string]any{"plan": "paid"}
	p.send("q", paid, amqp.NewMessage([]byte("f")))
	if got := string(p.next(p.receiver("q", linkProperties(map[string]any{names.MaxClass: "free"}))).GetData()); got != "f" {
		t.Errorf("up to free: got %q, want f", got)
	}
	if got := string(p.next(p.receiver("q", linkProperties(map[string]any{names.MinClass: "paid"}))).GetData()); got != "p" {
		t.Errorf("from paid on: got %q, want p", got)
	}
}

func TestReceiverOfSeveralQueues(t *testing.T) {
	b := start(t)
	if _, err := b.broker.CreateQueue(t.Context(), entity.Queue{Name: "second"}); err != nil {
		t.Fatal(err)
	}
	p := b.login(t, rootRule)
	addresses := []string{"q", "second", "t/subscriptions/s"}
	p.send("second", amqp.NewMessage([]byte("second 1")))
	p.send("t", amqp.NewMessage([]byte("third 1")))
	p.send("q", amqp.NewMessage([]byte("first 1")))
	r := p.receiver("q", linkProperties(map[string]any{names.Sources: addresses}))
	var all []*amqp.Message
	for _, want := range []struct{ body, source string }{
		{"first 1", "q"}, {"second 1", "second"}, {"third 1", "t/Subscriptions/s"},
	} {
		m := p.next(r)
		if got := string(m.GetData()); got != want.body || m.Annotations["x-triage-source"] != want.source {
			t.Errorf("got %q of %v, want %q of %s", got, m.Annotations["x-triage-source"], want.body, want.source)
		}
		all = append(all, m)
	}
	// All three tokens may be alike: each settlement must find its own queue.
	if err := r.AcceptMessage(p.ctx(), all[1]); err != nil {
		t.Fatalf("complete: %v", err)
	}
	if err := r.ReleaseMessage(p.ctx(), all[2]); err != nil {
		t.Fatalf("release: %v", err)
	}
	for path, want := range map[string]broker.Counts{
		"q": {Active: 1, Locked: 1}, "second": {}, "t/subscriptions/s": {Active: 1},
	} {
		rt, err := b.broker.Runtime(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if rt.Active != want.Active || rt.Locked != want.Locked {
			t.Errorf("%s: %d active, %d locked; want %d, %d", path, rt.Active, rt.Locked, want.Active, want.Locked)
		}
	}
	// A wait over empty queues ends when something comes, or when it is drained.
	if got := string(p.next(r).GetData()); got != "third 1" {
		t.Errorf("got %q, want what was released", got)
	}
	if err := r.IssueCredit(5); err != nil {
		t.Fatal(err)
	}
	if err := r.DrainCredit(p.ctx(), nil); err != nil {
		t.Errorf("drain: %v", err)
	}
	p.send("second", amqp.NewMessage([]byte("second 2")))
	if got := string(p.next(r).GetData()); got != "second 2" {
		t.Errorf("got %q, want second 2", got)
	}
}

func TestSetNeedsTheRightAtEverySource(t *testing.T) {
	b := start(t)
	p := b.anonymous(t, b.keeper)
	p.rpc("$cbs").put(rootRule, "sb://ns.example/q", time.Now().Add(time.Hour))
	_, err := p.session().NewReceiver(p.ctx(), "q", linkProperties(map[string]any{names.Sources: []string{"q", "t/subscriptions/s"}}))
	wantCondition(t, "a source without a right", err, "amqp:unauthorized-access")
}

func TestSenderLearnsWhichClassIsRefused(t *testing.T) {
	b := start(t)
	policy := json.RawMessage(`{"classes": [{"name": "all", "level": 4, "rate": "1/h"}]}`)
	if _, err := b.broker.SetPolicy(t.Context(), "q", policy); err != nil {
		t.Fatal(err)
	}
	p := b.login(t, rootRule)
	s := p.sender("q")
	if err := s.Send(p.ctx(), amqp.NewMessage([]byte("m")), nil); err != nil {
		t.Fatal(err)
	}
	e := wantCondition(t, "the second in an hour", s.Send(p.ctx(), amqp.NewMessage([]byte("m")), nil), names.ServerBusy)
	after, _ := e.Info["triagemq:retry-after"].(uint32)
	if e.Info["triagemq:class"] != "all" || after < 3500_000 || after > 3600_000 {
		t.Errorf("info %v, want class all and an hour", e.Info)
	}
}

func TestRecallAsksForTheLowestOnASecondLink(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", withPriority("low 0", 1), withPriority("low 1", 1))
	r := p.receiver("q", linkProperties(map[string]any{names.Recall: true}))
	asked, err := p.session().NewReceiver(p.ctx(), "q/$recall", &amqp.ReceiverOptions{
		Properties: map[string]any{names.Link: r.LinkName()}, Credit: 10,
	})
	if err != nil {
		t.Fatalf("attach to the recalls: %v", err)
	}
	p.next(r)
	last := p.next(r)
	if last.Annotations["x-triage-level"] != uint8(1) {
		t.Errorf("level %v on the message, want 1", last.Annotations["x-triage-level"])
	}
	p.send("q", withPriority("high", 8))
	m, err := asked.Receive(p.ctx(), nil)
	if err != nil {
		t.Fatalf("receive a recall: %v", err)
	}
	tokens, _ := m.Value.([]any)
	if len(tokens) != 1 || tokens[0] != last.DeliveryAnnotations["x-opt-lock-token"] {
		t.Errorf("asked for %v, want the lock of the last, %v", m.Value, last.DeliveryAnnotations["x-opt-lock-token"])
	}
	if err := r.ReleaseMessage(p.ctx(), last); err != nil {
		t.Fatal(err)
	}
	if got := string(p.next(r).GetData()); got != "high" {
		t.Errorf("next is %q, want high", got)
	}
}

func TestRecallThatIsReleasedIsFollowedByAnother(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", withPriority("low 0", 1), withPriority("low 1", 1))
	r := p.receiver("q", linkProperties(map[string]any{names.Recall: true}))
	asked, err := p.session().NewReceiver(p.ctx(), "q/$recall", &amqp.ReceiverOptions{
		Properties: map[string]any{names.Link: r.LinkName()}, Credit: 10,
	})
	if err != nil {
		t.Fatalf("attach to the recalls: %v", err)
	}
	first, last := p.next(r), p.next(r)
	p.send("q", withPriority("high", 8))
	for i, want := range []*amqp.Message{last, first} {
		m, err := asked.Receive(p.ctx(), nil)
		if err != nil {
			t.Fatalf("recall %d: %v", i, err)
		}
		if tokens, _ := m.Value.([]any); len(tokens) != 1 || tokens[0] != want.DeliveryAnnotations["x-opt-lock-token"] {
			t.Errorf("recall %d: asked for %v, want the lock of %q", i, m.Value, want.GetData())
		}
		answer := asked.ReleaseMessage // it has been started
		if want == first {
			answer = asked.AcceptMessage
		}
		if err := answer(p.ctx(), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.ReleaseMessage(p.ctx(), first); err != nil {
		t.Fatal(err)
	}
	if got := string(p.next(r).GetData()); got != "high" {
		t.Errorf("next is %q, want high", got)
	}
}

// A peer that drains its recalls is answered also when more wait than it gave credit for.
func TestDrainOfRecallsThatHoldMore(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	p.send("q", withPriority("low 0", 1), withPriority("low 1", 1))
	r := p.receiver("q", linkProperties(map[string]any{names.Recall: true}))
	asked, err := p.session().NewReceiver(p.ctx(), "q/$recall", &amqp.ReceiverOptions{
		Properties: map[string]any{names.Link: r.LinkName()}, Credit: -1,
	})
	if err != nil {
		t.Fatalf("attach to the recalls: %v", err)
	}
	p.next(r)
	p.next(r)
	p.send("q", withPriority("high", 8))
	p.send("q", withPriority("highest", 9))
	p.next(asked)
	if err := asked.DrainCredit(p.ctx(), nil); err != nil {
		t.Fatalf("drain: %v", err)
	}
	p.next(asked)
}

func TestRecallsNeedTheirReceiver(t *testing.T) {
	b := start(t)
	p := b.login(t, rootRule)
	plain := p.receiver("q", peekLock())
	for _, name := range []string{"nobody", plain.LinkName()} { // or one that did not offer it
		_, err := p.session().NewReceiver(p.ctx(), "q/$recall", &amqp.ReceiverOptions{Properties: map[string]any{names.Link: name}})
		wantCondition(t, name, err, "amqp:not-found")
	}
	s := b.login(t, sendRule)
	_, err := s.session().NewReceiver(s.ctx(), "q/$recall", &amqp.ReceiverOptions{Properties: map[string]any{names.Link: plain.LinkName()}})
	wantCondition(t, "without the right to listen", err, "amqp:unauthorized-access")
}
