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
		for _, q := range b.Queues() {
			if !yield(q.Name, KindQueue) {
				return
			}
		}
		for _, t := range b.Topics() {
			if !yield(t.Name, KindTopic) {
				return
			}
			subs, err := b.Subscriptions(t.Name)
			if err != nil {
				continue // deleted meanwhile
			}
			for _, s := range subs {
				if !yield(entity.SubscriptionPath(t.Name, s.Name), KindSubscription) {
					return
				}
			}
		}
	}
}
