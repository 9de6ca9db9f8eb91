// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
)

// What users of other queues ask for, and complain of, most: one test for each,
// named after the place where they do. Prefetch that defeats priority (rabbitmq
// 249 and others) is in the tests of package client, which prefetches.

// one receives and completes the next message.
func (r *rig) one(addr string) string {
	r.t.Helper()
	rec, k := r.receive(addr, 1, ReceiverOptions{})
	defer rec.Close()
	d := <-k.ds
	r.settle(rec, d, Outcome{Disposition: Complete})
	return body(r.t, d)
}

const agingPolicy = `{"discipline": "aging", "aging": {"every": "1m", "upTo": 8}, "classes": [
	{"name": "high", "level": 8, "when": "p = 'high'"}, {"name": "low", "level": 3}]}`

// "Grow the priority of a job with the time it waits."
func TestAskBeanstalkd167PriorityGrowsWithWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", agingPolicy)
		r.send("q", msg("low"))
		time.Sleep(5 * time.Minute) // from 3 to 8
		r.send("q", msg("high", "p", "high"))
		if x := r.explain("q", 1); x.Rank != 8 || x.Level != 3 {
			t.Errorf("after five minutes: rank %d of level %d, want 8 of 3", x.Rank, x.Level)
		}
		if got := r.one("q"); got != "low" {
			t.Errorf("first is %q, want the one that waited", got)
		}
	})
}

// "Low tasks are untouched for hours; they should be picked up after a certain
// time." The bound is printed, and holds.
func TestAskAsynq907LowIsPickedUpAfterACertainTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", agingPolicy)
		p, err := r.Policy("q")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(p.Consequences, func(s string) bool {
			return strings.Contains(s, "class low (level 3)") && strings.Contains(s, "What comes later than 5m after it")
		}) {
			t.Errorf("the bound of 5m is not told: %q", p.Consequences)
		}
		r.send("q", msg("low"))
		for i := 1; ; i++ { // high ones never stop coming; one is served each second
			r.send("q", msg("high", "p", "high"))
			got := r.one("q")
			if got == "low" {
				break
			}
			if i > 5*60+1 {
				t.Fatal("the low one waits longer than the bound of five minutes")
			}
			time.Sleep(time.Second)
		}
	})
}

// "Age-based boost": as a declared policy and not as a hack, so it can be looked
// up, and switched off.
func TestAskTemporal10242AgingIsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", agingPolicy)
		r.send("q", msg("low"))
		time.Sleep(time.Hour)
		r.send("q", msg("high", "p", "high"))
		strict := strings.Replace(agingPolicy, `"discipline": "aging", "aging": {"every": "1m", "upTo": 8},`, "", 1)
		if _, err := r.SetPolicy(t.Context(), "q", []byte(strict)); err != nil {
			t.Fatal(err)
		}
		if got := r.one("q"); got != "high" {
			t.Errorf("without aging the first is %q, want high", got)
		}
	})
}

