// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/stream"
)

// Settings are what a hub can be configured to.
type Settings struct {
	Partitions  int           // at least 1; may grow, never shrinks
	RetainFor   time.Duration // how long an event is kept at least; 0 is without end
	RetainBytes int64         // how much each partition keeps at most; 0 is unbounded
}

// Options tune a hub; the zero value is useful.
type Options struct {
	// Mailbox is how many operations may wait; default 65,536.
	Mailbox int
	// Go runs work of the engine beside its goroutine. Default: on a goroutine that Run
	// waits for. A caller that steps a hub by hand decides here when it runs.
	Go func(s journal.Shard, work func())
	// Clock is the time of events and of retention; nil is one over the clocks of the
	// system. All engines of a process should share one.
	Clock *clock.Clock
	// Monotonic is the clock by which a lease of the journal ends; default time.Now.
	Monotonic func() time.Time
	// OnDamage is called once for events that cannot be read any more, from any
	// goroutine; nil is none.
	OnDamage func(Damage)
}

// Damage says which events of a partition cannot be read.
type Damage struct {
	Partition int
	First     stream.SeqNo
	Count     int64
	Err       error
}

// Hub is one event hub on an engine of its own. All methods may be called from any
// goroutine.
type Hub struct {
	*engine.Engine
}

// Open claims the history of a hub and replays it. An empty history becomes a hub with
// the given settings; one that is there is configured to them. The caller then calls
// Run, or Step by hand.
func Open(ctx context.Context, j journal.Journal, shard journal.Shard, set Settings, opts Options) (*Hub, error) {
	return nil, errors.ErrUnsupported
}

// Configure changes the settings and returns when that is durable. Partitions may be
// added, never removed.
func (h *Hub) Configure(ctx context.Context, set Settings) error { return errors.ErrUnsupported }
