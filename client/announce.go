// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/amqp/names"
)

// PoolReport is what a process of a worker pool tells the broker about itself. Programs
// that use package worker need not send any.
type PoolReport struct {
	Name     string   // of the pool
	Instance string   // an ID of this process' own choice
	Sources  []string // queues and subscriptions; it is announced at the first
	Host     string
	Process  int

	Slots     int    // handlers that can run at a time
	Busy      int    // handlers that run
	Suspended int    // handlers that wait in place
	Retrying  int    // messages that are kept for a retry
	Paused    bool   // by an order, or by the program itself
	Idle      string // why it does nothing; "" if it works
	// Background says that it works only while no other pool at its sources is fully busy,
	// nor at those of Beside, where it needs Listen as well.
	Background bool
	Beside     []string
	// Leaving says that the process stops: the broker forgets it at once.
	Leaving bool

	// These are totals since the start.
	Completed, Failed, DeadLettered, Preempted uint64

	// Obeyed are the orders of the last reply. A broker that has restarted learns them again.
	Obeyed PoolOrders
}

// PoolOrders are what the broker asks of a worker pool, and what it knows of its sources.
type PoolOrders struct {
	Paused bool
	Slots  int // of this process; zero is its own setting
	// Revision changes with each order. Zero means that there is none: the pool decides.
	Revision int64
	// Seal proves to a broker that has restarted that it had given these orders.
	Seal string

	// Known says that the next three were measured.
	Known   bool
	Demand  int           // slots that all processes of the pool together need now
	Waiting int           // messages that can be delivered
	Oldest  time.Duration // how long the oldest of them has waited

	Spare     bool // no other pool that counts for it is fully busy
	Instances int  // processes of the pool that the broker knows, this one included
}

// AnnouncePool tells the broker what a process of a worker pool does, and returns its
// orders. The broker forgets a process that is silent for three seconds. A broker
// that does not list pools refuses with [errors.ErrUnsupported].
func (c *Client) AnnouncePool(ctx context.Context, r PoolReport) (PoolOrders, error) {
	entity := c.entity("")
	if len(r.Sources) > 0 {
		entity = c.entity(r.Sources[0])
	}
	addresses := func(of []string) []any {
		as := make([]any, len(of))
		for i, s := range of {
			as[i] = c.entity(s)
		}
		return as
	}
	c.showRights(ctx, r.Sources)
	c.showRights(ctx, r.Beside)
	reply, err := c.manage(ctx, entity, names.AnnouncePool, request{fields: map[string]any{
		names.PoolName: r.Name, names.PoolInstance: r.Instance, names.PoolSources: addresses(r.Sources),
		names.PoolHost: r.Host, names.PoolProcess: int64(r.Process),
		names.PoolSlots: int64(r.Slots), names.PoolBusy: int64(r.Busy),
		names.PoolSuspended: int64(r.Suspended), names.PoolRetrying: int64(r.Retrying),
		names.PoolPaused: r.Paused, names.PoolIdle: r.Idle, names.PoolBackground: r.Background, names.PoolBeside: addresses(r.Beside), names.PoolLeaving: r.Leaving,
		names.PoolCompleted: int64(r.Completed), names.PoolFailed: int64(r.Failed),
		names.PoolDeadLettered: int64(r.DeadLettered), names.PoolPreempted: int64(r.Preempted),
		names.PoolOrderedPause: r.Obeyed.Paused, names.PoolOrderedSlots: int64(r.Obeyed.Slots), names.PoolRevision: r.Obeyed.Revision,
		names.PoolSeal: r.Obeyed.Seal,
	}})
	if err == nil && reply[names.PoolRevision] == nil {
		err = errors.ErrUnsupported // a polite answer of a broker that has none
	}
	if errors.Is(err, ErrNotAllowed) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return PoolOrders{}, fmt.Errorf("announce pool %q at %q: %w", r.Name, entity, err)
	}
	return poolOrders(reply), nil
}

// showRights puts tokens for entities. A source that the caller has no right to, or that
// does not exist yet, is left out by the broker, so errors do not matter.
func (c *Client) showRights(ctx context.Context, entities []string) {
	conn, err := c.connection(ctx)
	if err != nil {
		return // the request fails likewise
	}
	for _, e := range entities {
		_ = conn.authorize(ctx, c.entity(e))
	}
}

// poolOrders reads a reply. What is missing is zero.
func poolOrders(reply map[string]any) PoolOrders {
	seal, _ := reply[names.PoolSeal].(string)
	flag := func(name string) bool { v, _ := reply[name].(bool); return v }
	number := func(name string) int64 { n, _ := integer(reply[name]); return n }
	return PoolOrders{
		Paused: flag(names.PoolPaused), Slots: int(number(names.PoolSlots)), Revision: number(names.PoolRevision), Seal: seal,
		Known: flag(names.PoolKnown), Demand: int(number(names.PoolDemand)), Waiting: int(number(names.PoolWaiting)),
		Oldest: time.Duration(number(names.PoolOldest)) * time.Millisecond,
		Spare:  flag(names.PoolSpare), Instances: int(number(names.PoolInstances)),
	}
}