// "Fairness of queues is not enough, aging must be per item, with a cap."
func TestAskKAI1970AgingIsPerMessageAndCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"discipline": "aging", "aging": {"every": "1m", "upTo": 6}, "classes": [
			{"name": "vital", "level": 9, "when": "p = 'vital'"}, {"name": "middle", "level": 5, "when": "p = 'middle'"},
			{"name": "low", "level": 3}]}`)
		r.send("q", msg("old"))
		time.Sleep(time.Hour)
		r.send("q", msg("young"), msg("middle", "p", "middle"), msg("vital", "p", "vital"))
		// The old one has risen to 6, the young one of the same class has not,
		// and nobody rises above the cap.
		wantBodies(t, "order", r.take("q"), "vital", "old", "middle", "young")
	})
}

// "Strict is not strict, because of a hidden rule against starvation."
func TestAskRqueue276StrictMeansStrict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{Name: "q"})
		r.send("q", msg("low", "Priority", "low"))
		time.Sleep(24 * time.Hour)
		r.send("q", msg("high", "Priority", "high"))
		wantBodies(t, "order", r.take("q"), "high", "low")
	})
}

// "Strict priority normally, weighted across the bands when saturated, with a bounded
// wait."
func TestAskLLMDRouter1995StrictUntilSaturatedThenWeighted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"discipline": "strict", "saturation": {"waiting": 200, "oldest": "5m"}, "classes": [
			{"name": "high", "level": 8, "weight": 9, "when": "p = 'high'"}, {"name": "low", "level": 3, "weight": 1}]}`)
		var pair []*message.Message
		for range 90 {
			pair = append(pair, msg("high", "p", "high"), msg("low"))
		}
		r.send("q", pair...)
		for i := range 50 { // not saturated: strictly the high ones
			if got := r.one("q"); got != "high" {
				t.Fatalf("delivery %d of a queue that keeps up is %q", i, got)
			}
		}
		r.send("q", pair...) // 310 wait
		if text := r.explain("q", 2).Text(); !strings.Contains(text, "strict, by weight while the queue is saturated") {
			t.Errorf("the mode is not explained:\n%s", text)
		}
		low, since := 0, 0
		for i := range 100 {
			if r.one("q") == "low" {
				low, since = low+1, i
			} else if i-since > 10 {
				t.Fatalf("%d of others in a row, the bound is 10", i-since)
			}
		}
		if low != 10 {
			t.Errorf("%d of 100 were low, want a tenth", low)
		}
		r = r.restart() // 210 wait; the settings are on disk, and the mode follows
		if o, err := r.Objectives(t.Context(), "q"); err != nil || o.Saturated == nil || !*o.Saturated {
			t.Errorf("saturated %v, %v after a restart, want true", o.Saturated, err)
		}
		if _, err := r.Purge(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		// The bounded wait: five minutes and ten deliveries of others, whatever comes.
		r.send("q", msg("low"))
		begin := time.Now()
		for late := 0; ; time.Sleep(time.Second) {
			r.send("q", msg("high", "p", "high"))
			waited := time.Since(begin)
			if waited >= 5*time.Minute {
				late++
			}
			if r.one("q") == "low" {
				if late == 0 || late > 11 {
					t.Errorf("served after %v, at delivery %d from five minutes on, want one of the first 11", waited, late)
				}
				break
			}
			if late > 100 {
				t.Fatal("the low one starves")
			}
		}
	})
}

// "Requeued messages break the order." They return to where they were.
func TestAskRabbitMQ6804ReturnsKeepClassAndAge(t *testing.T) {
	r := start(t)
	r.ranked("q", paidFirst)
	r.send("q", msg("p0", "plan", "paid"), msg("p1", "plan", "paid"), msg("f0"), msg("f1"))
	rec, k := r.receive("q", 3, ReceiverOptions{})
	ds := []Delivery{<-k.ds, <-k.ds, <-k.ds} // p0 p1 f0
	for _, i := range []int{2, 1, 0} {
		r.settle(rec, ds[i], Outcome{Disposition: Abandon})
	}
	rec.Close()
	wantBodies(t, "order", r.take("q"), "p0", "p1", "f0", "f1")
}

// "Priority counts only within the batch that was fetched."
func TestAskDramatiq232OrderIsDecidedAtHandOut(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("low0", "Priority", "low"), msg("low1", "Priority", "low"))
	rec, k := r.receive("q", 1, ReceiverOptions{})
	defer rec.Close()
	<-k.ds
	r.send("q", msg("high", "Priority", "high"))
	rec.SetDeliveryLimit(2)
	if got := body(t, <-k.ds); got != "high" {
		t.Errorf("next is %q, want the high one that came last", got)
	}
}

// "Nobody knows which way the numbers go, and what has none goes first."
func TestAskCelery4028HigherWinsAndUnsetIsNormal(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("one", "Priority", "1"), msg("unset"), msg("nine", "Priority", "9"), msg("normal", "Priority", "Normal"))
	wantBodies(t, "order", r.take("q"), "nine", "unset", "normal", "one")
}

