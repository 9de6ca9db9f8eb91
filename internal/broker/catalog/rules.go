// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog/errtext"
	"github.com/triagemq/triagemq/internal/broker/catalog/validate"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/filter"
	"github.com/triagemq/triagemq/internal/limits"
	"github.com/triagemq/triagemq/internal/message"
)

var compiledNothing = filter.Compile(nil)

// checkRules compiles rules and reports every one that is wrong.
func checkRules(rules []entity.Rule) error {
	if err := checkRuleCount(rules); err != nil {
		return err
	}
	var errs []error
	for _, r := range rules {
		if err := checkNewRule(r); err != nil {
			errs = append(errs, fmt.Errorf("rule %q: %w", r.Name, err))
		}
	}
	return errors.Join(errs...)
}

func checkRuleCount(rules []entity.Rule) error {
	if len(rules) > limits.Rules {
		return fmt.Errorf("%w: %d rules, a subscription can have %d", ErrQuota, len(rules), limits.Rules)
	}
	return nil
}

// checkRule reports what is wrong with one rule.
func checkRule(r entity.Rule) error {
	if r.Validate() != nil {
		return check(validate.Rule(r))
	}
	if err := checkNewRule(r); err != nil {
		return fmt.Errorf("rule %q: %w", r.Name, err)
	}
	return nil
}

// checkNewRule compiles a rule that is not stored yet.
func checkNewRule(r entity.Rule) error {
	if _, _, err := compileRule(r); err != nil || r.Action.SQL == "" {
		return err
	}
	_, err := validate.NewAction(r.Action)
	return Invalid(err)
}

// checkSubscription reports every fault of a subscription if there are several kinds of
// them. Rules and policies have errors of their own for what is wrong with them alone.
func checkSubscription(s entity.Subscription) error {
	if s.Validate() != nil || checkRules(s.InitialRules()) != nil && len(validate.Policy(s.Policy)) > 0 {
		return check(validate.Subscription(s))
	}
	return nil
}

// check returns the faults of a definition as an error, nil if there is none.
func check(fs entity.Faults) error {
	if len(fs) == 0 {
		return nil
	}
	return Invalid(fs)
}

// checkActions rejects rules of a subscription, which may be new, if the topic would
// exceed its limit of rules with actions: each makes a copy of every message that it
// matches. Fewer than before are accepted in any case. It is called within Change.
func (c *Catalog) checkActions(topic, sub *Entity, rules []entity.Rule) error {
	next := actions(rules)
	total := next
	for _, n := range c.SubscriptionsOf(topic) {
		if n != sub {
			total += actions(n.Definition().Subscription.Rules)
		} else if next <= actions(n.Definition().Subscription.Rules) {
			return nil
		}
	}
	if next > 0 && total > limits.RuleActions {
		return fmt.Errorf("%w: %d rules with actions, topic %q can have %d", ErrQuota, total, topic.Path, limits.RuleActions)
	}
	return nil
}

// actions counts the rules with actions.
func actions(rules []entity.Rule) (n int) {
	for i := range rules {
		if rules[i].Action.SQL != "" {
			n++
		}
	}
	return n
}

// CreateRule adds a rule to a subscription, effective for the next message.
func (c *Catalog) CreateRule(ctx context.Context, topic, sub string, r entity.Rule) (entity.Rule, error) {
	r = r.WithDefaults()
	if err := checkRule(r); err != nil {
		return entity.Rule{}, err
	}
	err := c.changeRules(ctx, topic, sub, r.Name, func(rules []entity.Rule, i int) ([]entity.Rule, error) {
		if i >= 0 {
			return nil, fmt.Errorf("%w: rule %q", ErrExists, r.Name)
		}
		r.CreatedAt = c.clock.Now().UTC()
		return append(rules, r), nil
	})
	return r, err
}

// UpdateRule replaces a rule.
func (c *Catalog) UpdateRule(ctx context.Context, topic, sub string, r entity.Rule) (entity.Rule, error) {
	r = r.WithDefaults()
	if err := checkRule(r); err != nil {
		return entity.Rule{}, err
	}
	err := c.changeRules(ctx, topic, sub, r.Name, func(rules []entity.Rule, i int) ([]entity.Rule, error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: rule %q", ErrNotFound, r.Name)
		}
		r.CreatedAt = rules[i].CreatedAt
		rules[i] = r
		return rules, nil
	})
	return r, err
}

