// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// What of the catalog the wire knows by the broker's name.
type (
	// Address is where a name leads.
	Address = catalog.Address
	// Kind is what an entity is.
	Kind = catalog.Kind
	// Pause suspends sending or receiving without losing anything.
	Pause = catalog.Pause
	// PolicyState is the policy of a queue or subscription as it stands.
	PolicyState = catalog.PolicyState
	// RuleMatch says what one rule would do with a message.
	RuleMatch = catalog.RuleMatch
	// Outcome settles a message.
	Outcome = catalog.Outcome
	// Disposition is what a consumer decides about a message.
	Disposition = catalog.Disposition
	// ThrottledError rejects a message for now, by class. It unwraps to ErrBusy.
	ThrottledError = queueserver.ThrottledError
)

// The kinds.
const (
	KindQueue        = catalog.KindQueue
	KindTopic        = catalog.KindTopic
	KindSubscription = catalog.KindSubscription
)

// The dispositions.
const (
	Complete   = catalog.Complete
	Abandon    = catalog.Abandon // failed: counts toward the dead letters
	Release    = catalog.Release // not started: does not count
	Defer      = catalog.Defer
	DeadLetter = catalog.DeadLetter
)

// AlertsTopic is the topic on which the broker tells of objectives whose state
// has changed. It comes into being with its first subscription.
const AlertsTopic = catalog.AlertsTopic

// Guard returns a context for changes of entities that are made only if check returns
// nil; see package catalog. A Redrive asks before each of its steps.
func Guard(ctx context.Context, check func() error) context.Context {
	return catalog.Guard(ctx, check)
}

// Text returns what an error says, without the names of our packages.
func Text(err error) string { return catalog.Text(err) }

// QueueFaults returns everything that is wrong with a queue, its policy included.
func QueueFaults(q entity.Queue) entity.Faults { return catalog.QueueFaults(q) }

// TopicFaults returns everything that is wrong with a topic.
func TopicFaults(t entity.Topic) entity.Faults { return catalog.TopicFaults(t) }

// SubscriptionFaults returns everything that is wrong with a subscription, its rules and
// its policy included.
func SubscriptionFaults(s entity.Subscription) entity.Faults { return catalog.SubscriptionFaults(s) }

// RuleFaults returns everything that is wrong with a rule.
func RuleFaults(r entity.Rule) entity.Faults { return catalog.RuleFaults(r) }
