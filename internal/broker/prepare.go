// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"slices"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/message"
)

// prepare returns a batch from outside as it is to be stored. What depends on the
// sender is written into the messages here, once, so that everybody who reads them
// later reads the same: a queue they are forwarded to, a topic that holds them
// back, a policy that comes or goes, a redrive, the process after this one. The
// batch itself is left as it is.
//
//   - A header priority of zero that means none is removed. The header is not part
//     of what the sender signs [AMQP 3.2]: whoever passes a message on may change it.
//   - A reply gets what its request was worth; see lend.
func (b *Broker) prepare(n *catalog.Entity, o SenderOptions, batch []*message.Message) []*message.Message {
	owned := false
	for i, m := range batch {
		fit := m
		if o.ZeroPriorityUnset {
			fit = withoutZero(m)
		}
		fit = b.lend(n, o.Key, fit)
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
