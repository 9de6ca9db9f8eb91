// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/broker/jobs/alerts"
	"github.com/triagemq/triagemq/internal/broker/jobs/forward"
	"github.com/triagemq/triagemq/internal/broker/jobs/idle"
	"github.com/triagemq/triagemq/internal/broker/jobs/measure"
	"github.com/triagemq/triagemq/internal/broker/jobs/reclassify"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/pools"
	"github.com/triagemq/triagemq/internal/queueserver"
	"github.com/triagemq/triagemq/internal/turns"
)

// Broker has the catalog of entities and the operations on their messages.
type Broker struct {
	*catalog.Catalog

	shards     []*queueserver.Shard
	logs       HubLogs      // nil if there are no event hubs
	clock      *clock.Clock // the shards'
	log        *slog.Logger
	runner     *jobs.Runner
	forwarders *forward.Forwarders

	reclassifier *reclassify.Reclassifier
	alerts       *alerts.Alerts
	measuring    *measure.Measuring
	requests     *requests
	pools        pools.Registry
	isNew        bool         // no shard ever had an entity
	listing      *turns.Turns // for lists of sessions
	members      *jobs.Handle // of memberReview
	keeps        atomic.Bool  // some member has asked to be kept
}

// maxListing is how many requests list the sessions of a queue at the same time.
const maxListing = 2

// Open returns a broker over recovered shards, and the logs of event hubs, if there are
// any. Run must be called to forward messages and to delete idle entities.
func Open(shards []*queueserver.Shard, logs HubLogs, log *slog.Logger) (*Broker, error) {
	b := &Broker{shards: shards, logs: logs, clock: clockOf(shards), log: log, runner: jobs.New(), requests: newRequests(), listing: turns.New(maxListing, 1)}
	var err error
	if b.Catalog, err = catalog.Open(shards, logs, b.clock, log, (*entityObserver)(b)); err != nil {
		return nil, err
	}
	b.forwarders = forward.New(b.Catalog, b.runner)
	b.reclassifier = reclassify.New(b.Catalog, b.runner, log)
	b.alerts = alerts.New(b.Catalog, b.runner, log)
	b.measuring = measure.New(b.Catalog, shards, b.alerts)
	b.isNew = !slices.ContainsFunc(shards, func(s *queueserver.Shard) bool { return !s.New() })
	b.members = b.runner.Add((*memberReview)(b))
	for _, s := range shards {
		s.OnDamage(b.alerts.Damaged)
	}
	return b, nil
}

// New reports whether no entity was ever created in the store when the broker was opened.
func (b *Broker) New() bool { return b.isNew }

// entityObserver notifies the broker of changes of entities.
type entityObserver Broker

// Changed implements catalog.Observer.
func (b *entityObserver) Changed(n *catalog.Entity) {
	b.forwarders.Watch(n)
	b.forwarders.Changed(n)
	if def := n.Definition(); def.Classified != def.PolicyRevision {
		b.reclassifier.Add(n)
	}
}

// Removed implements catalog.Observer.
func (b *entityObserver) Removed(n *catalog.Entity) { b.forwarders.Unwatch(n) }

// Run runs the background jobs until ctx ends: forwarding, measuring, reclassification
// after a change of a policy, and idle deletion.
func (b *Broker) Run(ctx context.Context) error {
	for _, n := range b.Entities() {
		b.forwarders.Watch(n)
		if def := n.Definition(); def.Classified != def.PolicyRevision {
			b.reclassifier.Add(n) // the last process did not finish it
		}
	}
	b.runner.Add(idle.New(b.Catalog, b.clock, b.log)).WakeAfter(idle.Every)
	b.runner.Add(b.measuring).WakeAfter(measure.Every)
	b.runner.Run(ctx)
	return nil
}

// JobStats returns the figures of the background jobs.
func (b *Broker) JobStats() []jobs.Stat { return b.runner.Stats() }

// Now returns the time of the clock that the shards share.
func (b *Broker) Now() time.Time { return b.clock.Now() }

// clockOf returns the clock that the shards share.
func clockOf(shards []*queueserver.Shard) *clock.Clock {
	if len(shards) == 0 {
		return clock.New(nil)
	}
	return shards[0].Clock()
}

// ShardStats returns the figures of each shard since the start.
func (b *Broker) ShardStats() []queueserver.Stats {
	stats := make([]queueserver.Stats, len(b.shards))
	for i, s := range b.shards {
		stats[i] = s.Stats()
	}
	return stats
}
