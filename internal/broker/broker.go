// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/broker/jobs/forward"
	"github.com/triagemq/triagemq/internal/broker/jobs/reclassify"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Broker is what the wire may ask for: the catalog of entities, and what becomes of
// their messages.
type Broker struct {
	*catalog.Catalog

	shards     []*queueserver.Shard
	clock      *clock.Clock // the shards'
	log        *slog.Logger
	runner     *jobs.Runner
	forwarders *forward.Forwarders

	reclassifier *reclassify.Reclassifier
	alerts       *alerts
	damages      damages
	requests     *requests
}

// Open returns a broker over recovered shards. Run must be called for messages to
// be moved on and idle entities deleted.
func Open(shards []*queueserver.Shard, log *slog.Logger) (*Broker, error) {
	b := &Broker{shards: shards, clock: clockOf(shards), log: log, runner: jobs.New(), requests: newRequests()}
	var err error
	if b.Catalog, err = catalog.Open(shards, b.clock, log, (*entityObserver)(b)); err != nil {
		return nil, err
	}
	b.forwarders = forward.New(b.Catalog, b.runner)
	b.reclassifier = reclassify.New(b.Catalog, b.runner, log)
	b.alerts = newAlerts(b)
	for _, s := range shards {
		s.OnDamage(b.damaged)
	}
	return b, nil
}

// entityObserver has the broker follow changes of entities.
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

// Run moves messages on, measures, classifies anew what a changed policy asks for,
// and deletes idle entities, until ctx ends.
func (b *Broker) Run(ctx context.Context) error {
	for _, n := range b.Entities() {
		b.forwarders.Watch(n)
		if def := n.Definition(); def.Classified != def.PolicyRevision {
			b.reclassifier.Add(n) // the last process did not get to the end of it
		}
	}
	b.runner.Add(newIdleDeletion(b)).WakeAfter(reapEvery)
	b.runner.Add(measuring{b}).WakeAfter(measureEvery)
	b.runner.Run(ctx)
	return nil
}

// JobStats returns the figures of the background jobs.
func (b *Broker) JobStats() []jobs.Stat { return b.runner.Stats() }

// Now returns the time by which the broker decides about messages.
func (b *Broker) Now() time.Time { return b.clock.Now() }

// clockOf returns the clock that the shards share.
func clockOf(shards []*queueserver.Shard) *clock.Clock {
	if len(shards) == 0 {
		return clock.New(nil)
	}
	return shards[0].Clock()
}

// ShardStats returns what each shard did since the start.
func (b *Broker) ShardStats() []queueserver.Stats {
	stats := make([]queueserver.Stats, len(b.shards))
	for i, s := range b.shards {
		stats[i] = s.Stats()
	}
	return stats
}