// Rule returns one rule of a subscription.
func (c *Catalog) Rule(topic, sub, name string) (entity.Rule, error) {
	n, err := c.subscription(topic, sub)
	if err != nil {
		return entity.Rule{}, err
	}
	rules := n.Definition().Subscription.Rules
	i := ruleIndex(rules, name)
	if i < 0 {
		return entity.Rule{}, fmt.Errorf("%w: rule %q", ErrNotFound, name)
	}
	return rules[i], nil
}

// Rules returns the rules of a subscription by name.
func (c *Catalog) Rules(topic, sub string) ([]entity.Rule, error) {
	n, err := c.subscription(topic, sub)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(slices.Values(n.Definition().Subscription.Rules), func(a, b entity.Rule) int {
		return strings.Compare(entity.Key(a.Name), entity.Key(b.Name))
	}), nil
}

// DeleteRule removes a rule from a subscription.
func (c *Catalog) DeleteRule(ctx context.Context, topic, sub, name string) error {
	return c.changeRules(ctx, topic, sub, name, func(rules []entity.Rule, i int) ([]entity.Rule, error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: rule %q", ErrNotFound, name)
		}
		return slices.Delete(rules, i, i+1), nil
	})
}

// changeRules calls fn with a copy of the rules and the index of the named one, and makes
// the result effective. New rules have been checked.
func (c *Catalog) changeRules(ctx context.Context, topic, sub, name string, fn func([]entity.Rule, int) ([]entity.Rule, error)) error {
	return c.Change(ctx, func() error {
		n, err := c.subscription(topic, sub)
		if err != nil {
			return err
		}
		def := *n.Definition()
		s := *def.Subscription
		s.Rules, err = fn(slices.Clone(s.Rules), ruleIndex(s.Rules, name))
		if err != nil {
			return err
		}
		if err := checkRuleCount(s.Rules); err != nil {
			return err
		}
		if err := c.checkActions(n.Topic, n, s.Rules); err != nil {
			return err
		}
		def.Subscription = &s
		if err := c.redefine(n, def); err != nil {
			return err
		}
		c.reroute(n.Topic)
		return nil
	})
}

// date sets the creation time of each rule: that of the rule of its name among those
// before, or now.
func date(rules, before []entity.Rule) {
	now := time.Now().UTC()
	for i := range rules {
		rules[i].CreatedAt = now
		if was := ruleIndex(before, rules[i].Name); was >= 0 {
			rules[i].CreatedAt = before[was].CreatedAt
		}
	}
}

func ruleIndex(rules []entity.Rule, name string) int {
	name = entity.Key(name)
	return slices.IndexFunc(rules, func(r entity.Rule) bool { return entity.Key(r.Name) == name })
}

// RuleMatch is the result of one rule for a message.
type RuleMatch struct {
	Subscription string `json:"subscription"`
	Rule         string `json:"rule"`
	Matched      bool   `json:"matched"`
	Why          string `json:"why"`
}

// MatchRules returns which rules of a topic match a message, and why, one after the other: a
// topic has up to four million, and a reason repeats what the message has. It ends with ctx.
//
// Between two of them only the names of the subscriptions are kept: the caller may be slow, and is
// not to hold rules that were replaced meanwhile. What changes meanwhile may be left out.
func (c *Catalog) MatchRules(ctx context.Context, topic string, m *message.Message) (iter.Seq[RuleMatch], error) {
	subs, err := c.AllSubscriptions(topic)
	if err != nil {
		return nil, err
	}
	var paths []string
	for s := range subs {
		paths = append(paths, entity.SubscriptionPath(topic, s.Name))
	}
	view := &filter.Envelope{Message: m, IDs: newID}
	view.BrokerProperties.EnqueuedTime = c.clock.Now()
	return func(yield func(RuleMatch) bool) {
		for _, path := range paths {
			for i := 0; ; i++ {
				match, ok := c.matchRule(view, path, i)
				if !ok {
					break // it has no more
				}
				if ctx.Err() != nil || !yield(match) {
					return
				}
			}
		}
	}, nil
}

// matchRule returns the result of a rule of a subscription, by its place.
func (c *Catalog) matchRule(view *filter.Envelope, path string, i int) (t RuleMatch, ok bool) {
	n, err := c.kind(path, KindSubscription)
	if err != nil {
		return t, false
	}
	def := n.Definition()
	if i >= len(def.rules) {
		return t, false
	}
	r := &def.rules[i]
	t.Subscription, t.Rule = def.Subscription.Name, r.from.Name
	if t.Matched, err = r.filter.Match(view); err != nil {
		t.Why = errtext.Text(err)
	} else {
		t.Why = r.filter.Explain(view).String()
	}
	return t, true
}
