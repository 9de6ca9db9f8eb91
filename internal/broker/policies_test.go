// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/broker/jobs/reclassify"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// ranked makes a queue with a policy.
func (r *rig) ranked(name, policy string) {
	r.t.Helper()
	r.queue(entity.Queue{Name: name, Policy: json.RawMessage(policy)})
}

const paidFirst = `{"classes": [
	{"name": "paid", "level": 8, "when": "plan = 'paid'"},
	{"name": "free", "level": 3}
]}`

func TestPolicyGivesMessagesTheirLevel(t *testing.T) {
	r := start(t)
	r.ranked("orders", paidFirst)
	r.send("orders", msg("a", "plan", "free", "Priority", "High"), msg("b", "plan", "paid", "Priority", "Low"))
	r = r.restart()
	r.send("orders", msg("c"), msg("d", "plan", "paid"))
	ds, err := r.Peek(t.Context(), "orders", 0, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprintf("%d/%d", d.Class, d.Level))
	}
	wantBodies(t, "class/level", got, "2/3", "1/8", "2/3", "1/8")
	wantBodies(t, "orders", r.take("orders"), "b", "d", "a", "c")
}

func TestPolicyOfASubscriptionIsItsOwn(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"},
		entity.Subscription{Name: "plain"},
		entity.Subscription{Name: "ranked", Policy: json.RawMessage(paidFirst)})
	r.send("t", msg("a"), msg("b", "plan", "paid"))
	wantBodies(t, "plain", r.take("t/Subscriptions/plain"), "a", "b")
	wantBodies(t, "ranked", r.take("t/Subscriptions/ranked"), "b", "a")
}

func TestFairKeysTakeTurns(t *testing.T) {
	r := start(t)
	r.ranked("work", `{"fairKey": "tenant"}`)
	var flood []*message.Message
	for i := range 5 {
		flood = append(flood, msg(fmt.Sprint("a", i), "tenant", "a"))
	}
	r.send("work", flood...)
	r.send("work", msg("b0", "tenant", "b"))
	got := r.take("work")
	if at := slices.Index(got, "b0"); at > 1 {
		t.Errorf("tenant b waits behind %d messages of a: %q", at, got)
	}
}

func TestFaultyPoliciesAreRefusedWithEveryFault(t *testing.T) {
	r := start(t)
	bad := json.RawMessage(`{"discipline": "magic", "classes": [{"name": "a", "when": "plan ="}]}`)
	_, err := r.CreateQueue(t.Context(), entity.Queue{Name: "q", Policy: bad})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "discipline") || !strings.Contains(err.Error(), "classes[0].when") {
		t.Errorf("create: got %v, want both faults", err)
	}
	r.queue(entity.Queue{Name: "q"})
	if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "q", Policy: bad}); !errors.Is(err, ErrInvalid) {
		t.Errorf("update: got %v, want %v", err, ErrInvalid)
	}
	if _, err := r.SetPolicy(t.Context(), "q", bad); !errors.Is(err, ErrInvalid) {
		t.Errorf("set: got %v, want %v", err, ErrInvalid)
	}
	if _, err := r.DryRun(t.Context(), "q", bad); !errors.Is(err, ErrInvalid) {
		t.Errorf("dry run: got %v, want %v", err, ErrInvalid)
	}
	if s, err := r.Policy("q"); err != nil || s.Revision != 0 || string(s.Policy) != "{}" {
		t.Errorf("policy after refusals: %+v, %v", s, err)
	}
}

func TestUpdateWithoutAPolicyKeepsIt(t *testing.T) {
	r := start(t)
	r.ranked("q", paidFirst)
	if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "q", MaxDeliveryCount: 3}); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Policy("q"); err != nil || s.Revision != 1 || !strings.Contains(string(s.Policy), "paid") {
		t.Fatalf("kept: %+v, %v", s, err)
	}
	if _, err := r.UpdateQueue(t.Context(), entity.Queue{Name: "q", Policy: json.RawMessage("null")}); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Policy("q"); err != nil || s.Revision != 2 || string(s.Policy) != "{}" {
		t.Fatalf("taken away: %+v, %v", s, err)
	}
}

