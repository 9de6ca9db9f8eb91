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
	kindEntity kind = iota // a queue or a topic: the path is the same
	kindSubscription
	kindRule
	feedQueues
	feedTopics
	feedSubscriptions
	feedRules
	namespaceInfo
)

// target is a path taken apart.
type target struct {
	kind         kind
	entity       string // the queue or topic
	subscription string
	rule         string
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
	}
	segments := strings.Split(path, "/")
	n := len(segments)
	is := func(i int, word string) bool { return i >= 0 && i < n && strings.EqualFold(segments[i], word) }
	join := func(to int) string { return strings.Join(segments[:to], "/") }
	var t target
	switch {
	case is(n-2, "Rules") && is(n-4, "Subscriptions") && n > 4: // …/Subscriptions/s/Rules/ or with a name
		t = target{kindRule, join(n - 4), segments[n-3], segments[n-1]}
		if t.rule == "" {
			t.kind = feedRules
		}
	case is(n-1, "Rules") && is(n-3, "Subscriptions") && n > 3:
		t = target{feedRules, join(n - 3), segments[n-2], ""}
	case is(n-2, "Subscriptions") && n > 2:
		t = target{kindSubscription, join(n - 2), segments[n-1], ""}
		if t.subscription == "" {
			t.kind = feedSubscriptions
		}
	case is(n-1, "Subscriptions") && n > 1:
		t = target{feedSubscriptions, join(n - 1), "", ""}
	default:
		t = target{kindEntity, strings.TrimSuffix(path, "/"), "", ""}
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
	case feedSubscriptions:
		return t.entity + "/Subscriptions"
	case feedRules:
		return entity.SubscriptionPath(t.entity, t.subscription) + "/Rules"
	case namespaceInfo:
		return "$namespaceinfo"
	}
	return t.entity
}
