// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"cmp"
	"net/url"
	"time"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

// base is how the client spelled us, as a URL that ends in a slash.
func (c *call) base() string {
	scheme := "http"
	if c.Encrypted(c.Request) {
		scheme = "https"
	}
	return scheme + "://" + cmp.Or(c.Host, "localhost") + "/"
}

// apiVersion is echoed in links.
func (c *call) apiVersion() string {
	return cmp.Or(c.URL.Query().Get("api-version"), "2021-05")
}

// entry writes an ATOM entry. Go reads an entity's name from the title,
// JavaScript from the path of the id.
func (c *call) entry(t target, name string, rt broker.Runtime, content func(*writer)) {
	w := &c.out
	path := url.URL{Path: t.path()}
	href := c.base() + path.EscapedPath() + "?api-version=" + url.QueryEscape(c.apiVersion())
	w.open("entry", attr{"xmlns", nsAtom})
	w.leaf("id", href)
	w.leaf("title", name, attr{"type", "text"})
	w.instant("published", rt.CreatedAt)
	w.instant("updated", rt.UpdatedAt)
	w.open("author")
	w.leaf("name", c.Namespace)
	w.close("author")
	w.leaf("link", "", attr{"rel", "self"}, attr{"href", href})
	w.open("content", attr{"type", "application/xml"})
	content(w)
	w.close("content")
	w.close("entry")
}

func (c *call) writeQueue() error {
	q, err := c.Broker.Queue(c.entity)
	if err != nil {
		return err
	}
	return c.queueEntry(q)
}

func (c *call) queueEntry(q entity.Queue) error {
	rt, err := c.Broker.Runtime(c.Context(), q.Name)
	if err != nil {
		return err
	}
	c.entry(target{kind: kindEntity, entity: q.Name}, q.Name, rt, func(w *writer) { w.queue(q, rt) })
	return nil
}

func (c *call) writeTopic() error {
	t, err := c.Broker.Topic(c.entity)
	if err != nil {
		return err
	}
	return c.topicEntry(t)
}

func (c *call) topicEntry(t entity.Topic) error {
	leave, err := c.gatherers.Take(c.Context(), c.grant.Account()) // it asks for each of two thousand subscriptions
	if err != nil {
		return err
	}
	defer leave()
	rt, err := c.Broker.Runtime(c.Context(), t.Name)
	if err != nil {
		return err
	}
	var f filters
	if err := c.total(t.Name, &rt, &f); err != nil {
		return err
	}
	c.entry(target{kind: kindEntity, entity: t.Name}, t.Name, rt, func(w *writer) { w.topic(t, rt, f) })
	return nil
}

func (c *call) writeSubscription() error {
	s, err := c.Broker.Subscription(c.entity, c.subscription)
	if err != nil {
		return err
	}
	return c.subscriptionEntry(s)
}

func (c *call) subscriptionEntry(s entity.Subscription) error {
	rt, err := c.Broker.Runtime(c.Context(), entity.SubscriptionPath(c.entity, s.Name))
	if err != nil {
		return err
	}
	t := target{kind: kindSubscription, entity: c.entity, subscription: s.Name}
	c.entry(t, s.Name, rt, func(w *writer) { w.subscription(s, rt) })
	return nil
}

func (c *call) writeRule() error {
	rule, err := c.Broker.Rule(c.entity, c.subscription, c.rule)
	if err != nil {
		return err
	}
	return c.ruleEntry(rule)
}

func (c *call) ruleEntry(rule entity.Rule) error {
	rt, err := c.Broker.Runtime(c.Context(), entity.SubscriptionPath(c.entity, c.subscription))
	if err != nil {
		return err
	}
	// Rules of stores that did not date them are as old as their subscription.
	rule.CreatedAt = cmp.Or(rule.CreatedAt, rt.CreatedAt)
	rt.CreatedAt = rule.CreatedAt
	t := target{kind: kindRule, entity: c.entity, subscription: c.subscription, rule: rule.Name}
	c.entry(t, rule.Name, rt, func(w *writer) { w.rule(rule) })
	return nil
}

// writeNamespace writes the properties of the namespace.
func (c *call) writeNamespace() {
	rt := broker.Runtime{CreatedAt: c.Started, UpdatedAt: c.Started}
	c.entry(c.target, c.Namespace, rt, func(w *writer) {
		w.describe("NamespaceInfo")
		w.instant("CreatedTime", c.Started.Truncate(time.Millisecond))
		w.leaf("MessagingSKU", "Standard")
		w.instant("ModifiedTime", c.Started.Truncate(time.Millisecond))
		w.leaf("Name", c.Namespace)
		w.leaf("NamespaceType", "Messaging")
		w.close("NamespaceInfo")
	})
}