// "Just give us message priority."
func TestAskAsynq579PriorityInsideOneQueue(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	var want []string
	for level := range 256 {
		r.send("q", msg(fmt.Sprint(level), "Priority", fmt.Sprint(level)))
		want = append(want, fmt.Sprint(255-level))
	}
	wantBodies(t, "all 256 levels", r.take("q"), want...)
}

// "A retry should not rejoin the tail."
func TestAskAsynq1079RetryKeepsItsPlace(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("a"), msg("b"), msg("c"))
	rec, k := r.receive("q", 1, ReceiverOptions{})
	r.settle(rec, <-k.ds, Outcome{Disposition: Abandon})
	rec.Close()
	wantBodies(t, "order", r.take("q"), "a", "b", "c")
}

// "The length limit evicts the wrong message."
func TestAskEMQX18620OverflowEvictsTheLowestOldestFirst(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"watermarks": {"depth": 3}, "classes": [
		{"name": "high", "level": 8, "when": "p = 'high'"}, {"name": "low", "level": 3, "shed": "evict"}]}`)
	r.send("q", msg("h0", "p", "high"), msg("l0"), msg("l1"))
	r.send("q", msg("h1", "p", "high"))
	wantBodies(t, "left", r.take("q"), "h0", "h1", "l1")
}

// "Priority queues forget the order after a restart, or stop delivering."
func TestAskLavinMQ434OrderSurvivesARestart(t *testing.T) {
	for _, discipline := range []string{
		`"discipline": "strict"`, `"discipline": "aging", "aging": {"every": "1h", "upTo": 9}`,
		`"discipline": "deadline"`, `"fairKey": "tenant"`,
	} {
		r := start(t)
		r.ranked("q", fmt.Sprintf(`{%s, "classes": [
			{"name": "high", "level": 8, "weight": 1000, "when": "p = 'high'", "objective": {"wait": "1s"}},
			{"name": "low", "level": 3, "objective": {"wait": "1h"}}]}`, discipline))
		r.send("q", msg("l0"), msg("h0", "p", "high"), msg("l1"))
		r = r.restart()
		r.send("q", msg("h1", "p", "high"))
		got := r.take("q")
		if !slices.Equal(got[:2], []string{"h0", "h1"}) || len(got) != 4 {
			t.Errorf("%s: after a restart %q, want the high ones first and all four", discipline, got)
		}
		r.stop()
	}
}

// "The order of queues beats the priority of jobs, or not, who knows." There is
// one rule, and explain tells it.
func TestAskSolidQueue702ExplainShowsTheRule(t *testing.T) {
	r := start(t)
	r.ranked("q", paidFirst)
	r.send("q", msg("f"), msg("p", "plan", "paid"))
	text := r.explain("q", 1).Text()
	for _, part := range []string{`class "free" takes every message`, "Ahead of it (strict): 1 of paid (level 8)"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// "Customers A and B should interleave, and there is no fixed list of customers."
func TestAskRiver1060CustomersInterleave(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"fairKey": "customer"}`)
	var flood []*message.Message
	for range 500 {
		flood = append(flood, msg("a", "customer", "a"))
	}
	for range 20 { // 10,000 of one customer
		r.send("q", flood...)
	}
	for i := range 50 { // and one each of customers that nobody has heard of
		r.send("q", msg("b", "customer", fmt.Sprint("customer ", i)))
	}
	rec, k := r.receive("q", 102, ReceiverOptions{})
	defer rec.Close()
	others := 0
	for range 102 {
		if body(t, <-k.ds) == "b" {
			others++
		}
	}
	if others != 50 {
		t.Errorf("of the first 102 deliveries %d are of the other customers, want all 50", others)
	}
}

