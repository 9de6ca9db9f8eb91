// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// AlertsTopic is the topic to which the broker publishes alerts. It is created with its
// first subscription.
const AlertsTopic = "$alerts"

// CreateTopic creates a topic and returns it with its defaults filled in.
func (c *Catalog) CreateTopic(ctx context.Context, t entity.Topic) (entity.Topic, error) {
	t = t.WithDefaults()
	if err := t.Validate(); err != nil {
		return entity.Topic{}, Invalid(err)
	}
	err := c.Change(ctx, func() error {
		if err := c.checkKeys(t, nil); err != nil {
			return err
		}
		return c.createTopic(t)
	})
	return t, err
}

// createTopic creates a topic whose name is not checked. It is called within Change.
func (c *Catalog) createTopic(t entity.Topic) error {
	n := &Entity{Kind: KindTopic, Path: t.Name, Shard: c.shardFor(t.Name)}
	lost := c.withoutTopic[entity.Key(t.Name)]
	if len(lost) > 0 {
		n.Shard = lost[0].Shard // which the number of shards may not give any more
	}
	n.routes.Store(&routes{set: compiledNothing})
	if err := c.create(n, &Definition{Kind: KindTopic, Topic: &t}); err != nil || len(lost) == 0 {
		return err
	}
	return c.takeBack(n)
}

// UpdateTopic changes a topic; a change of a fixed property is an entity.UpdateError.
func (c *Catalog) UpdateTopic(ctx context.Context, t entity.Topic) (entity.Topic, error) {
	t = t.WithDefaults()
	if err := t.Validate(); err != nil {
		return entity.Topic{}, Invalid(err)
	}
	err := c.Change(ctx, func() error {
		n, err := c.kind(t.Name, KindTopic)
		if err != nil {
			return err
		}
		def := *n.Definition()
		if err := def.Topic.CheckUpdate(t); err != nil {
			return Invalid(err)
		}
		if err := c.checkKeys(t, def.Topic.AuthorizationRules); err != nil {
			return err
		}
		t.Name = def.Topic.Name
		def.Topic = &t
		if err := c.redefine(n, def); err != nil {
			return err
		}
		return c.redefineAll(c.SubscriptionsOf(n)) // some of their limits are the topic's
	})
	return t, err
}

// Topic returns the definition of a topic.
func (c *Catalog) Topic(name string) (entity.Topic, error) {
	n, err := c.kind(name, KindTopic)
	if err != nil {
		return entity.Topic{}, err
	}
	return *n.Definition().Topic, nil
}

// Topics returns the definitions of all topics, by name.
func (c *Catalog) Topics() []entity.Topic { return slices.Collect(c.AllTopics()) }

// AllTopics yields the definitions of all topics, by name.
func (c *Catalog) AllTopics() iter.Seq[entity.Topic] {
	return func(yield func(entity.Topic) bool) {
		for _, n := range c.Entities() {
			if n.Kind == KindTopic && !yield(*n.Definition().Topic) {
				return
			}
		}
	}
}

// DeleteTopic removes a topic with its subscriptions and all their messages.
func (c *Catalog) DeleteTopic(ctx context.Context, name string) error {
	return c.Change(ctx, func() error {
		n, err := c.kind(name, KindTopic)
		if err != nil {
			return err
		}
		return c.remove(append([]*Entity{n}, c.SubscriptionsOf(n)...)...)
	})
}

// SubscriptionsOf returns the subscriptions of a topic, by name.
func (c *Catalog) SubscriptionsOf(topic *Entity) []*Entity {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(topic.subs)
}

