// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
	"github.com/triagemq/triagemq/internal/queueserver/bodies"
)

// Errors of operations.
var (
	// ErrNoEntity means that the entity was dropped, or never existed.
	ErrNoEntity = errors.New("queueserver: no such entity")
	// ErrBusy means that the mailbox is full.
	ErrBusy = engine.ErrBusy
	// ErrDiskFull means that the journal has no space for anything new.
	ErrDiskFull = engine.ErrDiskFull
	// ErrTooLarge means that a message does not fit into the journal.
	ErrTooLarge = engine.ErrTooLarge
	// ErrStopped means that the shard has stopped and answers nothing more.
	ErrStopped = engine.ErrStopped
	// ErrMoved means that another owner has claimed the shard's history, in this
	// process or another. The shard has stopped; others are not affected.
	ErrMoved = engine.ErrMoved
	// ErrUnfinished is what Run returns if the disk took too long when it stopped. What
	// is missing was not acknowledged.
	ErrUnfinished = engine.ErrUnfinished
)

// Stats counts what a shard did since it was opened.
type Stats = engine.Stats

// Options tune a shard; the zero value is useful.
type Options struct {
	// Mailbox is how many operations may wait; default 65,536.
	Mailbox int
	// CacheBytes bounds the bodies kept in memory; default 64 MiB.
	CacheBytes int
	// SnapshotAfter is how many bytes a shard writes at least between two
	// snapshots; default 64 MiB.
	SnapshotAfter uint64
	// SnapshotStep is how many messages one step of a snapshot visits; default
	// 2,000.
	SnapshotStep int
	// DispatchStep is how many messages one step delivers to consumers; default
	// 1,024. The operations in the mailbox are applied between two steps.
	DispatchStep int
	// VisitStep is how many messages one step of an operation visits that is done
	// in steps; default 1,000.
	VisitStep int
	// Go runs work of a shard beside its writer, which may wait for the disk:
	// reading bodies, and freeing space in the journal. Default: on a goroutine that Run
	// waits for. A caller that steps a shard by hand decides here when it runs.
	Go func(s journal.Shard, work func())
	// NewMonitor makes the monitor of each entity; nil is no monitors.
	NewMonitor NewMonitor
	// Clock is the time by which Run decides about messages; nil is one over
	// the clocks of the system. All shards of a broker should share one.
	Clock *clock.Clock
	// Monotonic is the clock by which a lease of the journal ends; default
	// time.Now.
	Monotonic func() time.Time
	// Stored is charged for what the shard keeps in memory of what clients have
	// made durable; nil is no limit. All shards of a broker share one.
	Stored *budget.Account
	// Reserve is the part of Stored that is for entities with few messages; nil is
	// an eighth, of this shard alone. All shards of a broker share one.
	Reserve *budget.Account
}

func (o Options) withDefaults() Options {
	if o.Stored == nil {
		o.Stored = budget.NoLimit()
	}
	if o.Reserve == nil {
		o.Reserve = budget.New(o.Stored.Limit() / budget.MessagesReserve)
	}
	o.CacheBytes = cmp.Or(o.CacheBytes, 64<<20)
	o.DispatchStep = cmp.Or(o.DispatchStep, 1024)
	o.VisitStep = cmp.Or(o.VisitStep, 1000)
	return o
}

// engine returns those of the options that the engine takes.
func (o Options) engine() engine.Options {
	return engine.Options{
		Mailbox:       o.Mailbox,
		SnapshotAfter: o.SnapshotAfter,
		SnapshotStep:  o.SnapshotStep,
		VisitStep:     o.VisitStep,
		Go:            o.Go,
		Clock:         o.Clock,
		Monotonic:     o.Monotonic,
	}
}

