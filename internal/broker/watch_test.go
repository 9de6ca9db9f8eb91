// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/objective"
	"github.com/triagemq/triagemq/internal/queue"
)

// class returns the report of a class.
func (r *rig) class(addr, name string) objective.ClassReport {
	r.t.Helper()
	o, err := r.Objectives(r.t.Context(), addr)
	if err != nil {
		r.t.Fatalf("objectives of %q: %v", addr, err)
	}
	for _, c := range o.Classes {
		if c.Name == name {
			return c
		}
	}
	r.t.Fatalf("objectives of %q: no class %q in %+v", addr, name, o.Classes)
	return objective.ClassReport{}
}

func TestRateTurnsTheClassAwayAndSaysForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"classes": [
			{"name": "paid", "level": 8, "when": "plan = 'paid'"},
			{"name": "free", "level": 3, "rate": "10/s"}]}`)
		for range 10 {
			r.send("q", msg("m"))
		}
		err := r.trySend("q", msg("m"))
		refused, ok := errors.AsType[*ThrottledError](err)
		if !ok || refused.Class != "free" || !errors.Is(err, ErrBusy) {
			t.Fatalf("the eleventh: got %v, want a refusal of class free", err)
		}
		if d := refused.RetryAfter; d < 0.09 || d > 0.11 {
			t.Errorf("retry after %.3f s, want 0.1", d)
		}
		r.send("q", msg("m", "plan", "paid"))
		time.Sleep(time.Duration(refused.RetryAfter * float64(time.Second)))
		r.send("q", msg("m"))
		if c := r.class("q", "free"); c.Refused.Total != 1 || c.Arrived.Total != 11 {
			t.Errorf("counted %d refused and %d arrived, want 1 and 11", c.Refused.Total, c.Arrived.Total)
		}
	})
}

func TestWatermarkTurnsTheLowestAwayFirst(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"watermarks": {"depth": 4}, "classes": [
		{"name": "paid", "level": 8, "when": "plan = 'paid'"}, {"name": "free", "level": 3}]}`)
	r.send("q", msg("f0"), msg("f1"), msg("p0", "plan", "paid"), msg("p1", "plan", "paid"))
	if err := r.trySend("q", msg("f2")); !errors.Is(err, ErrBusy) {
		t.Errorf("free at the watermark: got %v, want %v", err, ErrBusy)
	}
	r.send("q", msg("p2", "plan", "paid"))
	r.send("q", msg("p3", "plan", "paid"))
	if err := r.trySend("q", msg("p4", "plan", "paid")); !errors.Is(err, ErrBusy) {
		t.Errorf("paid at its own watermark: got %v, want %v", err, ErrBusy)
	}
	// Settling and receiving go on.
	wantBodies(t, "q", r.take("q"), "p0", "p1", "p2", "p3", "f0", "f1")
}

