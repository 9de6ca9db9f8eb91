// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"slices"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/message"
)

// prepare returns a batch from outside as it is to be stored. What depends on the sender
// is written into the messages here, once, so that every later reader sees the same: a
// queue they are forwarded to, a topic that stores them, another policy, a redrive, the
// next process. The batch itself stays unchanged.
//
//   - Annotations and properties that only the broker, or the holder of a lock, may set are
//     removed; see message.WithoutReserved. Every door for messages comes through here.
//   - A header priority of zero that means none is removed. The header is not part of
//     what the sender signs [AMQP 3.2]: an intermediary may change it.
//   - A reply inherits the priority of its request; see inheritPriority.
func (b *Broker) prepare(n *catalog.Entity, o SenderOptions, batch []*message.Message) []*message.Message {
	owned := false
	for i, m := range batch {
		fit := m.WithoutReserved()
		if o.ZeroPriorityUnset {
			fit = withoutZero(fit)
		}
		fit = b.inheritPriority(n, o.Key, fit)
		if fit == m {
			continue
		}
		if !owned {
			batch, owned = slices.Clone(batch), true
		}
		batch[i] = fit
	}
	return batch
}

// withoutZero returns a message without the priority of its header if that is zero.
func withoutZero(m *message.Message) *message.Message {
	if h := m.Header(); !h.PrioritySet || h.Priority != 0 {
		return m
	}
	return catalog.Edited(m, message.Edit{UnsetPriority: true})
}
