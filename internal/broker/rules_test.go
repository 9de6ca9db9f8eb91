// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
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
