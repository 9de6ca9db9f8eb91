// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"cmp"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

const elementQueue = "QueueDescription"

// partitions is what the size of a partitioned entity is multiplied with when it
// is created. An update names the product already.
const partitions = 16

// readQueue reads a queue; old, if not nil, is what it replaces. A property
// that an update leaves out is reset to its default, as in the service, except
// properties that cannot change, sizes, and those that ATOM does not have.
func readQueue(name string, d *element, old *entity.Queue) (entity.Queue, error) {
	q := entity.Queue{Name: name}
	if old != nil {
		q.RequiresSession, q.EnablePartitioning = old.RequiresSession, old.EnablePartitioning
		q.RequiresDuplicateDetection = old.RequiresDuplicateDetection
		q.MaxSizeInMegabytes, q.MaxMessageSizeInKilobytes = old.MaxSizeInMegabytes, old.MaxMessageSizeInKilobytes
		q.MaxMessageCount, q.Policy = old.MaxMessageCount, old.Policy
	}
	r := reader{element: d}
	r.duration("LockDuration", &q.LockDuration)
	r.integer("MaxSizeInMegabytes", &q.MaxSizeInMegabytes)
	r.boolean("RequiresDuplicateDetection", &q.RequiresDuplicateDetection)
	r.boolean("RequiresSession", &q.RequiresSession)
	r.duration("DefaultMessageTimeToLive", &q.DefaultMessageTimeToLive)
	r.boolean("DeadLetteringOnMessageExpiration", &q.DeadLetteringOnMessageExpiration)
	r.duration("DuplicateDetectionHistoryTimeWindow", &q.DuplicateDetectionHistoryTimeWindow)
	r.deliveries(&q.MaxDeliveryCount)
	r.optional("EnableBatchedOperations", &q.EnableBatchedOperations)
	r.authorization(&q.AuthorizationRules)
	r.status(&q.Status)
	r.str("ForwardTo", &q.ForwardTo)
	r.optional("SupportOrdering", &q.SupportOrdering)
	r.duration("AutoDeleteOnIdle", &q.AutoDeleteOnIdle)
	r.boolean("EnablePartitioning", &q.EnablePartitioning)
	r.str("ForwardDeadLetteredMessagesTo", &q.ForwardDeadLetteredMessagesTo)
	r.boolean("EnableExpress", &q.EnableExpress)
	r.integer("MaxMessageSizeInKilobytes", &q.MaxMessageSizeInKilobytes)
	r.str("UserMetadata", &q.UserMetadata)
	if old == nil && q.EnablePartitioning {
		q.MaxSizeInMegabytes = partitions * q.WithDefaults().MaxSizeInMegabytes
	}
	return q, r.err()
}

func (w *writer) queue(q entity.Queue, rt broker.Runtime) {
	w.describe(elementQueue)
	w.duration("LockDuration", q.LockDuration)
	w.integer("MaxSizeInMegabytes", q.MaxSizeInMegabytes)
	w.boolean("RequiresDuplicateDetection", q.RequiresDuplicateDetection)
	w.boolean("RequiresSession", q.RequiresSession)
	w.duration("DefaultMessageTimeToLive", q.DefaultMessageTimeToLive)
	w.boolean("DeadLetteringOnMessageExpiration", q.DeadLetteringOnMessageExpiration)
	w.duration("DuplicateDetectionHistoryTimeWindow", q.DuplicateDetectionHistoryTimeWindow)
	w.integer("MaxDeliveryCount", int64(q.MaxDeliveryCount))
	w.boolean("EnableBatchedOperations", *q.EnableBatchedOperations)
	w.integer("SizeInBytes", rt.Bytes)
	w.integer("MessageCount", rt.Total())
	w.boolean("IsAnonymousAccessible", false)
	w.authorization(q.AuthorizationRules)
	w.leaf("Status", string(q.Status))
	w.given("ForwardTo", q.ForwardTo)
	w.times(rt)
	w.boolean("SupportOrdering", *q.SupportOrdering)
	w.counts(rt.Counts)
	w.duration("AutoDeleteOnIdle", q.AutoDeleteOnIdle)
	w.boolean("EnablePartitioning", q.EnablePartitioning)
	w.given("ForwardDeadLetteredMessagesTo", q.ForwardDeadLetteredMessagesTo)
	w.leaf("EntityAvailabilityStatus", "Available")
	w.boolean("EnableExpress", q.EnableExpress)
	w.integer("MaxMessageSizeInKilobytes", q.MaxMessageSizeInKilobytes)
	w.given("UserMetadata", q.UserMetadata)
	w.close(elementQueue)
}

// authorization reads access rules. The service makes keys for rules that come
// without, and so do we.
func (r *reader) authorization(to *entity.AuthorizationRules) {
	now := time.Now().UTC()
	for _, e := range r.child("AuthorizationRules").all("AuthorizationRule") {
		inner := reader{element: e}
		rule := entity.AuthorizationRule{ModifiedTime: now}
		inner.str("KeyName", &rule.KeyName)
		inner.str("PrimaryKey", &rule.PrimaryKey)
		inner.str("SecondaryKey", &rule.SecondaryKey)
		inner.value("CreatedTime", func(s string) error {
			// An unreadable time is ignored: the rule is accepted.
			rule.CreatedTime, _ = time.Parse(time.RFC3339Nano, s)
			return nil
		})
		if rule.CreatedTime.IsZero() {
			rule.CreatedTime = now
		}
		rule.PrimaryKey = cmp.Or(rule.PrimaryKey, access.NewKey())
		rule.SecondaryKey = cmp.Or(rule.SecondaryKey, access.NewKey())
		for _, right := range e.child("Rights").all("AccessRights") {
			parsed, err := entity.ParseRight(right.text())
			if err != nil {
				r.faults = append(r.faults, entity.Fault{Field: "AuthorizationRules", Problem: err.Error()})
			}
			rule.Rights = append(rule.Rights, parsed)
		}
		*to = append(*to, rule)
	}
}

// authorization writes access rules without the times of their creation and
// change, which the service does not return: a client gets what it sent.
func (w *writer) authorization(rules entity.AuthorizationRules) {
	w.open("AuthorizationRules")
	for _, rule := range rules {
		w.open("AuthorizationRule", attr{"i:type", "SharedAccessAuthorizationRule"})
		w.leaf("ClaimType", "SharedAccessKey")
		w.leaf("ClaimValue", "None")
		w.open("Rights")
		for _, right := range rule.Rights {
			w.leaf("AccessRights", string(right))
		}
		w.close("Rights")
		w.leaf("KeyName", rule.KeyName)
		w.leaf("PrimaryKey", rule.PrimaryKey)
		w.given("SecondaryKey", rule.SecondaryKey)
		w.close("AuthorizationRule")
	}
	w.close("AuthorizationRules")
}
