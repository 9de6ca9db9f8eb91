// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"strings"

	"github.com/triagemq/triagemq/internal/admin/problem"
	"github.com/triagemq/triagemq/internal/entity"
)

// kind is what a path leads to.
type kind uint8

const (
	kindEntity kind = iota // a queue, a topic or a hub: the path is the same
	kindSubscription
	kindRule
	kindGroup
	lastPut = kindGroup // what can be put ends here
)

const (
	feedQueues kind = iota + lastPut + 1
	feedTopics
	feedHubs
	feedSubscriptions
	feedRules
	feedGroups
	feedPartitions
	kindPartition
	namespaceInfo
)

// target is a path taken apart.
type target struct {
	kind         kind
	entity       string // the queue, topic or hub
	subscription string
	rule         string
	group        string // consumer group of a hub
	partition    string
}

// parsePath parses a decoded path. Names may contain slashes, so the literal
// segments are searched from the right, in any case.
func parsePath(path string) (target, error) {
	path = strings.TrimPrefix(path, "/")
	switch strings.ToLower(strings.TrimSuffix(path, "/")) {
	case "$namespaceinfo":
		return target{kind: namespaceInfo}, nil
	case "$resources/queues":
		return target{kind: feedQueues}, nil
	case "$resources/topics":
		return target{kind: feedTopics}, nil
	case "$resources/eventhubs":
		return target{kind: feedHubs}, nil
	}
	segments := strings.Split(path, "/")
	n := len(segments)
	is := func(i int, word string) bool { return i >= 0 && i < n && strings.EqualFold(segments[i], word) }
	join := func(to int) string { return strings.Join(segments[:to], "/") }
	var t target
	switch {
	case is(n-2, "Rules") && is(n-4, "Subscriptions") && n > 4: // …/Subscriptions/s/Rules/ or with a name
		t = target{kind: kindRule, entity: join(n - 4), subscription: segments[n-3], rule: segments[n-1]}
		if t.rule == "" {
			t.kind = feedRules
		}
	case is(n-1, "Rules") && is(n-3, "Subscriptions") && n > 3:
		t = target{kind: feedRules, entity: join(n - 3), subscription: segments[n-2]}
	case is(n-2, "Subscriptions") && n > 2:
		t = target{kind: kindSubscription, entity: join(n - 2), subscription: segments[n-1]}
		if t.subscription == "" {
			t.kind = feedSubscriptions
		}
	case is(n-1, "Subscriptions") && n > 1:
		t = target{kind: feedSubscriptions, entity: join(n - 1)}
	case is(n-2, "Partitions") && is(n-4, "ConsumerGroups") && n > 4:
		t = target{kind: kindPartition, entity: join(n - 4), group: segments[n-3], partition: segments[n-1]}
		if t.partition == "" {
			t.kind = feedPartitions
		}
	case is(n-1, "Partitions") && is(n-3, "ConsumerGroups") && n > 3:
		t = target{kind: feedPartitions, entity: join(n - 3), group: segments[n-2]}
	case is(n-2, "ConsumerGroups") && n > 2:
		t = target{kind: kindGroup, entity: join(n - 2), group: segments[n-1]}
		if t.group == "" {
			t.kind = feedGroups
		}
	case is(n-1, "ConsumerGroups") && n > 1:
		t = target{kind: feedGroups, entity: join(n - 1)}
	default:
		t = target{kind: kindEntity, entity: strings.TrimSuffix(path, "/")}
	}
	if t.entity == "" {
		return t, problem.NotFound("No resource at this address.")
	}
	return t, nil
}

// path returns the canonical path of what t names.
func (t target) path() string {
	switch t.kind {
	case kindSubscription:
		return entity.SubscriptionPath(t.entity, t.subscription)
	case kindRule:
		return entity.SubscriptionPath(t.entity, t.subscription) + "/Rules/" + t.rule
	case feedQueues:
		return "$Resources/Queues"
	case feedTopics:
		return "$Resources/Topics"
	case feedHubs:
		return "$Resources/EventHubs"
	case kindGroup:
		return t.entity + "/ConsumerGroups/" + t.group
	case feedGroups:
		return t.entity + "/ConsumerGroups"
	case kindPartition:
		return t.entity + "/ConsumerGroups/" + t.group + "/Partitions/" + t.partition
	case feedPartitions:
		return t.entity + "/ConsumerGroups/" + t.group + "/Partitions"
	case feedSubscriptions:
		return t.entity + "/Subscriptions"
	case feedRules:
		return entity.SubscriptionPath(t.entity, t.subscription) + "/Rules"
	case namespaceInfo:
		return "$namespaceinfo"
	}
	return t.entity
}
