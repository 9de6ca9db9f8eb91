// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/pools"
)

// The names of worker pools that callers of the broker use.
type (
	// Pool is a worker pool that has announced itself.
	Pool = pools.Pool
	// PoolInstance is one process of a pool.
	PoolInstance = pools.Instance
	// PoolReport is what a process of a pool tells about itself.
	PoolReport = pools.Report
	// PoolOrders are what a pool was told to do.
	PoolOrders = pools.Orders
)

// Errors of pools.
var (
	ErrPoolInvalid  = pools.ErrInvalid
	ErrPoolNotFound = pools.ErrNotFound
	ErrTooManyPools = pools.ErrTooMany
)

// PoolAnswer is what a process of a pool gets for its report.
type PoolAnswer struct {
	pools.Answer
	// Known says that the next three were measured, at all sources of the pool.
	Known   bool
	Demand  int           // slots that all processes together need now
	Waiting int64         // messages that can be delivered
	Oldest  time.Duration // how long the oldest of them has waited
}

// SealPools sets the key with which orders of pools are sealed, before the broker is used; see
// pools.Registry.
func (b *Broker) SealPools(key []byte) { b.pools.SetKey(key) }

// AnnouncePool takes the report of a process of a pool, whose sender may listen to all
// sources in it.
func (b *Broker) AnnouncePool(ctx context.Context, r PoolReport) (PoolAnswer, error) {
	if len(r.Sources) > 0 {
		r.Owner = entity.Owner(r.Sources[0])
	}
	told, err := b.pools.Announce(b.clock.Now(), r)
	if err != nil {
		return PoolAnswer{}, err
	}
	a := PoolAnswer{Answer: told, Known: true}
	if r.Leaving {
		return a, nil
	}
	// Messages that are kept for a retry are locked, and need no slot.
	kept := int64(told.Retrying)
	for _, source := range r.Sources {
		o, ok := b.measured(ctx, source)
		if !ok {
			a.Known = false
			continue
		}
		needless := min(kept, o.Locked)
		o.Locked, kept = o.Locked-needless, kept-needless
		a.Demand += o.Demand(DemandOptions{}).Value
		for _, c := range o.Classes {
			a.Waiting += c.Waiting
			a.Oldest = max(a.Oldest, time.Duration(c.OldestAge*float64(time.Second)))
		}
	}
	return a, nil
}

// measured returns the measurements of a source. There are none of dead letters, and of a
// queue that does not exist yet, which the pool waits for.
func (b *Broker) measured(ctx context.Context, source string) (Objectives, bool) {
	if _, sub, err := b.Find(source); err != nil || sub != entity.MainQueue {
		return Objectives{}, false
	}
	o, err := b.Objectives(ctx, source)
	return o, err == nil
}

// Pools returns the worker pools by name.
func (b *Broker) Pools() []Pool { return b.pools.List(b.clock.Now()) }

// PausePools has the pools of a name take no more messages, or take them again. An empty
// source means all sources that have a pool of that name.
func (b *Broker) PausePools(ctx context.Context, name, source string, paused bool) ([]Pool, error) {
	return b.orderPools(ctx, name, source, func(o *PoolOrders) { o.Paused = paused })
}

// ResizePools sets the slots of each process of the pools of a name; zero gives them back
// their own setting.
func (b *Broker) ResizePools(ctx context.Context, name, source string, slots int) ([]Pool, error) {
	return b.orderPools(ctx, name, source, func(o *PoolOrders) { o.Slots = slots })
}

func (b *Broker) orderPools(ctx context.Context, name, source string, change func(*PoolOrders)) ([]Pool, error) {
	if err := catalog.Guarded(ctx); err != nil {
		return nil, err
	}
	if p, err := entity.ParsePath(source); err == nil {
		source = entity.Key(p.String()) // as it is announced
	}
	ps, err := b.pools.Order(b.clock.Now(), name, source, change)
	if err == nil {
		b.log.Info("orders of a pool changed", "pool", name, "paused", ps[0].Paused, "slots", ps[0].OrderedSlots)
	}
	return ps, err
}
