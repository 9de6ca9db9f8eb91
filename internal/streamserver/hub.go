// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// Settings are what a hub can be configured to.
type Settings struct {
	Partitions  int           // at least 1; may grow, never shrinks
	RetainFor   time.Duration // how long an event is kept at least; 0 is without end
	RetainBytes int64         // how much each partition keeps at most; 0 is unbounded
}

// maxPartitions bounds what a history can make an engine hold. The service has 1,024.
const maxPartitions = 1 << 14

func (s Settings) check() error {
	if s.Partitions < 1 || s.Partitions > maxPartitions || s.RetainFor < 0 || s.RetainBytes < 0 {
		return fmt.Errorf("%w: %+v", errSettings, s)
	}
	return nil
}

func (s Settings) retention() stream.Retention {
	return stream.Retention{For: s.RetainFor, Bytes: uint64(s.RetainBytes)}
}

// Options tune a hub; the zero value is useful.
type Options struct {
	// Mailbox is how many operations may wait; default 65,536.
	Mailbox int
	// SnapshotAfter is how many bytes are written at least between two snapshots; default,
	// and at most, a segment of the journal.
	SnapshotAfter uint64
	// SnapshotStep is how many blocks one step of a snapshot visits; default 2,000.
	SnapshotStep int
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
	// Stored is charged for what the hub keeps in memory of what clients have made
	// durable: consumer groups, partitions; nil is no limit. All hubs of a broker
	// share one.
	Stored *budget.Account
}

func (o Options) engine() engine.Options {
	return engine.Options{
		Mailbox:       o.Mailbox,
		SnapshotAfter: o.SnapshotAfter,
		SnapshotStep:  o.SnapshotStep,
		BodiesStay:    true,
		Go:            o.Go,
		Clock:         o.Clock,
		Monotonic:     o.Monotonic,
	}
}

// Hub is one event hub on an engine of its own. All its methods may be called from any
// goroutine. Of its fields, the engine's goroutine owns all but damages, lost and anyAway.
type Hub struct {
	*engine.Engine
	tx  *engine.Tx
	eff machine.Effects
	set Settings // those in force; there may be more partitions
	// stored is charged for what clients have made durable and memory keeps.
	stored *budget.Account

	partitions []*partition
	ticked     bool         // the first step has begun
	missing    bool         // some of the partitions that are wanted are not there
	touched    []*partition // appended to in the open group
	ends       engine.Held[end]
	answers    engine.Held[*Reader]
	groups     *coordinator  // nil while nobody has needed it
	pace       pace          // of the records of groups
	finding    chan struct{} // full while as many positions are looked for as may be at once
	anyAway    atomic.Bool   // there were members whose right may end while they are away

	lost []Loss // set by Open
	// lostBelow is how many partitions there may have been before a repair; zero if it has
	// dropped nothing. Those that are not there begin behind the numbers that they had.
	lostBelow int

	storing  storing
	fullTick time.Time // when expired events were last looked for on a full disk
	damages  damages
}

// Open claims the history of a hub and replays it. An empty history becomes a hub with
// the given settings; one that is there is configured to them, but for partitions that
// it has more. The caller then calls Run, or Step by hand.
func Open(ctx context.Context, j journal.Journal, shard journal.Shard, set Settings, opts Options) (*Hub, error) {
	if err := set.check(); err != nil {
		return nil, err
	}
	if opts.Stored == nil {
		opts.Stored = budget.NoLimit()
	}
	h := &Hub{set: set, stored: opts.Stored, finding: make(chan struct{}, maxReaders), damages: damages{report: opts.OnDamage}}
	_, err := engine.Open(ctx, j, []journal.Shard{shard}, opts.engine(), func(e *engine.Engine, tx *engine.Tx) engine.Host {
		h.Engine, h.tx = e, tx
		return (*host)(h)
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// Loss says which events of a partition are lost: a repair of the journal has dropped the
// records of them. If it is not known how many there were, more numbers are left out than
// there can have been; a partition that is lost as a whole has an empty gap.
type Loss struct {
	Partition int
	stream.Gap
}

// Lost returns what was lost when the hub was opened, and how many records a repair had
// dropped. Events whose bodies only are lost are reported when they are read: see Damage.
func (h *Hub) Lost() (records uint64, losses []Loss) { return h.Losses().Records, h.lost }

// Configure changes the settings and returns when that is durable. Partitions may be
// added, never removed.
func (h *Hub) Configure(ctx context.Context, set Settings) error {
	return h.do(ctx, func(*engine.Tx) error { return h.configure(set) })
}

func (h *Hub) configure(set Settings) error {
	if err := set.check(); err != nil {
		return err
	}
	if n := len(h.partitions); set.Partitions < n {
		return fmt.Errorf("%w: %d partitions are fewer than the %d that there are", errSettings, set.Partitions, n)
	}
	if more := set.Partitions - len(h.partitions); more > 0 {
		if err := h.fits(more); err != nil {
			return err
		}
	}
	h.set = set
	h.missing = true
	h.addPartitions()
	for _, p := range h.partitions {
		p.m.Retain(set.retention())
		h.tick(p)
	}
	return nil
}

// post has fn run on the engine's goroutine; done gets its error when everything that it
// did, and has seen, is durable. The callers that wait bound how many there are.
func (h *Hub) post(fn func(tx *engine.Tx) error, done func(error)) error {
	return h.SubmitReserved(&task{fn, done})
}

// do is post for a caller that waits.
func (h *Hub) do(ctx context.Context, fn func(tx *engine.Tx) error) error {
	done := make(chan error, 1)
	if err := h.post(fn, func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// task is a command made of functions, for what is not on the hot path.
type task struct {
	fn   func(tx *engine.Tx) error
	done func(error)
}

// Apply implements [engine.Command].
func (t *task) Apply(tx *engine.Tx) { tx.Reply(t, t.fn(tx)) }

// Fail implements [engine.Command].
func (t *task) Fail(err error) { t.done(err) }

// Reply implements [engine.Replier].
func (t *task) Reply(err error) { t.done(err) }
