// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
)

// Without memory no definition is added, and none grows. What is there can be paused,
// disabled, made smaller and deleted, which frees its memory.
func TestWithoutMemoryNoDefinitionGrows(t *testing.T) {
	c := start(t)
	account := budget.New(120 << 10)
	c.ChargeDefinitions(account)
	ctx := t.Context()
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	large := entity.Queue{Name: "large", UserMetadata: strings.Repeat("m", 1024)}
	if _, err := c.CreateQueue(ctx, large); err != nil {
		t.Fatal(err)
	}
	queues := 0
	var err error
	for ; err == nil; queues++ {
		_, err = c.CreateQueue(ctx, entity.Queue{Name: fmt.Sprint("q", queues)})
	}
	if !errors.Is(err, ErrQuota) || !errors.Is(err, ErrDefinitionMemory) || !strings.Contains(err.Error(), "limits.storedMemory") {
		t.Fatalf("a queue without memory: %v", err)
	}
	if queues--; queues < 2 || len(c.Entities()) != queues+3 || account.Used() > account.Limit() {
		t.Fatalf("%d queues were created, %d entities are there, which take %d", queues, len(c.Entities()), account.Used())
	}
	used := account.Used()
	account.Charge(account.Available()) // the rest
	full := account.Used()
	metadata := strings.Repeat("m", 1024)
	refused := map[string]error{}
	_, refused["a topic"] = c.CreateTopic(ctx, entity.Topic{Name: "more", UserMetadata: metadata})
	_, refused["a subscription"] = c.CreateSubscription(ctx, "t", entity.Subscription{Name: "more"})
	_, refused["the topic of alerts"] = c.CreateSubscription(ctx, AlertsTopic, entity.Subscription{Name: "more"})
	_, refused["metadata"] = c.UpdateQueue(ctx, entity.Queue{Name: "q0", UserMetadata: metadata})
	_, refused["a policy"] = c.ReplacePolicy(ctx, "q0", []byte(`{"classes":[{"name":"a","level":9,"when":"p = 1"}]}`))
	_, refused["a rule"] = c.CreateRule(ctx, "t", "s", entity.Rule{Name: "r", Filter: entity.Filter{SQL: "a IN (1,2,3)"}})
	for what, err := range refused {
		if !errors.Is(err, ErrDefinitionMemory) {
			t.Errorf("%s: %v, want %v", what, err, ErrDefinitionMemory)
		}
	}
	if now := account.Used(); now != full {
		t.Errorf("%d bytes are charged for what was refused", now-full)
	}
	account.Release(full - used)
	for i := range queues {
		name := fmt.Sprint("q", i)
		if err := c.Pause(ctx, name, Pause{Sending: true, Receiving: true}); err != nil {
			t.Fatalf("pause: %v", err)
		}
		if _, err := c.UpdateQueue(ctx, entity.Queue{Name: name, Status: "SendDisabled"}); err != nil {
			t.Fatalf("disable: %v", err)
		}
	}
	if _, err := c.UpdateQueue(ctx, entity.Queue{Name: "large"}); err != nil {
		t.Fatalf("a definition that shrinks: %v", err)
	}
	if now := account.Used(); now >= used {
		t.Errorf("%d bytes are charged after a definition has shrunk, %d before", now, used)
	}
	for _, n := range c.Entities() {
		switch n.Kind {
		case KindQueue:
			err = c.DeleteQueue(ctx, n.Path)
		case KindTopic:
			err = c.DeleteTopic(ctx, n.Path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if now := account.Used(); now != 0 {
		t.Errorf("%d bytes are charged for nothing", now)
	}
}

// What is there when the catalog is opened is charged in any case.
func TestStoredDefinitionsAreChargedBeyondTheLimit(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	account := budget.New(10)
	c.ChargeDefinitions(account)
	if used, limit := c.DefinitionMemory(); used <= limit || limit != 10 {
		t.Errorf("%d of %d are used", used, limit)
	}
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); !errors.Is(err, ErrDefinitionMemory) {
		t.Errorf("a queue beyond the limit: %v", err)
	}
	if err := c.DeleteTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if account.Used() != 0 {
		t.Errorf("%d bytes are charged for nothing", account.Used())
	}
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Errorf("the first queue of an empty account: %v", err)
	}
}

// Who manages one topic cannot use up the memory for all definitions: others can change theirs,
// and who manages the namespace can create and change everything.
func TestOneTopicLeavesMemoryForOtherDefinitions(t *testing.T) {
	c := start(t)
	account := budget.New(2 << 20)
	c.ChargeDefinitions(account)
	c.topic(t, entity.Topic{Name: "t"})
	c.topic(t, entity.Topic{Name: "u"})
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	fill := func(topic string) (n int) {
		t.Helper()
		for ; n < 10_000; n++ {
			s := entity.Subscription{Name: fmt.Sprint("s", n), UserMetadata: strings.Repeat("m", 1024)}
			switch _, err := c.CreateSubscription(By(t.Context(), topic), topic, s); {
			case errors.Is(err, ErrDefinitionMemory):
				return n
			case err != nil:
				t.Fatal(err)
			}
		}
		t.Fatal("the memory is never full")
		return n
	}
	n, m := fill("t"), fill("u")
	if n < 2*m*3/4 || m < 20 {
		t.Errorf("%d and %d subscriptions: want half of the memory, and half of the rest", n, m)
	}
	policy := []byte(`{"classes":[{"name":"a","level":9,"when":"p = 1"},{"name":"b","level":8,"when":"p = 2"}]}`)
	if _, err := c.ReplacePolicy(By(t.Context(), "q"), "q", policy); err != nil {
		t.Errorf("a policy for another queue: %v", err)
	}
	release, err := c.BorrowMemory(By(t.Context(), "q"), c.Entity("q"), 1<<20)
	if !errors.Is(err, ErrDefinitionMemory) {
		t.Errorf("a dry run that takes all: %v", err)
		release()
	}
	account.Charge(max(account.Available()-account.Limit()/16, 0)) // many others
	if _, err := c.CreateQueue(Managing(By(t.Context(), "root")), entity.Queue{Name: "new"}); err != nil {
		t.Errorf("a queue, by who manages the namespace: %v", err)
	}
}

// Who manages the namespace can create entities when messages and groups use all memory for
// stored state.
func TestOtherStoredStateLeavesMemoryForDefinitions(t *testing.T) {
	c := start(t)
	s := budget.NewProcess(budget.Limits{Process: 64 << 20, Stored: 16 << 20}).Stored()
	c.ChargeDefinitions(s.Definitions)
	s.Messages.Charge(20 << 20)
	s.Groups.Charge(s.Groups.Limit())
	if _, err := c.CreateQueue(Managing(By(t.Context(), "root")), entity.Queue{Name: "new"}); err != nil {
		t.Errorf("a queue, by who manages the namespace: %v", err)
	}
}
