// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"iter"

	"github.com/triagemq/triagemq/internal/broker/jobs/alerts"
	"github.com/triagemq/triagemq/internal/broker/jobs/measure"
)

// The names of alerts and measurement that callers of the broker use.
type (
	// Alert says that the state of an objective has changed.
	Alert = alerts.Alert
	// Objectives has the measurements of a queue or subscription.
	Objectives = measure.Objectives
	// DemandOptions are the limits of the number of workers.
	DemandOptions = measure.DemandOptions
	// Demand is how many workers a queue needs now.
	Demand = measure.Demand
)

// OnAlert has fn called with every alert, one at a time. It must not block.
func (b *Broker) OnAlert(fn func(Alert)) { b.alerts.OnAlert(fn) }

// Unreadable returns how many messages became dead letters, since the start, because their
// bodies could not be read.
func (b *Broker) Unreadable() uint64 { return b.alerts.Unreadable() }

// Objectives returns the measurements of a queue or subscription.
func (b *Broker) Objectives(ctx context.Context, addr string) (Objectives, error) {
	return b.measuring.Objectives(ctx, addr)
}

// AllObjectives yields the measurements of all queues and subscriptions, by path.
func (b *Broker) AllObjectives(ctx context.Context) iter.Seq[Objectives] {
	return b.measuring.All(ctx)
}

// Demand returns how many workers the objectives of a queue or subscription need now.
func (b *Broker) Demand(ctx context.Context, addr string, o DemandOptions) (Demand, error) {
	r, err := b.Objectives(ctx, addr)
	if err != nil {
		return Demand{}, err
	}
	return r.Demand(o), nil
}
