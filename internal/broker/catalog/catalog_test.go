// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/vfs"
)

// nobody follows changes of entities.
type nobody struct{}

func (nobody) Changed(*Entity) {}
func (nobody) Removed(*Entity) {}

type testCatalog struct{ *Catalog }

// start runs a catalog on one shard until the test ends.
func start(t testing.TB) testCatalog { return startWith(t, nil) }

// startWith is start for a catalog that can have event hubs.
func startWith(t testing.TB, logs Logs) testCatalog {
	t.Helper()
	w, err := wal.Open(vfs.NewMem(), wal.Options{SegmentSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := queueserver.Open(t.Context(), w, 0, queueserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open([]*queueserver.Shard{s}, logs, s.Clock(), slog.New(slog.DiscardHandler), nobody{})
	if err != nil {
		t.Fatal(err)
	}
	upper, stopUpper := context.WithCancel(context.WithoutCancel(t.Context()))
	lower, stopLower := context.WithCancel(context.WithoutCancel(t.Context()))
	var up, low sync.WaitGroup
	up.Go(func() { s.Run(upper) })
	low.Go(func() { w.Run(lower) })
	t.Cleanup(func() {
		stopUpper()
		up.Wait()
		stopLower()
		low.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return testCatalog{c}
}

func (c testCatalog) topic(t testing.TB, top entity.Topic, subs ...entity.Subscription) {
	t.Helper()
	if _, err := c.CreateTopic(t.Context(), top); err != nil {
		t.Fatal(err)
	}
	for _, s := range subs {
		if _, err := c.CreateSubscription(t.Context(), top.Name, s); err != nil {
			t.Fatal(err)
		}
	}
}

// send sends one message and waits until it is durable.
func (c testCatalog) send(t testing.TB, to *Entity, m *message.Message) {
	t.Helper()
	sent := make(chan error, 1)
	c.Send(to, []*message.Message{m}, SendOptions{}, func(_ []queue.SeqNo, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// Copies beyond one of each message take memory until they are durable. What messages take is
// charged before they are taken apart.
func TestCopiesAreChargedUntilDurable(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "a"}, entity.Subscription{Name: "b"}, entity.Subscription{Name: "c"})
	c.topic(t, entity.Topic{Name: "one"}, entity.Subscription{Name: "a"})
	for _, x := range []struct {
		to       string
		messages int
		want     int64
	}{
		{"one", 1, 0}, {"t", 1, 2 * copyCost}, {"one", 10, 0}, {"t", 10, 20 * copyCost},
	} {
		account := budget.New(1) // it is charged beyond its limit
		batch := make([]*message.Message, x.messages)
		for i := range batch {
			batch[i] = withProperty("x", "a")
		}
		sent := make(chan error, 1)
		done := func(_ []queue.SeqNo, err error) { sent <- err }
		p := c.newSend(batch, done)
		p.o.Unsynced, p.out.source = account, len(batch)
		for i := range batch {
			c.route(c.Entity(x.to), p, i, time.Now(), &p.o)
		}
		p.takeCharge()
		during := account.Used()
		p.answer(nil, nil)
		if err := <-sent; err != nil || during != x.want || account.Used() != 0 {
			t.Errorf("%d messages to %s: charged %d, later %d, want %d and 0; %v", x.messages, x.to, during, account.Used(), x.want, err)
		}
		c.Send(c.Entity(x.to), batch, SendOptions{Unsynced: account}, done)
		if err := <-sent; err != nil || account.Used() != 0 {
			t.Errorf("%d messages to %s: %d bytes stay charged; %v", x.messages, x.to, account.Used(), err)
		}
	}
}

func sql(name, text string) entity.Rule {
	return entity.Rule{Name: name, Filter: entity.Filter{Kind: entity.SQLFilter, SQL: text}}
}

func withProperty(name, value string) *message.Message {
	d := message.Draft{Application: []message.Pair{{Name: name, Value: codec.String(value)}}}
	return d.Message()
}

// B2: a publisher that chose the subscriptions just before one of them was deleted.
func TestSubscriptionDeletedBetweenRoutingAndStoring(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "goes"}, entity.Subscription{Name: "stays"})
	topic := c.Entity("t")
	chosen := topic.routes.Load()
	if err := c.DeleteSubscription(t.Context(), "t", "goes"); err != nil {
		t.Fatal(err)
	}
	topic.routes.Store(chosen)
	c.send(t, topic, withProperty("x", "a"))
	c.send(t, topic, withProperty("x", "b"))
	stays := c.Entity("t/Subscriptions/stays")
	got, err := queueserver.Do(t.Context(), stays.Shard, queueserver.Inspect{ID: stays.ID})
	if err != nil || got.Counts[queueserver.Main].Ready != 2 {
		t.Errorf("the other subscription has %+v, %v; want two messages", got.Counts[queueserver.Main], err)
	}
}

func TestNumberOfEntitiesIsBounded(t *testing.T) {
	c := &Catalog{count: map[Kind]int{KindQueue: limits.Entities - 1, KindTopic: 1, KindSubscription: 1000}}
	if err := c.checkEntities(0); !errors.Is(err, ErrQuota) {
		t.Errorf("one queue more than there may be: %v, want %v", err, ErrQuota)
	}
	c.count[KindQueue]--
	if err := c.checkEntities(0); err != nil {
		t.Errorf("one queue less: %v, want nil", err)
	}
	if err := c.checkEntities(1); !errors.Is(err, ErrQuota) {
		t.Errorf("beside another one: %v, want %v", err, ErrQuota)
	}
}

// Issue 10: a batch is refused if the rules of the topic take too long for it; a single
// message is not.
func TestStepsOfABatchAreBounded(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{sql("r", "x LIKE '%y%' OR z LIKE 'a%'")}})
	p := c.newSend([]*message.Message{withProperty("x", "y")}, func([]queue.SeqNo, error) {})
	c.route(c.Entity("t"), p, 0, time.Now(), &SendOptions{})
	if p.out.steps == 0 {
		t.Error("the steps of rules are not counted")
	}
	for source, want := range map[int]error{1: nil, 2: limits.ErrExceeded} {
		f := fanOut{source: source, steps: limits.BatchSteps + 1}
		if err := f.check(1); !errors.Is(err, want) {
			t.Errorf("%d messages: %v, want %v", source, err, want)
		}
	}
}

// A change of one rule does not read the others again: with two thousand of them, each
// change took the processor for a tenth of a second, at the request of a Listen key.
func TestRulesThatStayAreNotCompiledAgain(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"},
		entity.Subscription{Name: "s", Rules: []entity.Rule{sql("a", "x = 1"), sql("b", "x = 2"), sql("c", "x = 3")}},
		entity.Subscription{Name: "other", Rules: []entity.Rule{sql("a", "x = 4")}})
	compiled := func() map[string]filter.Filter {
		all := map[string]filter.Filter{}
		rt := c.Entity("t").routes.Load()
		for _, ro := range rt.rules {
			all[rt.subs[ro.sub].Path+" "+ro.name] = ro.filter
		}
		return all
	}
	before := compiled()
	check := func(what string, changed ...string) {
		t.Helper()
		now := compiled()
		for name, f := range now {
			if was, ok := before[name]; ok && (was != f) != slices.Contains(changed, name) {
				t.Errorf("%s: %s was compiled again: %v", what, name, was != f)
			}
		}
		before = now
	}
	const s = "t/Subscriptions/s "
	if _, err := c.CreateRule(t.Context(), "t", "s", sql("d", "x = 5")); err != nil {
		t.Fatal(err)
	}
	check("create")
	if _, err := c.UpdateRule(t.Context(), "t", "s", sql("b", "x = 6")); err != nil {
		t.Fatal(err)
	}
	check("update", s+"b")
	if err := c.DeleteRule(t.Context(), "t", "s", "a"); err != nil {
		t.Fatal(err)
	}
	check("delete")
	if len(before) != 4 {
		t.Errorf("there are %d rules", len(before))
	}
	if err := c.DeleteRule(t.Context(), "t", "s", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateRule(t.Context(), "t", "s", sql("a", "x = 7")); err != nil {
		t.Fatal(err)
	}
	check("delete and create")
	if _, err := c.CreateRule(t.Context(), "t", "s", sql("bad", "x = ")); !errors.Is(err, ErrInvalid) {
		t.Errorf("a rule that makes no sense: %v", err)
	}
}

// BenchmarkRoute is what routing one message takes on its own, to one of a hundred
// subscriptions.
func BenchmarkRoute(b *testing.B) {
	const subscriptions = 100
	c := start(b)
	d := message.Draft{
		Subject: "order.created",
		Application: []message.Pair{
			{Name: "Priority", Value: codec.String("High")},
			{Name: "region", Value: codec.String(fmt.Sprint("region-", subscriptions-1))},
			{Name: "amount", Value: codec.Int(10 * subscriptions)},
		},
		Body: make([]byte, 256),
	}
	m, now := d.Message(), time.Now()
	for name, text := range map[string]func(i int) string{
		"equality": func(i int) string { return fmt.Sprintf("region = 'region-%d' AND amount > 10", i) },
		"range":    func(i int) string { return fmt.Sprintf("amount > %d AND amount <= %d", 10*i, 10*i+10) },
	} {
		c.topic(b, entity.Topic{Name: name})
		for i := range subscriptions {
			s := entity.Subscription{Name: fmt.Sprint("s", i), Rules: []entity.Rule{sql("r", text(i))}}
			if _, err := c.CreateSubscription(b.Context(), name, s); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			topic := c.Entity(name)
			send := sendRequest{Send: queueserver.Send{Bodies: []*message.Message{m}}}
			b.ReportAllocs()
			for b.Loop() {
				send.Copies = send.Copies[:0]
				c.route(topic, &send, 0, now, &SendOptions{})
				if len(send.Copies) != 1 {
					b.Fatalf("%d copies, want one", len(send.Copies))
				}
			}
		})
	}
}

// Queues that are created together are created, or refused, one by one.
func TestQueuesAreCreatedTogether(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "taken"})
	var qs []entity.Queue
	for i := range 2500 {
		qs = append(qs, entity.Queue{Name: fmt.Sprint("q", i)})
	}
	qs[7].Name, qs[8].Name, qs[9].ForwardTo, qs[10].Name = "Taken", "q6", "q5", ""
	want := map[int]error{7: ErrExists, 8: ErrExists, 9: ErrInvalid, 10: ErrInvalid}
	for i, err := range c.CreateQueues(t.Context(), qs) {
		if !errors.Is(err, want[i]) || want[i] == nil && err != nil {
			t.Errorf("queue %d: %v, want %v", i, err, want[i])
		}
	}
	if n := c.Count(KindQueue); n != 2496 || len(c.Queues()) != n {
		t.Errorf("there are %d queues, %d in the list", n, len(c.Queues()))
	}
	if q, err := c.Queue("q2499"); err != nil || q.MaxDeliveryCount != 10 {
		t.Errorf("the last queue is %+v, %v", q, err)
	}
	if err := c.DeleteQueue(t.Context(), "q0"); err != nil || c.Count(KindQueue) != 2495 || len(c.Queues()) != 2495 {
		t.Errorf("after a deletion there are %d queues (%v)", c.Count(KindQueue), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range c.CreateQueues(Guard(ctx, ctx.Err), []entity.Queue{{Name: "late"}, {Name: "later"}}) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("queue %d after the end: %v", i, err)
		}
	}
}