// "Caps alone do not fix it; only fair scheduling helps in every case and stays
// work-conserving."
func TestAskTriggerDev2617FairnessWithoutIdleWorkers(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"fairKey": "tenant"}`)
	r.send("q", msg("a", "tenant", "a"), msg("a", "tenant", "a"), msg("a", "tenant", "a"))
	rec, k := r.receive("q", 2, ReceiverOptions{})
	defer rec.Close()
	<-k.ds
	<-k.ds // nobody else waits: a may use every worker
	r.send("q", msg("b", "tenant", "b"))
	rec.SetDeliveryLimit(3)
	if got := body(t, <-k.ds); got != "b" {
		t.Errorf("next is %q; a has two in flight, so it is b's turn", got)
	}
}

// "Concurrency per queue, per kind of job, in one worker."
func TestAskAsynq542CapsPerKey(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"fairKey": "kind", "keyDefaults": {"concurrency": 5}, "keys": [{"key": "report", "concurrency": 1}]}`)
	r.send("q", msg("r0", "kind", "report"), msg("r1", "kind", "report"), msg("m0", "kind", "mail"), msg("m1", "kind", "mail"))
	rec, k := r.receive("q", 4, ReceiverOptions{})
	var got []string
	var report Delivery
	for range 3 {
		d := <-k.ds
		if got = append(got, body(t, d)); d.Key == "report" {
			report = d
		}
	}
	slices.Sort(got)
	wantBodies(t, "in flight", got, "m0", "m1", "r0")
	if x := r.explain("q", 2); !strings.Contains(x.BlockedBy, "has reached its concurrency limit") {
		t.Errorf("the second report is held by %q", x.BlockedBy)
	}
	r.settle(rec, report, Outcome{Disposition: Complete})
	if got := body(t, <-k.ds); got != "r1" {
		t.Errorf("after the first report: %q, want r1", got)
	}
}

// "Finish what is started before starting more": the steps of a run that is under way
// go before runs that have not begun, at the same priority.
func TestAskHatchet4483FinishWhatIsStartedBeforeStartingMore(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"within": "finishFirst", "fairKey": "run", "classes": [{"name": "step", "level": 4}]}`)
	step := func(run, name string) *message.Message { return msg(run+name, "run", run) }
	r.send("q", step("a", "1"), step("b", "1"), step("c", "1"))
	rec, k := r.receive("q", 1, ReceiverOptions{})
	first := <-k.ds // a1 is at work, and sends its next step before it ends
	r.send("q", step("a", "2"), step("a", "3"))
	r.settle(rec, first, Outcome{Disposition: Complete})
	rec.Close()
	if text := r.explain("q", 2).Text(); !strings.Contains(text, "(strict, finishFirst inside a level): 2 of step") {
		t.Errorf("why b1 waits for a2 and a3 is not explained:\n%s", text)
	}
	r = r.restart() // which does not forget that a is under way
	wantBodies(t, "order", r.take("q"), "a2", "a3", "b1", "c1")
}

// … "and a priority for each step", where that is what is wanted.
func TestAskHatchet4483APriorityForEachStep(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"classes": [
		{"name": "closing", "level": 9, "when": "step = '3'"},
		{"name": "running", "level": 6, "when": "step = '2'"},
		{"name": "starting", "level": 3}]}`)
	r.send("q", msg("start b", "step", "1"), msg("go on a", "step", "2"), msg("close c", "step", "3"), msg("start d", "step", "1"))
	wantBodies(t, "order", r.take("q"), "close c", "go on a", "start b", "start d")
}

// "The age of the oldest", of those that can be delivered.
func TestAskBeanstalkd37AgeOfTheOldestEligible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"classes": [{"name": "all", "level": 4}]}`)
		r.send("q", msg("held"), msg("waits"))
		rec, k := r.receive("q", 1, ReceiverOptions{})
		defer rec.Close()
		held := <-k.ds
		time.Sleep(30 * time.Second)
		if _, err := r.Renew(t.Context(), "q", []queue.Token{held.Token}); err != nil {
			t.Fatal(err)
		}
		if c := r.class("q", "all"); c.Waiting != 1 || c.OldestAge < 29.9 || c.OldestAge > 30.1 {
			t.Errorf("%d wait, the oldest for %.1f s; want 1 and 30", c.Waiting, c.OldestAge)
		}
	})
}
