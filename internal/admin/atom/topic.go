// SPDX-License-Identifier: Apache-2.0

package atom

import (
	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/entity"
)

const elementTopic = "TopicDescription"

// readTopic reads a topic as readQueue reads a queue.
func readTopic(name string, d *element, old *entity.Topic) (entity.Topic, error) {
	t := entity.Topic{Name: name}
	if old != nil {
		t.EnablePartitioning = old.EnablePartitioning
		t.RequiresDuplicateDetection = old.RequiresDuplicateDetection
		t.MaxSizeInMegabytes, t.MaxMessageSizeInKilobytes = old.MaxSizeInMegabytes, old.MaxMessageSizeInKilobytes
	}
	r := reader{element: d}
	r.duration("DefaultMessageTimeToLive", &t.DefaultMessageTimeToLive)
	r.integer("MaxSizeInMegabytes", &t.MaxSizeInMegabytes)
	r.boolean("RequiresDuplicateDetection", &t.RequiresDuplicateDetection)
	r.duration("DuplicateDetectionHistoryTimeWindow", &t.DuplicateDetectionHistoryTimeWindow)
	r.optional("EnableBatchedOperations", &t.EnableBatchedOperations)
	r.boolean("FilteringMessagesBeforePublishing", &t.FilteringMessagesBeforePublishing)
	r.authorization(&t.AuthorizationRules)
	r.status(&t.Status)
	r.optional("SupportOrdering", &t.SupportOrdering)
	r.duration("AutoDeleteOnIdle", &t.AutoDeleteOnIdle)
	r.boolean("EnablePartitioning", &t.EnablePartitioning)
	r.boolean("EnableSubscriptionPartitioning", &t.EnableSubscriptionPartitioning)
	r.boolean("EnableExpress", &t.EnableExpress)
	r.integer("MaxMessageSizeInKilobytes", &t.MaxMessageSizeInKilobytes)
	r.str("UserMetadata", &t.UserMetadata)
	if old == nil && t.EnablePartitioning {
		t.MaxSizeInMegabytes = partitions * t.WithDefaults().MaxSizeInMegabytes
	}
	return t, r.err()
}

// filters are the rules of a topic's subscriptions by kind. The service counts
// the filters that take everything or nothing as SQL.
type filters struct{ sql, correlation int64 }

func (f *filters) add(rules []entity.Rule) {
	for _, r := range rules {
		if r.Filter.Kind == entity.CorrelationFilter {
			f.correlation++
		} else {
			f.sql++
		}
	}
}

func (w *writer) topic(t entity.Topic, rt broker.Runtime, f filters) {
	w.describe(elementTopic)
	w.duration("DefaultMessageTimeToLive", t.DefaultMessageTimeToLive)
	w.integer("MaxSizeInMegabytes", t.MaxSizeInMegabytes)
	w.boolean("RequiresDuplicateDetection", t.RequiresDuplicateDetection)
	w.duration("DuplicateDetectionHistoryTimeWindow", t.DuplicateDetectionHistoryTimeWindow)
	w.boolean("EnableBatchedOperations", *t.EnableBatchedOperations)
	w.integer("SizeInBytes", rt.Bytes)
	w.boolean("FilteringMessagesBeforePublishing", t.FilteringMessagesBeforePublishing)
	w.boolean("IsAnonymousAccessible", false)
	w.authorization(t.AuthorizationRules)
	w.leaf("Status", string(t.Status))
	w.times(rt)
	w.boolean("SupportOrdering", *t.SupportOrdering)
	w.counts(rt.Counts)
	w.count("SubscriptionCount", int64(rt.Subscriptions))
	w.count("SqlFilterCount", f.sql)
	w.count("CorrelationFilterCount", f.correlation)
	w.duration("AutoDeleteOnIdle", t.AutoDeleteOnIdle)
	w.boolean("EnablePartitioning", t.EnablePartitioning)
	w.boolean("EnableSubscriptionPartitioning", t.EnableSubscriptionPartitioning)
	w.leaf("EntityAvailabilityStatus", "Available")
	w.boolean("EnableExpress", t.EnableExpress)
	w.integer("MaxMessageSizeInKilobytes", t.MaxMessageSizeInKilobytes)
	w.given("UserMetadata", t.UserMetadata)
	w.close(elementTopic)
}
