// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/limits"
)

// defaultPage is the number of entries for a client that does not set it. A
// client that sets it gets exactly that many: the Go client takes a shorter
// page for the last one.
const (
	defaultPage = 100
	// gatherers is how many requests gather a list at the same time. Only then is all of it in
	// memory; after that the page is.
	gatherers = 2
	// feedPiece is about how much of a feed is made before it is written.
	feedPiece = 32 << 10
)

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
	if p.top > limits.Listed {
		return p, problem.Bad("$top is %d, at most %d are allowed.", p.top, limits.Listed)
	}
	return p, nil
}

// cut returns the part of a list, and whether there is more of it. The list is not kept.
func cut[T any](p page, all iter.Seq[T]) (part []T, more bool) {
	at := 0
	for item := range all {
		if len(part) == p.top {
			return part, p.top > 0
		}
		if at++; at > p.skip {
			part = append(part, item)
		}
	}
	return part, false
}

// feed writes a list.
func (c *call) feed() error {
	p, err := c.page()
	if err != nil {
		return err
	}
	switch c.kind {
	case feedQueues:
		return writeNamed(c, "Queues", p, func() (iter.Seq[entity.Queue], error) { return c.Broker.AllQueues(), nil },
			func(q entity.Queue) string { return q.Name }, c.Broker.Queue, c.queueEntry)
	case feedTopics:
		return writeNamed(c, "Topics", p, func() (iter.Seq[entity.Topic], error) { return c.Broker.AllTopics(), nil },
			func(t entity.Topic) string { return t.Name }, c.Broker.Topic, c.topicEntry)
	case feedHubs:
		return writeNamed(c, "EventHubs", p, func() (iter.Seq[entity.Hub], error) { return listed(c.Broker.Hubs(), nil) },
			func(h entity.Hub) string { return h.Name }, c.Broker.Hub, c.hubEntry)
	case feedGroups:
		return writeNamed(c, "ConsumerGroups", p, func() (iter.Seq[entity.ConsumerGroup], error) { return listed(c.Broker.ConsumerGroups(c.entity)) },
			func(g entity.ConsumerGroup) string { return g.Name },
			func(name string) (entity.ConsumerGroup, error) { return c.Broker.ConsumerGroup(c.entity, name) }, c.groupEntry)
	case feedPartitions:
		return writeFeed(c, "Partitions", p, func() (iter.Seq[broker.PartitionRuntime], error) { return listed(c.partitions()) }, c.partitionEntry)
	case feedSubscriptions:
		return writeNamed(c, "Subscriptions", p, func() (iter.Seq[entity.Subscription], error) { return c.Broker.AllSubscriptions(c.entity) },
			func(s entity.Subscription) string { return s.Name },
			func(name string) (entity.Subscription, error) { return c.Broker.Subscription(c.entity, name) }, c.subscriptionEntry)
	default:
		return writeNamed(c, "Rules", p, func() (iter.Seq[entity.Rule], error) { return listed(c.Broker.Rules(c.entity, c.subscription)) },
			func(r entity.Rule) string { return r.Name },
			func(name string) (entity.Rule, error) { return c.Broker.Rule(c.entity, c.subscription, name) }, c.ruleEntry)
	}
}

// listed makes of a list what gather takes.
func listed[T any](all []T, err error) (iter.Seq[T], error) { return slices.Values(all), err }

// writeNamed writes a list of definitions, of which only names are kept until each is written: who
// reads slowly does not hold those that were changed or deleted meanwhile.
func writeNamed[D any](c *call, title string, p page, all func() (iter.Seq[D], error), name func(D) string,
	lookup func(name string) (D, error), entry func(D) error) error {
	names := func() (iter.Seq[string], error) {
		list, err := all()
		return func(yield func(string) bool) {
			for d := range list {
				if !yield(name(d)) {
					return
				}
			}
		}, err
	}
	return writeFeed(c, title, p, names, func(name string) error {
		d, err := lookup(name)
		if err != nil {
			return err
		}
		return entry(d)
	})
}

// gather returns the part of a list that the client wants, which is charged. All of the list is
// in memory while few others are.
func gather[T any](c *call, p page, all func() (iter.Seq[T], error)) (items []T, more bool, err error) {
	leave, err := c.gatherers.Take(c.Context(), c.grant.Account())
	if err != nil {
		return nil, false, err
	}
	defer leave()
	list, err := all()
	if err != nil {
		return nil, false, err
	}
	items, more = cut(p, list)
	if !c.ChargeMemory(c.Request, int64(len(items))*int64(reflect.TypeFor[T]().Size())) {
		err = problem.Busy()
	}
	return items, more, err
}

// writeFeed writes the entries of a page, piece by piece. What was deleted meanwhile is left
// out.
func writeFeed[T any](c *call, title string, p page, all func() (iter.Seq[T], error), entry func(T) error) error {
	items, more, err := gather(c, p, all)
	if err != nil {
		return err
	}
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
		if err := c.flushPiece(); err != nil {
			return err
		}
	}
	w.close("feed")
	return nil
}

// flushPiece writes what there is of a feed, if it is enough, and charges the largest piece.
func (c *call) flushPiece() error {
	n := int64(c.out.Len())
	if n < feedPiece {
		return nil
	}
	if n > c.largest {
		if !c.ChargeMemory(c.Request, n-c.largest) {
			return problem.Busy()
		}
		c.largest = n
	}
	if err := c.recheck(); err != nil {
		return err
	}
	return c.flush(http.StatusOK)
}