// Shard is the host of queues on one engine. The engine's
// goroutine owns all fields but spare, sinks and lookups.
type Shard struct {
	*engine.Engine
	tx    *engine.Tx
	opts  Options
	spare sync.Pool // of *[]Delivery: slices for deliveries to sinks
	sinks sinks

	entities map[ID]*entity
	nextID   ID
	// certainAt is how many lost records a replay had met when a record showed nextID.
	certainAt uint64

	consumers      map[ConsumerID]*consumer      // attached to any queue
	sessionWaiters map[ConsumerID]*sessionWaiter // of any queue

	consumersPending []*consumer    // with deliveries that wait for the disk
	consumersReady   []*consumer    // with deliveries for their sinks in this step
	dirty            []*hostedQueue // queues to look at before the step ends
	assignedSeqs     []*hostedQueue // queues that assigned numbers in this step
	fenced           []*hostedQueue // queues whose fence is in the open group
	touched          []*entity      // entities with a published count to record
	measured         measured
	eff              queue.Effects
	sending          scratch        // of one send
	memory           budget.Counter // of Options.Stored
	reserve          budget.Counter // of Options.Reserve
	toWeigh          []*hostedQueue // queues that have changed in this step
	claimed          int64          // charged for sends of this step
	memoryFree       int64          // when the step began
	seen             queue.Delivery // passed to observers by reference, so that it costs no allocation
	cache            *bodies.Cache
	stranded         []stranded
	stopping         bool         // there are no more steps: what is left returns now
	onDamage         func(Damage) // nil is none
	dispatchLeft     int          // messages that this step may still deliver
	looked           int          // consumers that got nothing; see look
	confirmed        bool         // the first step has begun

	isCached func(queue.Ref) bool   // whether a body is in the cache
	alloc    func(n int) []Delivery // deliverySlice
	loadCtx  context.Context        // of reads for callers that have none: it never ends
	lookups  atomic.Uint64          // of bodies that were moved
}

// Open claims a shard of the journal and replays its history. The caller then
// calls Run, or Step by hand.
func Open(ctx context.Context, j journal.Journal, number journal.Shard, opts Options) (*Shard, error) {
	shards, err := OpenAll(ctx, j, []journal.Shard{number}, opts)
	if err != nil {
		return nil, err
	}
	return shards[0], nil
}

// OpenAll opens several shards in one pass over the journal, unless ctx ends before.
func OpenAll(ctx context.Context, j journal.Journal, numbers []journal.Shard, opts Options) ([]*Shard, error) {
	var shards []*Shard
	_, err := engine.Open(ctx, j, numbers, opts.engine(), func(e *engine.Engine, tx *engine.Tx) engine.Host {
		s := newShard(ctx, e, tx, opts.withDefaults())
		shards = append(shards, s)
		return (*host)(s)
	})
	if err != nil {
		return nil, err
	}
	return shards, nil
}

func newShard(ctx context.Context, e *engine.Engine, tx *engine.Tx, opts Options) *Shard {
	s := &Shard{
		Engine:   e,
		tx:       tx,
		opts:     opts,
		entities: make(map[ID]*entity),

		consumers:      make(map[ConsumerID]*consumer),
		sessionWaiters: make(map[ConsumerID]*sessionWaiter),

		nextID:  firstID,
		memory:  budget.NewCounterIn(opts.Stored, memoryPiece),
		reserve: budget.NewCounterIn(opts.Reserve, 1), // in no pieces: it is used rarely, and others need the rest
		cache:   bodies.NewCache(opts.CacheBytes),
		loadCtx: context.WithoutCancel(ctx),
	}
	s.isCached = func(ref queue.Ref) bool { return s.cache.Get(ref) != nil }
	s.alloc = s.deliverySlice
	return s
}

// dismiss ends all consumers. Deliveries that their sinks have not got are returned.
// Settlements that need no bodies are done first: nobody may wait for their answer.
func (s *Shard) dismiss(err error) {
	s.stopping = true
	s.retryStranded()
	for _, e := range s.sorted() {
		for _, hq := range e.parts {
			for _, p := range slices.Clone(hq.parked) {
				p.complete(s)
			}
			for _, c := range hq.consumers {
				s.withdraw(c)
			}
			hq.end(func(tell func(error)) { tell(err) })
		}
	}
}
