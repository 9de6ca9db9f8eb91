// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/admin/caller"
	"github.com/triagemq/triagemq/internal/admin/cost"
	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// put creates an entity or, with If-Match, changes it.
func (c *call) put() (status int, err error) {
	if c.kind == feedRules { // the Go client leaves the name of a rule out
		c.kind = kindRule
	}
	if c.kind > lastPut {
		return 0, problem.Method(http.MethodGet)
	}
	root, err := c.tree()
	if err != nil {
		return 0, err
	}
	d, err := description(root)
	if err != nil {
		return 0, err
	}
	// The body may have taken long to come.
	if err := c.recheck(); err != nil {
		return 0, err
	}
	status = http.StatusCreated
	if c.updates() {
		status = http.StatusOK
	}
	switch {
	case c.kind == kindSubscription && d.name == elementSubscription:
		return status, c.putSubscription(d)
	case c.kind == kindRule && d.name == elementRule:
		return status, c.putRule(d)
	case c.kind == kindEntity && d.name == elementQueue:
		return status, c.putQueue(d)
	case c.kind == kindEntity && d.name == elementTopic:
		return status, c.putTopic(d)
	case c.kind == kindEntity && d.name == elementHub:
		return status, c.putHub(d)
	case c.kind == kindGroup && d.name == elementGroup:
		return status, c.putGroup(d)
	}
	return 0, problem.Bad("A <%s> does not belong at this address.", d.name)
}

// tree reads the body. What it becomes is charged to the request before it is decoded.
func (c *call) tree() (*element, error) {
	body, err := problem.ReadBody(c.w, c.Request, limits.Body)
	if err != nil {
		return nil, err
	}
	if len(body) > cost.Quick {
		leave, err := c.Turns.Take(c.Context(), c.grant.Account())
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	n, err := cost.XML(body)
	if err != nil {
		return nil, err
	}
	if !c.ChargeMemory(c.Request, n) {
		return nil, problem.Busy()
	}
	return parse(body)
}

// updates reports whether what is put has to be there already.
func (c *call) updates() bool { return c.Header.Get("If-Match") != "" }

func (c *call) putQueue(d *element) error {
	var old *entity.Queue
	put := c.Broker.CreateQueue
	if c.updates() {
		q, err := c.Broker.Queue(c.entity)
		if err != nil {
			return err
		}
		old, put = &q, c.Broker.UpdateQueue
	}
	q, err := readQueue(c.entity, d, old)
	if err != nil {
		return err
	}
	if err := c.mayForward(q.ForwardTo, q.ForwardDeadLetteredMessagesTo); err != nil {
		return err
	}
	if _, err := put(c.Context(), q); err != nil {
		return err
	}
	return c.writeQueue()
}

func (c *call) putTopic(d *element) error {
	var old *entity.Topic
	put := c.Broker.CreateTopic
	if c.updates() {
		t, err := c.Broker.Topic(c.entity)
		if err != nil {
			return err
		}
		old, put = &t, c.Broker.UpdateTopic
	}
	t, err := readTopic(c.entity, d, old)
	if err != nil {
		return err
	}
	if _, err := put(c.Context(), t); err != nil {
		return err
	}
	return c.writeTopic()
}

func (c *call) putSubscription(d *element) error {
	var old *entity.Subscription
	put := c.Broker.CreateSubscription
	if c.updates() {
		s, err := c.Broker.Subscription(c.entity, c.subscription)
		if err != nil {
			return err
		}
		old, put = &s, c.Broker.UpdateSubscription
	}
	s, err := readSubscription(c.subscription, d, old)
	if err != nil {
		return err
	}
	if err := c.mayForward(s.ForwardTo, s.ForwardDeadLetteredMessagesTo); err != nil {
		return err
	}
	if _, err := put(c.Context(), c.entity, s); err != nil {
		return err
	}
	return c.writeSubscription()
}

func (c *call) putRule(d *element) error {
	rule, err := readRule(c.rule, d)
	if err != nil {
		return err
	}
	put := c.Broker.CreateRule
	if c.updates() {
		put = c.Broker.UpdateRule
	}
	if _, err := put(c.Context(), c.entity, c.subscription, rule); err != nil {
		return err
	}
	c.rule = rule.Name
	return c.writeRule()
}

// mayForward checks that the caller may send to where messages are to be
// forwarded: with the token of the request or, as clients do it, with one more
// for each target.
func (c *call) mayForward(to, deadTo string) error {
	for _, f := range []struct{ target, header string }{{to, caller.HeaderForward}, {deadTo, caller.HeaderForwardDLQ}} {
		if f.target == "" {
			continue
		}
		path := caller.Path(f.target)
		if caller.Require(c.grant, access.Send, path) == nil {
			continue
		}
		g, err := c.Callers.Supplement(c.Request, f.header)
		if err == nil {
			err = caller.Require(g, access.Send, path)
		}
		if errors.Is(err, caller.ErrRights) {
			return &problem.Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Message: fmt.Sprintf(
				"Unauthorized access. 'Send' claim(s) are required to forward to '%s'; send a token for it in %s.", f.target, f.header)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// total adds the messages of a topic's subscriptions to those of the topic
// itself.
func (c *call) total(topic string, rt *broker.Runtime, f *filters) error {
	subs, err := c.Broker.AllSubscriptions(topic)
	if err != nil {
		return err
	}
	for s := range subs {
		f.add(s.Rules)
		sub, err := c.Broker.Runtime(c.Context(), entity.SubscriptionPath(topic, s.Name))
		if errors.Is(err, broker.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		rt.Bytes += sub.Bytes
	}
	return nil
}
