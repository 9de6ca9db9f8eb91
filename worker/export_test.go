// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"

	"github.com/triagemq/triagemq/client"
)

// Receiver is what a model broker implements.
type Receiver = receiver

// SetOpener puts a model in the place of the client.
func (p *Pool) SetOpener(open func(ctx context.Context, entity string, o *client.ReceiverOptions) (Receiver, error)) {
	p.open = open
}

// Asked reports whether a task was asked to wait in place.
func (t *Task) Asked() bool { return t.attempt.asked.Load() }

// Orders are what the broker tells a pool.
type Orders struct {
	Paused, Spare, Known bool
	Slots                int
}

// Obey has a running pool carry out orders.
func (p *Pool) Obey(o Orders) {
	p.live.Load().obey(orders{paused: o.Paused, slots: o.Slots, spare: o.Spare, known: o.Known})
}
