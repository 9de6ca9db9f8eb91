// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"iter"

	"github.com/triagemq/triagemq/internal/entity"
)

// Paths yields the path and kind of every entity with messages: queues, then topics, each
// with its subscriptions.
func (b *Broker) Paths() iter.Seq2[string, Kind] {
	return func(yield func(string, Kind) bool) {
		for q := range b.AllQueues() {
			if !yield(q.Name, KindQueue) {
				return
			}
		}
		for t := range b.AllTopics() {
			if !yield(t.Name, KindTopic) {
				return
			}
			subs, _ := b.AllSubscriptions(t.Name) // none, if it was deleted meanwhile
			for s := range subs {
				if !yield(entity.SubscriptionPath(t.Name, s.Name), KindSubscription) {
					return
				}
			}
		}
	}
}
