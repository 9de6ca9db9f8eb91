// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"fmt"
	"slices"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// CreateTopic makes a topic and returns it with its defaults filled in.
func (b *Broker) CreateTopic(ctx context.Context, t entity.Topic) (entity.Topic, error) {
	t = t.WithDefaults()
	if err := t.Validate(); err != nil {
		return entity.Topic{}, invalid(err)
	}
	err := b.change(ctx, func() error {
		if err := b.checkKeys(t, nil); err != nil {
			return err
		}
		return b.createTopic(t)
	})
	return t, err
}

// createTopic makes a topic whose name is not looked at. It is called within
// change.
func (b *Broker) createTopic(t entity.Topic) error {
	n := &node{kind: KindTopic, path: t.Name, shard: b.home(t.Name)}
	n.routes.Store(&routes{set: compiledNothing})
	return b.create(n, &definition{Kind: KindTopic, Topic: &t})
}

// UpdateTopic changes a topic; what may not change is an entity.UpdateError.
func (b *Broker) UpdateTopic(ctx context.Context, t entity.Topic) (entity.Topic, error) {
	t = t.WithDefaults()
	if err := t.Validate(); err != nil {
		return entity.Topic{}, invalid(err)
	}
	err := b.change(ctx, func() error {
		n, err := b.kind(t.Name, KindTopic)
		if err != nil {
			return err
		}
		def := *n.def.Load()
		if err := def.Topic.CheckUpdate(t); err != nil {
			return invalid(err)
		}
		if err := b.checkKeys(t, def.Topic.AuthorizationRules); err != nil {
			return err
		}
		t.Name = def.Topic.Name
		def.Topic = &t
		if err := b.redefine(n, def); err != nil {
			return err
		}
		for _, sub := range b.subscriptions(n) { // some of their limits are the topic's
			if err := b.redefine(sub, *sub.def.Load()); err != nil {
				return err
			}
		}
		return nil
	})
	return t, err
}

// Topic returns the definition of a topic.
func (b *Broker) Topic(name string) (entity.Topic, error) {
	n, err := b.kind(name, KindTopic)
	if err != nil {
		return entity.Topic{}, err
	}
	return *n.def.Load().Topic, nil
}

// Topics returns the definitions of all topics, by name.
func (b *Broker) Topics() []entity.Topic {
	var ts []entity.Topic
	for _, n := range b.sorted() {
		if n.kind == KindTopic {
			ts = append(ts, *n.def.Load().Topic)
		}
	}
	return ts
}

// DeleteTopic removes a topic with its subscriptions and all their messages.
func (b *Broker) DeleteTopic(ctx context.Context, name string) error {
	return b.change(ctx, func() error {
		n, err := b.kind(name, KindTopic)
		if err != nil {
			return err
		}
		return b.remove(append([]*node{n}, b.subscriptions(n)...)...)
	})
}

// subscriptions returns the subscriptions of a topic, by name.
func (b *Broker) subscriptions(topic *node) []*node {
	subs := b.sorted()
	return slices.DeleteFunc(subs, func(n *node) bool { return n.topic != topic })
}

// CreateSubscription makes a subscription with its rules: those of s, or one
// that takes everything.
func (b *Broker) CreateSubscription(ctx context.Context, topic string, s entity.Subscription) (entity.Subscription, error) {
	s = s.WithDefaults()
	if err := checkSubscription(s); err != nil {
		return entity.Subscription{}, err
	}
	s.Policy = compact(s.Policy)
	s.Rules, s.DefaultRule = slices.Clone(s.InitialRules()), nil
	date(s.Rules, nil)
	if err := checkRules(s.Rules); err != nil {
		return entity.Subscription{}, err
	}
	err := b.change(ctx, func() error {
		if err := b.provide(topic); err != nil {
			return err
		}
		t, err := b.kind(topic, KindTopic)
		if err != nil {
			return err
		}
		if err := b.checkForwards(t.path, "", s.ForwardTo); err != nil {
			return err
		}
		if err := b.checkTarget("", s.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		if len(b.subscriptions(t)) >= limits.Subscriptions {
			return fmt.Errorf("%w: topic %q has %d subscriptions, which is the most it can have", ErrQuota, t.path, limits.Subscriptions)
		}
		if err := b.checkActions(t, nil, s.Rules); err != nil {
			return err
		}
		n := &node{
			kind: KindSubscription, path: entity.SubscriptionPath(t.path, s.Name),
			shard: t.shard, topic: t,
		}
		if err := b.create(n, &definition{Kind: KindSubscription, Subscription: &s}); err != nil {
			return err
		}
		return b.reroute(t)
	})
	return s, err
}

// UpdateSubscription changes a subscription; without Rules they stay as they are,
// and so does its policy without one.
func (b *Broker) UpdateSubscription(ctx context.Context, topic string, s entity.Subscription) (entity.Subscription, error) {
	s = s.WithDefaults()
	if err := checkSubscription(s); err != nil {
		return entity.Subscription{}, err
	}
	if err := checkRules(s.Rules); err != nil {
		return entity.Subscription{}, err
	}
	err := b.change(ctx, func() error {
		n, err := b.subscription(topic, s.Name)
		if err != nil {
			return err
		}
		def := *n.def.Load()
		if err := def.Subscription.CheckUpdate(s); err != nil {
			return invalid(err)
		}
		if err := b.checkForwards(n.topic.path, def.Subscription.ForwardTo, s.ForwardTo); err != nil {
			return err
		}
		if err := b.checkTarget(def.Subscription.ForwardDeadLetteredMessagesTo, s.ForwardDeadLetteredMessagesTo); err != nil {
			return err
		}
		s.Name = def.Subscription.Name
		if s.Rules == nil {
			s.Rules = def.Subscription.Rules
		}
		if err := b.checkActions(n.topic, n, s.Rules); err != nil {
			return err
		}
		s.Rules = slices.Clone(s.Rules)
		date(s.Rules, def.Subscription.Rules)
		s.DefaultRule = nil
		s.Policy = replaced(def.Subscription.Policy, s.Policy)
		def.Subscription = &s
		if err := b.redefine(n, def); err != nil {
			return err
		}
		return b.reroute(n.topic)
	})
	return s, err
}

// Subscription returns the definition of a subscription, with its rules.
func (b *Broker) Subscription(topic, name string) (entity.Subscription, error) {
	n, err := b.subscription(topic, name)
	if err != nil {
		return entity.Subscription{}, err
	}
	return *n.def.Load().Subscription, nil
}

// Subscriptions returns the definitions of a topic's subscriptions, by name.
func (b *Broker) Subscriptions(topic string) ([]entity.Subscription, error) {
	t, err := b.kind(topic, KindTopic)
	if err != nil {
		return nil, err
	}
	var ss []entity.Subscription
	for _, n := range b.subscriptions(t) {
		ss = append(ss, *n.def.Load().Subscription)
	}
	return ss, nil
}

// DeleteSubscription removes a subscription with all its messages.
func (b *Broker) DeleteSubscription(ctx context.Context, topic, name string) error {
	return b.change(ctx, func() error {
		n, err := b.subscription(topic, name)
		if err != nil {
			return err
		}
		// Until the rules are compiled anew, publishers still choose the
		// subscription; the shard leaves their copies out.
		if err := b.remove(n); err != nil {
			return err
		}
		return b.reroute(n.topic)
	})
}

func (b *Broker) subscription(topic, name string) (*node, error) {
	if _, err := b.kind(topic, KindTopic); err != nil {
		return nil, err
	}
	return b.kind(entity.SubscriptionPath(topic, name), KindSubscription)
}