func TestOverflowEvictsTheLowestClassOldestFirst(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"watermarks": {"depth": 3}, "classes": [
		{"name": "paid", "level": 8, "when": "plan = 'paid'"}, {"name": "free", "level": 3, "shed": "evict"}]}`)
	r.send("q", msg("f0"), msg("f1"), msg("f2"))
	r.send("q", msg("p0", "plan", "paid"))
	r.send("q", msg("f3"))
	if c := r.class("q", "free"); c.Evicted.Total != 2 {
		t.Errorf("%d evicted, want 2", c.Evicted.Total)
	}
	wantBodies(t, "q", r.take("q"), "p0", "f2", "f3")
}

func TestLimitOnBytesOfAClass(t *testing.T) {
	r := start(t)
	size := msg(strings.Repeat("x", 1000)).Size() + queue.MessageOverhead
	r.ranked("q", fmt.Sprintf(`{"classes": [{"name": "all", "level": 4, "bytes": %d}]}`, 2*size))
	for range 2 {
		r.send("q", msg(strings.Repeat("x", 1000)))
	}
	if err := r.trySend("q", msg("y")); !errors.Is(err, ErrBusy) {
		t.Errorf("beyond the bytes: got %v, want %v", err, ErrBusy)
	}
	r.take("q")
	r.send("q", msg("y"))
}

// A topic publishes to all or none, and evicts nothing if one of them refuses.
func TestRefusalOfOneSubscriptionEvictsFromNone(t *testing.T) {
	r := start(t)
	r.topic(entity.Topic{Name: "t"},
		entity.Subscription{Name: "a", Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 4, "limit": 1, "shed": "evict"}]}`)},
		entity.Subscription{Name: "b", Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 4, "limit": 1}]}`)})
	r.send("t", msg("first"))
	if err := r.trySend("t", msg("second")); !errors.Is(err, ErrBusy) {
		t.Fatalf("got %v, want %v", err, ErrBusy)
	}
	wantBodies(t, "a", r.take("t/Subscriptions/a"), "first")
}

// What one subscription refuses has used up no rate of another and is not counted.
func TestRefusalOfOneSubscriptionUsesNoRateOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.topic(entity.Topic{Name: "t"},
			entity.Subscription{Name: "a", Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 4, "rate": "2/m", "limit": 1, "shed": "evict"}]}`)},
			entity.Subscription{Name: "b", Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 4, "limit": 1}]}`)})
		r.send("t", msg("first"))
		for range 3 {
			if err := r.trySend("t", msg("second")); !errors.Is(err, ErrBusy) {
				t.Fatalf("got %v, want %v", err, ErrBusy)
			}
		}
		wantBodies(t, "b", r.take("t/Subscriptions/b"), "first")
		r.send("t", msg("third")) // the second in this minute
		if c := r.class("t/Subscriptions/a", "all"); c.Arrived.Total != 2 || c.Evicted.Total != 1 {
			t.Errorf("counted %d arrived and %d evicted, want 2 and 1", c.Arrived.Total, c.Evicted.Total)
		}
	})
}

// A duplicate is not stored, so nothing is evicted for it.
func TestDuplicateEvictsNothing(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", RequiresDuplicateDetection: true,
		Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 4, "limit": 2, "shed": "evict"}]}`)})
	numbered := func(id, body string) *message.Message {
		d := message.Draft{MessageID: codec.String(id), Body: []byte(body)}
		return d.Message()
	}
	r.send("q", numbered("1", "a"))
	r.send("q", numbered("2", "b"))
	r.send("q", numbered("2", "b"))
	if c := r.class("q", "all"); c.Arrived.Total != 2 || c.Evicted.Total != 0 {
		t.Errorf("counted %d arrived and %d evicted, want 2 and 0", c.Arrived.Total, c.Evicted.Total)
	}
	wantBodies(t, "q", r.take("q"), "a", "b")
}

func TestMeasurementsOfAClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"classes": [{"name": "all", "level": 4, "objective": {"wait": "10s"}}]}`)
		r.send("q", msg("a"), msg("b"))
		time.Sleep(4 * time.Second)
		rec, k := r.receive("q", 2, ReceiverOptions{})
		d := <-k.ds
		time.Sleep(2 * time.Second)
		r.settle(rec, d, Outcome{Disposition: Complete})
		c := r.class("q", "all")
		within := func(what string, got, want float64) {
			t.Helper()
			if got < want*0.96 || got > want*1.04 {
				t.Errorf("%s: got %.2f s, want %.2f", what, got, want)
			}
		}
		within("wait", c.Wait.P50, 4)
		within("service", c.Service.P50, 2)
		within("end to end", c.EndToEnd.P50, 6)
		if c.Arrived.Total != 2 || c.Completed.Total != 1 || c.Waiting != 0 {
			t.Errorf("arrived %d, completed %d, waiting %d; want 2, 1, 0", c.Arrived.Total, c.Completed.Total, c.Waiting)
		}
		if c.Objective == nil || c.Objective.State != objective.Met {
			t.Errorf("objective: %+v, want met", c.Objective)
		}
	})
}

func TestMeasurementsSurviveARestart(t *testing.T) {
	r := start(t)
	r.ranked("q", `{"classes": [{"name": "all", "level": 4}]}`)
	r.send("q", msg("a"), msg("b"))
	r.take("q")
	r.class("q", "all") // somebody looked in between
	r = r.restart()
	if c := r.class("q", "all"); c.Arrived.Total != 2 || c.Completed.Total != 2 || c.Wait.Total != 2 {
		t.Errorf("after a restart: arrived %d, completed %d, waits %d; want 2 each", c.Arrived.Total, c.Completed.Total, c.Wait.Total)
	}
}

func TestOperationsAreCounted(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q"})
	r.send("q", msg("a"), msg("b")) // one operation for the batch
	r.take("q")
	r.take("q") // a wait in vain
	if _, err := r.Peek(t.Context(), "q", 0, 10, nil); err != nil {
		t.Fatal(err)
	}
	rec, k := r.receive("q", 1, ReceiverOptions{})
	r.send("q", msg("c"))
	d := <-k.ds
	if _, err := r.Renew(t.Context(), "q", []queue.Token{d.Token}); err != nil {
		t.Fatal(err)
	}
	rec.Close()
	o, err := r.Objectives(t.Context(), "q")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, op := range o.Operations {
		got = append(got, fmt.Sprintf("%s %d", op.Operation, op.Total))
	}
	want := []string{"receive 3", "send 2", "settle 2", "renew 1", "peek 1", "emptyWait 1"}
	if !slices.Equal(got, want) {
		t.Errorf("operations %q, want %q", got, want)
	}
}

// A queue that nobody serves must not look perfect.
func TestAlertsWhenAPromiseIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		told := make(chan Alert, 10)
		r.OnAlert(func(a Alert) { told <- a })
		r.ranked("q", `{"classes": [{"name": "paid", "level": 4, "objective": {"wait": "10s"}}], "alerts": {"webhook": "https://example.com/x", "secret": "s"}}`)
		pager := entity.Subscription{Name: "pager", Rules: []entity.Rule{sql("bad", "class = 'paid' AND to = 'missed'")}}
		if _, err := r.CreateSubscription(t.Context(), catalog.AlertsTopic, pager); err != nil {
			t.Fatalf("subscribe to alerts: %v", err)
		}
		r.send("q", msg("m"))
		time.Sleep(9 * time.Second)
		if len(told) > 0 {
			t.Fatalf("told too early: %+v", <-told)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(told) == 0 {
			t.Fatal("nobody was told that nothing is started in time")
		}
		a := <-told
		if a.Entity != "q" || a.Class != "paid" || a.To != objective.Missed || a.Hook.Secret != "s" {
			t.Errorf("alert %+v", a)
		}
		_, k := r.receive("$alerts/Subscriptions/pager", 1, ReceiverOptions{})
		var onTopic Alert
		if err := json.Unmarshal([]byte(body(t, <-k.ds)), &onTopic); err != nil || onTopic.To != objective.Missed || onTopic.Why == "" {
			t.Errorf("message on the topic: %+v, %v", onTopic, err)
		}
	})
}

func TestUsersCannotMakeTheBrokersTopics(t *testing.T) {
	r := start(t)
	if _, err := r.CreateTopic(t.Context(), entity.Topic{Name: "$alerts"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want %v", err, ErrInvalid)
	}
}

func TestDemandFollowsArrivalsAndService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.ranked("q", `{"classes": [{"name": "all", "level": 4, "objective": {"wait": "10s"}}]}`)
		rec, k := r.receive("q", 1, ReceiverOptions{})
		for i := range uint64(20) { // one a second, each worked on for two
			r.send("q", msg("m"))
			time.Sleep(time.Second)
			if i == 0 {
				continue
			}
			r.settle(rec, <-k.ds, Outcome{Disposition: Complete})
			rec.SetDeliveryLimit(i + 1)
		}
		d, err := r.Demand(t.Context(), "q", DemandOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Value < 2 || d.Value > 4 || d.Value != d.Workers {
			t.Errorf("demand %+v, want about 1/s × 1..2 s and headroom", d)
		}
		if d, _ := r.Demand(t.Context(), "q", DemandOptions{Ceiling: 1}); d.Value != 1 {
			t.Errorf("with a ceiling of 1: %d", d.Value)
		}
		text, _ := json.Marshal(d)
		if !strings.HasPrefix(string(text), fmt.Sprintf(`{"value":%d,`, d.Value)) {
			t.Errorf("JSON %s, want the number under value", text)
		}
	})
}

func TestDuplicatesDoNotCountAsArrivals(t *testing.T) {
	r := start(t)
	r.queue(entity.Queue{Name: "q", RequiresDuplicateDetection: true})
	same := func() *message.Message {
		d := message.Draft{Body: []byte("m"), MessageID: codec.String("same")}
		return d.Message()
	}
	r.send("q", same(), msg("other"), same())
	r.send("q", same())
	if c := r.class("q", ""); c.Arrived.Total != 2 {
		t.Errorf("%d arrived, want 2", c.Arrived.Total)
	}
}

func TestAlertsWhenAQueueIsSaturated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		told := make(chan Alert, 10)
		r.OnAlert(func(a Alert) { told <- a })
		r.ranked("q", `{"saturation": {"oldest": "1m"}, "classes": [{"name": "all", "level": 4, "weight": 1}]}`)
		next := func() Alert {
			t.Helper()
			synctest.Wait()
			if len(told) != 1 {
				t.Fatalf("%d alerts, want one", len(told))
			}
			return <-told
		}
		r.send("q", msg("m"))
		time.Sleep(59 * time.Second)
		if len(told) > 0 {
			t.Fatalf("told too early: %+v", <-told)
		}
		time.Sleep(3 * time.Second) // nothing happens but time
		if a := next(); a.Entity != "q" || a.Subject != objective.OfSaturation || a.To != objective.AtRisk || a.Why == "" {
			t.Errorf("alert %+v", a)
		}
		r.one("q")
		time.Sleep(3 * time.Second)
		if a := next(); a.Subject != objective.OfSaturation || a.From != objective.AtRisk || a.To != objective.Met {
			t.Errorf("alert %+v", a)
		}
	})
}

// TestExpiredMessagesBreakThePromise is for B8: a message that expires before
// anybody got it is counted, dead letter or not, and was not delivered in time,
// however short its life was.
func TestExpiredMessagesBreakThePromise(t *testing.T) {
	for _, kept := range []bool{false, true} {
		for _, life := range []time.Duration{2 * time.Second, 30 * time.Second} {
			t.Run(fmt.Sprintf("dead lettering %v, life %v", kept, life), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := start(t)
					r.queue(entity.Queue{
						Name: "q", DefaultMessageTimeToLive: entity.Duration(life), DeadLetteringOnMessageExpiration: kept,
						Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 5, "objective": {"wait": "10s"}}]}`),
					})
					for range 100 {
						r.send("q", msg("m"))
					}
					time.Sleep(life + 2*time.Second)
					synctest.Wait()
					r.wantAllExpired(kept)
				})
			})
		}
	}
}

