// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

const elementSubscription = "SubscriptionDescription"

// readSubscription reads a subscription as readQueue reads a queue. Rules have
// separate requests, except the first one, which may be part of a creation.
func readSubscription(name string, d *element, old *entity.Subscription) (entity.Subscription, error) {
	s := entity.Subscription{Name: name}
	if old != nil {
		s.RequiresSession = old.RequiresSession
		s.MaxMessageCount, s.Policy = old.MaxMessageCount, old.Policy
	}
	r := reader{element: d}
	r.duration("LockDuration", &s.LockDuration)
	r.boolean("RequiresSession", &s.RequiresSession)
	r.duration("DefaultMessageTimeToLive", &s.DefaultMessageTimeToLive)
	r.boolean("DeadLetteringOnMessageExpiration", &s.DeadLetteringOnMessageExpiration)
	r.optional("DeadLetteringOnFilterEvaluationExceptions", &s.DeadLetteringOnFilterEvaluationExceptions)
	r.deliveries(&s.MaxDeliveryCount)
	r.optional("EnableBatchedOperations", &s.EnableBatchedOperations)
	r.status(&s.Status)
	r.str("ForwardTo", &s.ForwardTo)
	r.duration("AutoDeleteOnIdle", &s.AutoDeleteOnIdle)
	r.str("ForwardDeadLetteredMessagesTo", &s.ForwardDeadLetteredMessagesTo)
	r.str("UserMetadata", &s.UserMetadata)
	if first := d.child("DefaultRuleDescription"); first != nil && old == nil {
		rule, err := readRule("", first)
		if err != nil {
			return s, err
		}
		s.DefaultRule = &rule
	}
	return s, r.err()
}

func (w *writer) subscription(s entity.Subscription, rt broker.Runtime) {
	w.describe(elementSubscription)
	w.duration("LockDuration", s.LockDuration)
	w.boolean("RequiresSession", s.RequiresSession)
	w.duration("DefaultMessageTimeToLive", s.DefaultMessageTimeToLive)
	w.boolean("DeadLetteringOnMessageExpiration", s.DeadLetteringOnMessageExpiration)
	w.boolean("DeadLetteringOnFilterEvaluationExceptions", *s.DeadLetteringOnFilterEvaluationExceptions)
	w.integer("MessageCount", rt.Total())
	w.integer("MaxDeliveryCount", int64(s.MaxDeliveryCount))
	w.boolean("EnableBatchedOperations", *s.EnableBatchedOperations)
	w.leaf("Status", string(s.Status))
	w.given("ForwardTo", s.ForwardTo)
	w.times(rt)
	w.counts(rt.Counts)
	w.duration("AutoDeleteOnIdle", s.AutoDeleteOnIdle)
	w.given("ForwardDeadLetteredMessagesTo", s.ForwardDeadLetteredMessagesTo)
	w.leaf("EntityAvailabilityStatus", "Available")
	w.given("UserMetadata", s.UserMetadata)
	w.close(elementSubscription)
}
