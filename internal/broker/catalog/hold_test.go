// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
)

// Who has an entity that was deleted, such as a sender, does not hold its rules and its policy.
func TestDeletedEntitiesLetGo(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{{Name: "r", Filter: entity.Filter{SQL: "a = 1"}}}})
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q", Policy: []byte(`{"classes":[{"name":"a","level":9,"when":"p = 1"}]}`)}); err != nil {
		t.Fatal(err)
	}
	topic, queue := c.Entity("t"), c.Entity("q")
	routes, classifier := weak.Make(topic.routes.Load()), weak.Make(queue.Definition().Classifier)
	if err := errors.Join(c.DeleteTopic(t.Context(), "t"), c.DeleteQueue(t.Context(), "q")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
	}
	if routes.Value() != nil {
		t.Error("the rules of a topic that was deleted are held")
	}
	if classifier.Value() != nil {
		t.Error("the policy of a queue that was deleted is held")
	}
	if topic.Definition().Topic.Name != "t" || queue.Definition().Queue.Name != "q" {
		t.Error("the names are gone")
	}
}

// What clients send is compiled one at a time: what it takes is charged only afterwards. A
// request that waits gives up with its client.
func TestOneIsCompiledAtATime(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	if _, err := c.CreateQueue(t.Context(), entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	policy := []byte(`{"classes":[{"name":"a","level":9,"when":"p = 1"}]}`)
	err := c.Compiling(t.Context(), func() error {
		waiting := map[string]error{}
		_, waiting["a policy"] = c.ReplacePolicy(ctx, "q", policy)
		_, waiting["a queue with a fault"] = c.CreateQueue(ctx, entity.Queue{Name: "/", Policy: policy})
		_, waiting["a changed queue with a fault"] = c.UpdateQueue(ctx, entity.Queue{Name: "/", Policy: policy})
		_, waiting["a subscription"] = c.CreateSubscription(ctx, "t", entity.Subscription{Name: "new", Policy: policy})
		_, waiting["a changed subscription"] = c.UpdateSubscription(ctx, "t", entity.Subscription{Name: "s", Policy: policy})
		for what, err := range waiting {
			if !errors.Is(err, gone) {
				t.Errorf("%s, while something is compiled: %v, want %v", what, err, gone)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Rules for which there is no memory are not all compiled to find that out.
func TestRulesBeyondTheMemoryAreNotCompiled(t *testing.T) {
	const limit = 1 << 20
	var rules []entity.Rule
	for i := range 200 {
		rules = append(rules, entity.Rule{Name: fmt.Sprint("r", i), Filter: entity.Filter{SQL: "a IN (" + strings.Repeat("+-+-1,", 160) + "1)"}})
	}
	d := Definition{Kind: KindSubscription, Subscription: &entity.Subscription{Name: "s", Rules: rules}}
	var full *shortError
	if err := d.deriveRules(nil, limit); !errors.As(err, &full) || full.size > 2*limit || len(d.rules) > 10 {
		t.Errorf("%d of %d rules are compiled: %v", len(d.rules), len(rules), err)
	}
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"})
	account := budget.New(limit)
	c.ChargeDefinitions(account)
	used := account.Used()
	_, err := c.CreateSubscription(t.Context(), "t", entity.Subscription{Name: "s", Rules: rules})
	if !errors.Is(err, ErrDefinitionMemory) || !strings.Contains(err.Error(), "limits.storedMemory") {
		t.Errorf("a subscription without memory: %v", err)
	}
	if account.Used() != used {
		t.Errorf("%d bytes are charged for it", account.Used()-used)
	}
}

// A topic that is changed changes all its subscriptions, and what they are charged.
func TestATopicChangesItsSubscriptions(t *testing.T) {
	c := start(t)
	account := budget.New(100 << 20)
	c.ChargeDefinitions(account)
	var subs []entity.Subscription
	for i := range 50 {
		subs = append(subs, entity.Subscription{Name: fmt.Sprint("s", i)})
	}
	c.topic(t, entity.Topic{Name: "t"}, subs...)
	if _, err := c.UpdateTopic(t.Context(), entity.Topic{Name: "t", MaxMessageSizeInKilobytes: 77}); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.SubscriptionsOf(c.Entity("t")) {
		if got := n.Definition().Properties.MaxMessageSizeInKilobytes; got != 77 {
			t.Errorf("%s takes messages of %d KiB, want 77", n.Path, got)
		}
	}
	if err := c.DeleteTopic(t.Context(), "t"); err != nil || account.Used() != 0 {
		t.Errorf("%d bytes are charged for nothing: %v", account.Used(), err)
	}
}

// What is stored can be read again by the next start.
func TestRulesThatCannotBeReadAgainAreRefused(t *testing.T) {
	c := start(t)
	c.topic(t, entity.Topic{Name: "t"}, entity.Subscription{Name: "s"})
	for _, typ := range []string{"string", "boolean", "int", "long", "double", "dateTime", "duration"} {
		for _, text := range []string{"", "0", "1", "-1", "1e308", "-1e-320", "Inf", "-Inf", "NaN", "true", "P1D", "-P1D", "PT0.0000000001S", "P99999999999D",
			"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00", "2026-01-01T00:00:00+24:00", "\x00\xff"} {
			v, err := entity.ParseValue(typ, text)
			if err != nil {
				continue
			}
			// A filter that takes everything has parameters that nobody compiles.
			r := entity.Rule{Name: "r", Filter: entity.Filter{Kind: entity.TrueFilter, Parameters: map[string]entity.Value{"p": v}}}
			if _, err := c.CreateRule(t.Context(), "t", "s", r); err != nil {
				continue
			}
			meta, err := c.Entity("t/Subscriptions/s").Definition().encode()
			if err == nil {
				_, err = decodeDefinition(meta)
			}
			if err != nil {
				t.Errorf("%s %q was stored and cannot be read: %v", typ, text, err)
			}
			if err := c.DeleteRule(t.Context(), "t", "s", "r"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