func (r *rig) wantAllExpired(kept bool) {
	t := r.t
	t.Helper()
	c := r.class("q", "all")
	if c.Waiting != 0 || c.Arrived.Total != 100 {
		t.Fatalf("%d of %d wait, want none of 100", c.Waiting, c.Arrived.Total)
	}
	if c.Objective.State != objective.Missed || c.Objective.Short.Share != 0 {
		t.Errorf("%v, %.0f %% in time, want a promise that was missed: all of it was lost", c.Objective.State, 100*c.Objective.Short.Share)
	}
	if c.Expired.Total != 100 {
		t.Errorf("%d expired, want 100", c.Expired.Total)
	}
	if dead := map[bool]uint64{true: 100}[kept]; c.DeadLettered.Total != dead {
		t.Errorf("%d died, want %d", c.DeadLettered.Total, dead)
	}
	r = r.restart()
	if again := r.class("q", "all"); again.Expired.Total != 100 || again.Objective.State != objective.Missed {
		t.Errorf("after a restart: %d expired, %v; want 100 and missed", again.Expired.Total, again.Objective.State)
	}
}

// TestExpiredAfterADeliveryKeepsThePromise: what was delivered in time and given
// back counts as expired, but the promise was kept.
func TestExpiredAfterADeliveryKeepsThePromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		r.queue(entity.Queue{
			Name: "q", DefaultMessageTimeToLive: entity.Duration(time.Minute),
			Policy: json.RawMessage(`{"classes": [{"name": "all", "level": 5, "objective": {"wait": "10s"}}]}`),
		})
		r.send("q", msg("m"))
		rec, k := r.receive("q", 1, ReceiverOptions{})
		r.settle(rec, <-k.ds, Outcome{Disposition: Abandon})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if c := r.class("q", "all"); c.Expired.Total != 1 || c.Objective.State != objective.Met {
			t.Errorf("%d expired, %v; want one, and met", c.Expired.Total, c.Objective.State)
		}
	})
}
