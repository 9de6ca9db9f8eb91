// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"iter"
	"net/http"
	"slices"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

func (a *api) subscriptionRoutes() []route {
	const all = "/topics/{topic}/subscriptions"
	const one = all + "/{subscription}"
	type item = Entity[entity.Subscription]
	show := func(c *call, s entity.Subscription) (item, error) {
		return view(c, entity.SubscriptionPath(c.PathValue("topic"), s.Name), s)
	}
	answer := func(c *call, s entity.Subscription, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return show(c, s)
	}
	return append([]route{
		{
			method: http.MethodGet, path: all, id: "listSubscriptions",
			summary: "List the subscriptions of a topic by name, with their rules.", query: listQuery, result: list[item]{},
			handle: func(c *call) (any, error) {
				topic := c.PathValue("topic")
				subs := func() (iter.Seq[string], error) {
					all, err := c.Broker.AllSubscriptions(topic)
					return names(all, func(s entity.Subscription) string { return s.Name }), err
				}
				return page(c, subs, func(name string) (item, error) {
					s, err := c.Broker.Subscription(topic, name)
					if err != nil {
						return item{}, err
					}
					return show(c, s)
				})
			},
		},
		{
			method: http.MethodPost, path: all, id: "createSubscription", status: http.StatusCreated,
			summary: "Create a subscription with its rules; without rules it gets one that matches everything.", body: entity.Subscription{}, result: item{},
			handle: func(c *call) (any, error) {
				var s entity.Subscription
				if err := c.decode(&s, limits.Body); err != nil {
					return nil, err
				}
				if err := c.mayForward(s.ForwardTo, s.ForwardDeadLetteredMessagesTo); err != nil {
					return nil, err
				}
				s, err := c.Broker.CreateSubscription(c.Context(), c.PathValue("topic"), s)
				return answer(c, s, err)
			},
		},
		{
			method: http.MethodGet, path: one, id: "getSubscription",
			summary: "Show a subscription with its rules and its counts by state and level.", result: item{},
			handle: func(c *call) (any, error) {
				s, err := c.Broker.Subscription(c.PathValue("topic"), c.PathValue("subscription"))
				return answer(c, s, err)
			},
		},
		{
			method: http.MethodPut, path: one, id: "putSubscription",
			summary: "Create a subscription or replace its definition. Properties that are left out are reset to their defaults; rules are kept, and the policy unless it is null.", body: entity.Subscription{}, result: item{},
			handle: putSubscription,
		},
		{
			method: http.MethodPatch, path: one, id: "patchSubscription",
			summary: "Change properties of a subscription; null resets a property to its default and removes the policy.", body: entity.Subscription{}, result: item{},
			handle: func(c *call) (any, error) {
				old, s, err := merge(c, func() (entity.Subscription, error) {
					return c.Broker.Subscription(c.PathValue("topic"), c.PathValue("subscription"))
				})
				if err == nil {
					err = named(&s.Name, old.Name)
				}
				if err == nil {
					err = c.mayForward(s.ForwardTo, s.ForwardDeadLetteredMessagesTo)
				}
				if err == nil {
					s, err = c.Broker.UpdateSubscription(c.Context(), c.PathValue("topic"), s)
				}
				return answer(c, s, err)
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deleteSubscription", status: http.StatusNoContent,
			summary: "Delete a subscription with all its messages.",
			handle: func(c *call) (any, error) {
				return nil, c.Broker.DeleteSubscription(c.Context(), c.PathValue("topic"), c.PathValue("subscription"))
			},
		},
	}, a.pauseRoutes(one, "Subscription")...)
}

func putSubscription(c *call) (any, error) {
	topic := c.PathValue("topic")
	if _, err := c.Broker.Topic(topic); err != nil {
		return nil, err
	}
	var s entity.Subscription
	if err := c.decode(&s, limits.Body); err != nil {
		return nil, err
	}
	if err := named(&s.Name, c.PathValue("subscription")); err != nil {
		return nil, err
	}
	if err := c.mayForward(s.ForwardTo, s.ForwardDeadLetteredMessagesTo); err != nil {
		return nil, err
	}
	s, made, err := createOrUpdate(
		func() (entity.Subscription, error) { return c.Broker.CreateSubscription(c.Context(), topic, s) },
		func() (entity.Subscription, error) { return c.Broker.UpdateSubscription(c.Context(), topic, s) })
	if err != nil {
		return nil, err
	}
	return reply(c, entity.SubscriptionPath(topic, s.Name), s, made)
}

func (a *api) ruleRoutes() []route {
	const all = "/topics/{topic}/subscriptions/{subscription}/rules"
	const one = all + "/{rule}"
	in := func(c *call) (topic, sub string) { return c.PathValue("topic"), c.PathValue("subscription") }
	return []route{
		{
			method: http.MethodGet, path: all, id: "listRules",
			summary: "List the rules of a subscription by name.", query: listQuery, result: list[entity.Rule]{},
			handle: func(c *call) (any, error) {
				topic, sub := in(c)
				rules := func() (iter.Seq[string], error) {
					all, err := c.Broker.Rules(topic, sub)
					return names(slices.Values(all), func(r entity.Rule) string { return r.Name }), err
				}
				return page(c, rules, func(name string) (entity.Rule, error) { return c.Broker.Rule(topic, sub, name) })
			},
		},
		{
			method: http.MethodPost, path: all, id: "createRule", status: http.StatusCreated,
			summary: "Add a rule, effective for the next message; 409 if there is one of that name.", body: entity.Rule{}, result: entity.Rule{},
			handle: func(c *call) (any, error) {
				var r entity.Rule
				if err := c.decode(&r, limits.Body); err != nil {
					return nil, err
				}
				topic, sub := in(c)
				return c.Broker.CreateRule(c.Context(), topic, sub, r)
			},
		},
		{
			method: http.MethodGet, path: one, id: "getRule",
			summary: "Show a rule.", result: entity.Rule{},
			handle: func(c *call) (any, error) {
				topic, sub := in(c)
				return c.Broker.Rule(topic, sub, c.PathValue("rule"))
			},
		},
		{
			method: http.MethodPut, path: one, id: "putRule",
			summary: "Add a rule, or replace it.", body: entity.Rule{}, result: entity.Rule{},
			handle: func(c *call) (any, error) {
				var r entity.Rule
				if err := c.decode(&r, limits.Body); err != nil {
					return nil, err
				}
				if err := named(&r.Name, c.PathValue("rule")); err != nil {
					return nil, err
				}
				topic, sub := in(c)
				r, made, err := createOrUpdate(
					func() (entity.Rule, error) { return c.Broker.CreateRule(c.Context(), topic, sub, r) },
					func() (entity.Rule, error) { return c.Broker.UpdateRule(c.Context(), topic, sub, r) })
				if err == nil && made {
					return created{r}, nil
				}
				return r, err
			},
		},
		{
			method: http.MethodDelete, path: one, id: "deleteRule", status: http.StatusNoContent,
			summary: "Remove a rule.",
			handle: func(c *call) (any, error) {
				topic, sub := in(c)
				return nil, c.Broker.DeleteRule(c.Context(), topic, sub, c.PathValue("rule"))
			},
		},
	}
}
