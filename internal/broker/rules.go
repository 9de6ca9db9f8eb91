// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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
		if _, _, err := compileRule(r); err != nil {
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
		return check(RuleFaults(r))
	}
	if _, _, err := compileRule(r); err != nil {
		return fmt.Errorf("rule %q: %w", r.Name, err)
	}
	return nil
}

// checkActions refuses rules of a subscription, which may be new, if the topic would
// have more rules with actions than it may: each makes a copy of every message that it
// takes. Fewer than before are fine in any case. It is called within change.
func (b *Broker) checkActions(topic, sub *node, rules []entity.Rule) error {
	next := actions(rules)
	total := next
	for _, n := range b.subscriptions(topic) {
		if n != sub {
			total += actions(n.def.Load().Subscription.Rules)
		} else if next <= actions(n.def.Load().Subscription.Rules) {
			return nil
		}
	}
	if next > 0 && total > limits.RuleActions {
		return fmt.Errorf("%w: %d rules with actions, topic %q can have %d", ErrQuota, total, topic.path, limits.RuleActions)
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
func (b *Broker) CreateRule(ctx context.Context, topic, sub string, r entity.Rule) (entity.Rule, error) {
	r = r.WithDefaults()
	if err := checkRule(r); err != nil {
		return entity.Rule{}, err
	}
	err := b.changeRules(ctx, topic, sub, r.Name, func(rules []entity.Rule, i int) ([]entity.Rule, error) {
		if i >= 0 {
			return nil, fmt.Errorf("%w: rule %q", ErrExists, r.Name)
		}
		r.CreatedAt = b.clock.Now().UTC()
		return append(rules, r), nil
	})
	return r, err
}

// UpdateRule replaces a rule.
func (b *Broker) UpdateRule(ctx context.Context, topic, sub string, r entity.Rule) (entity.Rule, error) {
	r = r.WithDefaults()
	if err := checkRule(r); err != nil {
		return entity.Rule{}, err
	}
	err := b.changeRules(ctx, topic, sub, r.Name, func(rules []entity.Rule, i int) ([]entity.Rule, error) {
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
func (b *Broker) Rule(topic, sub, name string) (entity.Rule, error) {
	n, err := b.subscription(topic, sub)
	if err != nil {
		return entity.Rule{}, err
	}
	rules := n.def.Load().Subscription.Rules
	i := ruleIndex(rules, name)
	if i < 0 {
		return entity.Rule{}, fmt.Errorf("%w: rule %q", ErrNotFound, name)
	}
	return rules[i], nil
}

// Rules returns the rules of a subscription by name.
func (b *Broker) Rules(topic, sub string) ([]entity.Rule, error) {
	n, err := b.subscription(topic, sub)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(slices.Values(n.def.Load().Subscription.Rules), func(a, b entity.Rule) int {
		return strings.Compare(entity.Key(a.Name), entity.Key(b.Name))
	}), nil
}

// DeleteRule removes a rule from a subscription.
func (b *Broker) DeleteRule(ctx context.Context, topic, sub, name string) error {
	return b.changeRules(ctx, topic, sub, name, func(rules []entity.Rule, i int) ([]entity.Rule, error) {
		if i < 0 {
			return nil, fmt.Errorf("%w: rule %q", ErrNotFound, name)
		}
		return slices.Delete(rules, i, i+1), nil
	})
}

// changeRules gives fn a copy of the rules and the place of the one named, and
// makes what it returns effective. What is new among them has been checked.
func (b *Broker) changeRules(ctx context.Context, topic, sub, name string, fn func([]entity.Rule, int) ([]entity.Rule, error)) error {
	return b.change(ctx, func() error {
		n, err := b.subscription(topic, sub)
		if err != nil {
			return err
		}
		def := *n.def.Load()
		s := *def.Subscription
		s.Rules, err = fn(slices.Clone(s.Rules), ruleIndex(s.Rules, name))
		if err != nil {
			return err
		}
		if err := checkRuleCount(s.Rules); err != nil {
			return err
		}
		if err := b.checkActions(n.topic, n, s.Rules); err != nil {
			return err
		}
		def.Subscription = &s
		if err := b.redefine(n, def); err != nil {
			return err
		}
		return b.reroute(n.topic)
	})
}

// date gives each rule the time at which it was made: that of the rule of its
// name among those before, or now.
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

// Trial says what one rule would do with a message.
type Trial struct {
	Subscription string `json:"subscription"`
	Rule         string `json:"rule"`
	Matched      bool   `json:"matched"`
	Why          string `json:"why"`
}

// TryRules says which subscriptions of a topic would take a message, and why.
func (b *Broker) TryRules(ctx context.Context, topic string, m *message.Message) ([]Trial, error) {
	t, err := b.kind(topic, KindTopic)
	if err != nil {
		return nil, err
	}
	view := &filter.Envelope{Message: m, IDs: newID}
	view.BrokerProperties.EnqueuedTime = b.clock.Now()
	var trials []Trial
	for _, n := range b.subscriptions(t) {
		s := n.def.Load().Subscription
		for _, r := range s.Rules {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			f, _, err := compileRule(r)
			if err != nil {
				return nil, err
			}
			matched, err := f.Match(view)
			why := f.Explain(view).String()
			if err != nil {
				why = Text(err)
			}
			trials = append(trials, Trial{Subscription: s.Name, Rule: r.Name, Matched: matched, Why: why})
		}
	}
	return trials, nil
}
