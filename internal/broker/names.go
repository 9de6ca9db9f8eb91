// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/catalog/errtext"
	"github.com/triagemq/triagemq/internal/broker/catalog/validate"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// The names of the catalog that callers of the broker use.
type (
	// Kind is what an entity is.
	Kind = catalog.Kind
	// Pause suspends sending or receiving. No message is lost.
	Pause = catalog.Pause
	// PolicyState is the present policy of a queue or subscription.
	PolicyState = catalog.PolicyState
	// RuleMatch is the result of one rule for a message.
	RuleMatch = catalog.RuleMatch
	// Outcome settles a message.
	Outcome = catalog.Outcome
	// Disposition is how a consumer settles a message.
	Disposition = catalog.Disposition
	// ThrottledError rejects messages of a class until a retry. It unwraps to ErrBusy.
	ThrottledError = queueserver.ThrottledError
)

// The kinds.
const (
	KindQueue        = catalog.KindQueue
	KindTopic        = catalog.KindTopic
	KindSubscription = catalog.KindSubscription
	KindHub          = catalog.KindHub
)

// The dispositions.
const (
	Complete   = catalog.Complete
	Abandon    = catalog.Abandon // failed: counts toward the limit of deliveries
	Release    = catalog.Release // handed back: does not count
	Defer      = catalog.Defer
	DeadLetter = catalog.DeadLetter

	LongestRetry = catalog.LongestRetry
)

// Guard returns a context for changes of entities that are made only if check returns
// nil; see package catalog. A Redrive calls it before each of its steps.
func Guard(ctx context.Context, check func() error) context.Context {
	return catalog.Guard(ctx, check)
}

// By returns a context for what somebody has asked for; see package catalog.
func By(ctx context.Context, owner string) context.Context { return catalog.By(ctx, owner) }

// Managing returns a context for what a key asks for that manages the namespace; see package
// catalog.
func Managing(ctx context.Context) context.Context { return catalog.Managing(ctx) }

// Charging returns a context whose operations call charge before they load bodies of
// messages, with how many bytes of them they will have in memory at a time.
func Charging(ctx context.Context, charge func(bytes int64) error) context.Context {
	return catalog.Charging(ctx, charge)
}

// Text returns the text of an error without the names of packages.
func Text(err error) string { return errtext.Text(err) }

// QueueFaults returns everything that is wrong with a queue, its policy included.
func QueueFaults(q entity.Queue) entity.Faults { return validate.Queue(q) }

// TopicFaults returns everything that is wrong with a topic.
func TopicFaults(t entity.Topic) entity.Faults { return validate.Topic(t) }

// SubscriptionFaults returns everything that is wrong with a subscription, its rules and
// its policy included.
func SubscriptionFaults(s entity.Subscription) entity.Faults { return validate.Subscription(s) }

// HubFaults returns everything that is wrong with an event hub.
func HubFaults(h entity.Hub) entity.Faults { return validate.Hub(h) }

// GroupFaults returns everything that is wrong with a consumer group.
func GroupFaults(g entity.ConsumerGroup) entity.Faults { return validate.Group(g) }

// RuleFaults returns everything that is wrong with a rule.
func RuleFaults(r entity.Rule) entity.Faults { return validate.Rule(r) }
