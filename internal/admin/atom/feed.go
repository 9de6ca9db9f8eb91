// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
)

// defaultPage is the number of entries for a client that does not set it. A
// client that sets it gets exactly that many: the Go client takes a shorter
// page for the last one.
const defaultPage = 100

// page is the part of a list that a client wants.
type page struct{ skip, top int }

func (c *call) page() (page, error) {
	p := page{top: defaultPage}
	for name, to := range map[string]*int{"$skip": &p.skip, "$top": &p.top} {
		text := c.URL.Query().Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return p, problem.Bad("%s is %q, not a number.", name, text)
		}
		*to = n
	}
	return p, nil
}

// cut returns the part of a list, and whether there is more of it.
func cut[T any](p page, all []T) (part []T, more bool) {
	all = all[min(p.skip, len(all)):]
	n := min(p.top, len(all))
	return all[:n], n > 0 && n < len(all)
}

// feed writes a list.
func (c *call) feed() error {
	p, err := c.page()
	if err != nil {
		return err
	}
	switch c.kind {
	case feedQueues:
		qs, more := cut(p, c.Broker.Queues())
		return writeFeed(c, "Queues", p, more, qs, c.queueEntry)
	case feedTopics:
		ts, more := cut(p, c.Broker.Topics())
		return writeFeed(c, "Topics", p, more, ts, c.topicEntry)
	case feedHubs:
		hs, more := cut(p, c.Broker.Hubs())
		return writeFeed(c, "EventHubs", p, more, hs, c.hubEntry)
	case feedGroups:
		all, err := c.Broker.ConsumerGroups(c.entity)
		if err != nil {
			return err
		}
		gs, more := cut(p, all)
		return writeFeed(c, "ConsumerGroups", p, more, gs, c.groupEntry)
	case feedPartitions:
		all, err := c.partitions()
		if err != nil {
			return err
		}
		ps, more := cut(p, all)
		return writeFeed(c, "Partitions", p, more, ps, c.partitionEntry)
	case feedSubscriptions:
		all, err := c.Broker.Subscriptions(c.entity)
		if err != nil {
			return err
		}
		ss, more := cut(p, all)
		return writeFeed(c, "Subscriptions", p, more, ss, c.subscriptionEntry)
	default:
		all, err := c.Broker.Rules(c.entity, c.subscription)
		if err != nil {
			return err
		}
		rules, more := cut(p, all)
		return writeFeed(c, "Rules", p, more, rules, c.ruleEntry)
	}
}

// writeFeed writes the entries of a page. What was deleted meanwhile is left out.
func writeFeed[T any](c *call, title string, p page, more bool, items []T, entry func(T) error) error {
	w := &c.out
	path := url.URL{Path: c.target.path()}
	here := c.base() + path.EscapedPath() + "?api-version=" + url.QueryEscape(c.apiVersion())
	w.open("feed", attr{"xmlns", nsAtom})
	w.leaf("title", title, attr{"type", "text"})
	w.leaf("id", here)
	w.instant("updated", c.Started)
	w.leaf("link", "", attr{"rel", "self"}, attr{"href", here})
	if more {
		next := fmt.Sprintf("%s&%%24skip=%d&%%24top=%d", here, p.skip+len(items), p.top)
		w.leaf("link", "", attr{"rel", "next"}, attr{"href", next})
	}
	for _, item := range items {
		if err := entry(item); err != nil && !errors.Is(err, broker.ErrNotFound) {
			return err
		}
	}
	w.close("feed")
	return nil
}