// CreateSubscription creates a subscription with its rules: those of s, or one that
// matches every message.
func (c *Catalog) CreateSubscription(ctx context.Context, topic string, s entity.Subscription) (entity.Subscription, error) {
	s = s.WithDefaults()
	if err := c.Compiling(ctx, func() error { return checkSubscription(s) }); err != nil {
		return entity.Subscription{}, err
	}
	s.Policy = compact(s.Policy)
	s.Rules, s.DefaultRule = slices.Clone(s.InitialRules()), nil
	date(s.Rules, nil)
	if err := c.Compiling(ctx, func() error { return checkRules(s.Rules) }); err != nil {
		return entity.Subscription{}, err
	}
	err := c.Change(ctx, func() error {
		if err := c.ensureSystemTopic(topic); err != nil {
			return err
		}
		t, err := c.kind(topic, KindTopic)
		if err != nil {
			return err
		}
		if err := c.checkForwards(t.Path, "", s.ForwardTo); err != nil {
			return err
		}
		if err := c.checkTarget("", s.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		if len(c.SubscriptionsOf(t)) >= limits.Subscriptions {
			return fmt.Errorf("%w: topic %q has %d subscriptions, which is the most it can have", ErrQuota, t.Path, limits.Subscriptions)
		}
		if err := c.checkActions(t, nil, s.Rules); err != nil {
			return err
		}
		n := &Entity{
			Kind: KindSubscription, Path: entity.SubscriptionPath(t.Path, s.Name),
			Shard: t.Shard, Topic: t,
		}
		if err := c.create(n, &Definition{Kind: KindSubscription, Subscription: &s}); err != nil {
			return err
		}
		c.reroute(t)
		return nil
	})
	return s, err
}

// UpdateSubscription changes a subscription; without Rules they stay as they are, and so
// does its policy without one.
func (c *Catalog) UpdateSubscription(ctx context.Context, topic string, s entity.Subscription) (entity.Subscription, error) {
	s = s.WithDefaults()
	if err := c.Compiling(ctx, func() error {
		if err := checkSubscription(s); err != nil {
			return err
		}
		return checkRules(s.Rules)
	}); err != nil {
		return entity.Subscription{}, err
	}
	err := c.Change(ctx, func() error {
		n, err := c.subscription(topic, s.Name)
		if err != nil {
			return err
		}
		def := *n.Definition()
		if err := def.Subscription.CheckUpdate(s); err != nil {
			return Invalid(err)
		}
		if err := c.checkForwards(n.Topic.Path, def.Subscription.ForwardTo, s.ForwardTo); err != nil {
			return err
		}
		if err := c.checkTarget(def.Subscription.ForwardDeadLetteredMessagesTo, s.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		s.Name = def.Subscription.Name
		if s.Rules == nil {
			s.Rules = def.Subscription.Rules
		}
		if err := c.checkActions(n.Topic, n, s.Rules); err != nil {
			return err
		}
		s.Rules = slices.Clone(s.Rules)
		date(s.Rules, def.Subscription.Rules)
		s.DefaultRule = nil
		s.Policy = replaced(def.Subscription.Policy, s.Policy)
		def.Subscription = &s
		if err := c.redefine(n, def); err != nil {
			return err
		}
		c.reroute(n.Topic)
		return nil
	})
	return s, err
}

// Subscription returns the definition of a subscription, with its rules.
func (c *Catalog) Subscription(topic, name string) (entity.Subscription, error) {
	n, err := c.subscription(topic, name)
	if err != nil {
		return entity.Subscription{}, err
	}
	return *n.Definition().Subscription, nil
}

// Subscriptions returns the definitions of a topic's subscriptions, by name.
func (c *Catalog) Subscriptions(topic string) ([]entity.Subscription, error) {
	all, err := c.AllSubscriptions(topic)
	return slices.Collect(all), err
}

// AllSubscriptions yields the definitions of a topic's subscriptions, by name; none with an error.
func (c *Catalog) AllSubscriptions(topic string) (iter.Seq[entity.Subscription], error) {
	t, err := c.kind(topic, KindTopic)
	return func(yield func(entity.Subscription) bool) {
		if err != nil {
			return
		}
		for _, n := range c.SubscriptionsOf(t) {
			if !yield(*n.Definition().Subscription) {
				return
			}
		}
	}, err
}

// DeleteSubscription removes a subscription with all its messages.
func (c *Catalog) DeleteSubscription(ctx context.Context, topic, name string) error {
	return c.Change(ctx, func() error {
		n, err := c.subscription(topic, name)
		if err != nil {
			return err
		}
		// Until the rules are compiled again, publishers still choose the subscription; the
		// shard ignores their copies.
		if err := c.remove(n); err != nil {
			return err
		}
		c.reroute(n.Topic)
		return nil
	})
}

func (c *Catalog) subscription(topic, name string) (*Entity, error) {
	if _, err := c.kind(topic, KindTopic); err != nil {
		return nil, err
	}
	return c.kind(entity.SubscriptionPath(topic, name), KindSubscription)
}

// ensureSystemTopic creates the topics of the broker itself when they are first needed. It
// is called within Change.
func (c *Catalog) ensureSystemTopic(topic string) error {
	if entity.Key(topic) != AlertsTopic || c.Entity(topic) != nil {
		return nil
	}
	return c.createTopic(entity.Topic{Name: AlertsTopic}.WithDefaults())
}
