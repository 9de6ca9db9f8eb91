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
)

// TestRulesKeepTheTimeOfTheirMaking: whatever changes a rule, and a restart too,
// leaves it, and what a caller says of it is not believed.
func TestRulesKeepTheTimeOfTheirMaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t)
		made := time.Now().UTC()
		r.topic(entity.Topic{Name: "t"}, entity.Subscription{Name: "s", Rules: []entity.Rule{sql("old", "x = '1'")}})

		time.Sleep(time.Minute)
		added := time.Now().UTC()
		rule, err := r.CreateRule(t.Context(), "t", "s", entity.Rule{Name: "new", CreatedAt: made})
		if err != nil || !rule.CreatedAt.Equal(added) {
			t.Errorf("created: %v, %v; want %v", rule.CreatedAt, err, added)
		}

		time.Sleep(time.Minute)
		rule, err = r.UpdateRule(t.Context(), "t", "s", sql("NEW", "x = '2'"))
		if err != nil || !rule.CreatedAt.Equal(added) {
			t.Errorf("updated: %v, %v; want %v", rule.CreatedAt, err, added)
		}
		s, err := r.Subscription("t", "s")
		if err != nil {
			t.Fatal(err)
		}
		s.Rules = []entity.Rule{sql("old", "x = '3'"), sql("new", "x = '2'"), sql("newest", "x = '4'")}
		if _, err := r.UpdateSubscription(t.Context(), "t", s); err != nil {
			t.Fatal(err)
		}

		r = r.restart()
		for name, want := range map[string]time.Time{"old": made, "new": added, "newest": added.Add(time.Minute)} {
			rule, err := r.Rule("t", "s", name)
			if err != nil || !rule.CreatedAt.Equal(want) {
				t.Errorf("%s: %v, %v; want %v", name, rule.CreatedAt, err, want)
			}
		}
	})
}

// deadOf returns the reasons and descriptions of the dead letters of an address.
func (r *rig) deadOf(addr string) (all []string) {
	r.t.Helper()
	ds, err := r.Peek(r.t.Context(), addr+"/$DeadLetterQueue", 0, 1000, nil)
	if err != nil {
		r.t.Fatalf("peek the dead letters of %q: %v", addr, err)
	}
	for i := range ds {
		m, err := ds[i].Message()
		if err != nil {
			r.t.Fatal(err)
		}
		reason, _ := m.Property(message.PropertyDeadLetterReason)
		description, _ := m.Property(message.PropertyDeadLetterDescription)
		all = append(all, fmt.Sprintf("%v: %v", reason, description))
	}
	return all
}

// TestFailingRulesGiveOneDeadLetter is for B7: a message is at most once among the
// dead letters of a subscription, however many of its rules cannot be evaluated,
// and the copies that other rules give are not affected.
func TestFailingRulesGiveOneDeadLetter(t *testing.T) {
	r := start(t)
	failing := func(name string) entity.Rule { return sql(name, "1 / zero = 1") }
	var many []entity.Rule
	for i := range 200 {
		many = append(many, failing(fmt.Sprint("bad", i)))
	}
	silent := false
	acting := func(name string) entity.Rule {
		rule := sql(name, "1 = 1")
		rule.Action.SQL = "SET x = 1 / zero"
		return rule
	}
	r.topic(entity.Topic{Name: "t"},
		entity.Subscription{Name: "many", Rules: many},
		entity.Subscription{Name: "mixed", Rules: []entity.Rule{failing("a"), sql("b", "1 = 1"), failing("c"), sql("d", "zero = 0")}},
		entity.Subscription{Name: "silent", Rules: many, DeadLetteringOnFilterEvaluationExceptions: &silent},
		entity.Subscription{Name: "acting", Rules: []entity.Rule{acting("a"), failing("b"), acting("c")}},
		entity.Subscription{Name: "sessions", RequiresSession: true, Rules: []entity.Rule{sql("a", "1 = 1"), shapes("b"), shapes("c"), failing("d")}},
	)
	zero := message.Draft{Body: []byte("m"), Application: []message.Pair{{Name: "zero", Value: codec.Int(0)}}}
	r.send("t", zero.Message(), zero.Message())
	for sub, want := range map[string]struct {
		active, dead int
		first        string
	}{
		"many":     {0, 2, `FilterEvaluationException: rule "bad0": cannot evaluate 1 / zero: division by zero (and 199 more)`},
		"mixed":    {2, 2, `FilterEvaluationException: rule "a": cannot evaluate 1 / zero: division by zero (and 1 more)`},
		"silent":   {0, 0, ""},
		"acting":   {0, 2, `FilterEvaluationException: action of rule "a": cannot evaluate 1 / zero: division by zero (and 2 more)`},
		"sessions": {0, 2, `Session ID is null.: (and 3 more)`},
	} {
		addr := "t/Subscriptions/" + sub
		dead := r.deadOf(addr)
		if c := r.counts(addr); c.Active != int64(want.active) || c.Dead != int64(want.dead) || len(dead) != want.dead {
			t.Errorf("%s: %d active and %d dead, want %d and %d", sub, c.Active, c.Dead, want.active, want.dead)
		}
		if want.first != "" && (len(dead) == 0 || dead[0] != want.first) {
			t.Errorf("%s: got %q, want %q", sub, dead[:min(len(dead), 1)], want.first)
		}
	}
}

// shapes is a rule that gives every message a copy of its own.
func shapes(name string) entity.Rule {
	rule := sql(name, "1 = 1")
	rule.Action.SQL = "SET seen = 'yes'"
	return rule
}

// TestDeadLettersOfOneReasonShareTheirBody is for B7: what subscriptions keep of a
// message for the same reason is stored once.
func TestDeadLettersOfOneReasonShareTheirBody(t *testing.T) {
	r := start(t)
	var subs []entity.Subscription
	for i := range 50 {
		subs = append(subs, entity.Subscription{Name: fmt.Sprint("s", i), Rules: []entity.Rule{sql("bad", "1 / zero = 1")}})
	}
	r.topic(entity.Topic{Name: "t"}, subs...)
	zero := message.Draft{Body: []byte("m"), Application: []message.Pair{{Name: "zero", Value: codec.Int(0)}}}
	r.send("t", zero.Message())
	bodies := map[uint64]bool{}
	for _, s := range subs {
		ds, err := r.Peek(t.Context(), "t/Subscriptions/"+s.Name+"/$DeadLetterQueue", 0, 10, nil)
		if err != nil || len(ds) != 1 {
			t.Fatalf("%s: %d dead letters, %v, want one", s.Name, len(ds), err)
		}
		bodies[ds[0].Body.At] = true
	}
	if len(bodies) != 1 {
		t.Errorf("%d bodies for %d dead letters, want one", len(bodies), len(subs))
	}
}