func TestSetPolicyClassifiesWhatWaitsAndKeepsItsAge(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	var batch []*message.Message
	for i := range reclassify.Chunk + 20 { // more than one chunk
		plan := "free"
		if i%100 == 7 {
			plan = "paid"
		}
		batch = append(batch, msg(fmt.Sprint(i), "plan", plan, "Priority", "low"))
	}
	r.send("q", batch...)
	before, err := r.Peek(t.Context(), "q", 0, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, k := r.receive("q", 1, ReceiverOptions{}) // one is locked meanwhile
	held := <-k.ds

	dry, err := r.DryRun(t.Context(), "q", []byte(paidFirst))
	if err != nil {
		t.Fatal(err)
	}
	want := []Transition{
		{From: ClassLevel{Class: "", Level: 2}, To: ClassLevel{Class: "free", Level: 3}, Count: 514},
		{From: ClassLevel{Class: "", Level: 2}, To: ClassLevel{Class: "paid", Level: 8}, Count: 6},
	}
	if dry.Looked != 520 || dry.Changed != 520 || !slices.Equal(dry.Transitions, want) {
		t.Errorf("dry run: looked %d, changed %d, shifts %+v; want 520, 520, %+v", dry.Looked, dry.Changed, dry.Transitions, want)
	}
	if after, _ := r.Peek(t.Context(), "q", 0, 1, nil); after[0].Level != 2 {
		t.Errorf("the dry run changed level 2 to %d", after[0].Level)
	}

	s, err := r.SetPolicy(t.Context(), "q", []byte(paidFirst))
	if err != nil || s.Revision != 1 || !s.Applied {
		t.Fatalf("set: %+v, %v", s, err)
	}
	after, err := r.Peek(t.Context(), "q", 0, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range after {
		want := queue.Level(3)
		if i%100 == 7 {
			want = 8
		}
		if d.Level != want || d.Seq != before[i].Seq || !d.EnqueuedAt.Equal(before[i].EnqueuedAt) {
			t.Fatalf("message %d: level %d, number %d, enqueued %v; want %d, %d, %v",
				i, d.Level, d.Seq, d.EnqueuedAt, want, before[i].Seq, before[i].EnqueuedAt)
		}
	}
	if held.Seq != 1 {
		t.Fatalf("held message %d", held.Seq)
	}
	r = r.restart()
	got := r.take("q")
	wantBodies(t, "after a restart", got[:7], "7", "107", "207", "307", "407", "507", "0")
}

func TestSetPolicyChecksTheRevisionItIsGiven(t *testing.T) {
	r := start(t)
	r.ranked("q", paidFirst)
	if _, err := r.SetPolicy(t.Context(), "q", []byte(`{"revision": 3, "discipline": "strict"}`)); !errors.Is(err, ErrInvalid) {
		t.Errorf("a revision that nobody has seen: got %v, want %v", err, ErrInvalid)
	}
	s, err := r.SetPolicy(t.Context(), "q", []byte(`{"revision": 1, "fairKey": "tenant"}`))
	if err != nil || s.Revision != 2 || string(s.Policy) != `{"fairKey":"tenant"}` {
		t.Errorf("the right one: %+v, %v", s, err)
	}
}

func TestPolicyChangeUnderLoadLosesNothing(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	const n = 2000
	sent := make(chan error, n)
	s, err := r.OpenSender("q", SenderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the last message
		for i := range n {
			plan := []string{"paid", "free"}[i%2]
			s.Send([]*message.Message{msg(fmt.Sprint(i), "plan", plan)}, func(err error) { sent <- err })
		}
	}()
	for i := range 10 {
		p := fmt.Sprintf(`{"classes": [{"name": "paid", "level": %d, "when": "plan = 'paid'"}]}`, 10+i)
		if _, err := r.SetPolicy(t.Context(), "q", []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	levels := map[queue.Level]int{}
	for at := queue.SeqNo(0); ; {
		ds, err := r.Peek(t.Context(), "q", at, 500, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			levels[d.Level]++
		}
		at = ds[len(ds)-1].Seq + 1
	}
	if levels[19] != n/2 || levels[4] != n/2 {
		t.Errorf("levels %v, want %d at 19 and at 4", levels, n/2)
	}
}

func TestRangeReceiversGetTheirClasses(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"classes": [
		{"name": "paid", "level": 8, "when": "plan = 'paid'"},
		{"name": "trial", "level": 5, "when": "plan = 'trial'"},
		{"name": "free", "level": 0}]}`)
	all := func(o ReceiverOptions) []string {
		t.Helper()
		rec, k := r.receive("q", 100, o)
		defer rec.Close()
		rec.Drain()
		<-k.drained
		var got []string
		for len(k.ds) > 0 {
			d := <-k.ds
			got = append(got, body(t, d))
			r.settle(rec, d, Outcome{Disposition: Release})
		}
		return got
	}
	r.send("q", msg("f"), msg("p", "plan", "paid"), msg("t", "plan", "trial"))
	wantBodies(t, "all", all(ReceiverOptions{}), "p", "t", "f")
	wantBodies(t, "from trial on", all(ReceiverOptions{MinClass: "Trial"}), "p", "t")
	wantBodies(t, "up to trial", all(ReceiverOptions{MaxClass: "trial"}), "t", "f")
	wantBodies(t, "free alone", all(ReceiverOptions{MaxClass: "free"}), "f")
	wantBodies(t, "up to level 0", all(ReceiverOptions{HasMaxLevel: true}), "f")
	wantBodies(t, "by level", all(ReceiverOptions{MinLevel: 5, MaxLevel: 7}), "t")
	if _, err := r.OpenReceiver(t.Context(), "q", ReceiverOptions{MinClass: "nobody", Sink: newSink()}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an unknown class: got %v, want %v", err, ErrInvalid)
	}
}

// A process that dies in the middle of classifying anew leaves the rest to the
// next one.
func TestRestartGoesOnClassifying(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("p", "plan", "paid"))
	n := r.Entity("q")
	def := *n.Definition()
	q := *def.Queue
	q.Policy, def.Queue = json.RawMessage(paidFirst), &q
	def.PolicyRevision = 1 // and nothing classified by it
	r.store(n, def)
	r = r.restart()
	if err := r.reclassifier.Wait(t.Context(), r.Entity("q")); err != nil {
		t.Fatal(err)
	}
	ds, err := r.Peek(t.Context(), "q", 0, 1, nil)
	if err != nil || ds[0].Level != 8 {
		t.Errorf("after the restart: %+v, %v; want level 8", ds, err)
	}
	if s, err := r.Policy("q"); err != nil || !s.Applied || s.Revision != 1 {
		t.Errorf("policy %+v, %v", s, err)
	}
}

func TestWeightedSharesAndLeavesNobodyIdle(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"discipline": "weighted", "classes": [
		{"name": "high", "level": 8, "weight": 9, "when": "p = 'high'"}, {"name": "low", "level": 3, "weight": 1}]}`)
	var batch []*message.Message
	for range 300 {
		batch = append(batch, msg("high", "p", "high"), msg("low"))
	}
	r.send("q", batch...)
	rec, k := r.receive("q", 200, ReceiverOptions{})
	low, since := 0, 0
	for i := range 200 {
		if d := <-k.ds; d.Level == 3 {
			low, since = low+1, i
		} else if i-since > 10 {
			t.Fatalf("%d of others in a row, the bound is 10", i-since)
		}
	}
	if low < 18 || low > 22 {
		t.Errorf("%d of 200 were low, want a tenth", low)
	}
	rec.Close()
	// When nothing else waits, the low ones have everything.
	if _, err := r.Purge(t.Context(), "q"); err != nil {
		t.Fatal(err)
	}
	r.send("q", msg("a"), msg("b"))
	wantBodies(t, "alone", r.take("q"), "a", "b")
}

// TestReclassificationPassesWhatItCannotRead is for B11: a damaged body does not
// keep the messages behind it from their new classes. Its own message keeps its
// level, and the class it had, a number in the policy before, is gone.
func TestReclassificationPassesWhatItCannotRead(t *testing.T) {
	r := start(t)
	r.ranked("q", paidFirst)
	r.send("q", msg("a", "plan", "paid"), msg("broken", "plan", "paid", "Priority", "9"), msg("c", "plan", "paid"), msg("d"))
	r = r.restart()
	r.damage("broken")
	next := []byte(`{"classes": [{"name": "trial", "level": 1, "when": "plan = 'trial'"}, {"name": "paid", "level": 6, "when": "plan = 'paid'"}]}`)
	dry, err := r.DryRun(t.Context(), "q", next)
	if err != nil || dry.Looked != 3 {
		t.Errorf("dry run: looked at %d, %v; want the three that can be read", dry.Looked, err)
	}
	s, err := r.SetPolicy(t.Context(), "q", next)
	if err != nil || !s.Applied {
		t.Fatalf("set: %+v, %v; want it applied", s, err)
	}
	for _, want := range []struct {
		seq   queue.SeqNo
		class queue.Class
		level queue.Level
	}{{1, 2, 6}, {2, 0, 8}, {3, 2, 6}, {4, 0, 4}} {
		ds, err := r.Peek(t.Context(), "q", want.seq, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) == 0 || ds[0].Seq != want.seq {
			if want.seq == 2 {
				continue // it may have been taken out of the way altogether
			}
			t.Fatalf("message %d is not there: %+v", want.seq, ds)
		}
		if d := ds[0]; d.Class != want.class || d.Level != want.level {
			t.Errorf("message %d: class %d, level %d; want %d and %d", d.Seq, d.Class, d.Level, want.class, want.level)
		}
	}
}
