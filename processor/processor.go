// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
)

// Processor is one instance of a fleet that reads an event hub together. The fields are
// settings: they must not change after Run was called. The zero value of each has a
// useful meaning; only Client and Handle are required. A processor must not be copied.
type Processor struct {
	// Client connects to the broker. It may be lazy: the processor waits for the broker.
	Client *client.Client
	// Hub is the event hub to read; "" means the entity that the client's address names.
	Hub string
	// Group is the consumer group that the fleet reads as; default $Default.
	Group string

	// Handle is called with events of one partition, in order. Calls for one partition
	// take turns, those for several run at the same time. The slice must not be kept.
	Handle func(ctx context.Context, p *Partition, events []*client.Received) error
	// OnError is told of what went wrong and is being dealt with: failed handlers, a store
	// that does not answer, lost partitions. It must not block. Default: a line in Log.
	OnError func(error)

	// ID is the identity of this instance, unlike those of all others; default: random. One
	// that stays the same gets its partitions back after a restart, see Keep.
	ID string
	// Name is what people are shown for the instance; default: the name of the machine.
	Name string
	// Keep is how long the partitions of this instance wait for it when its connection is
	// lost; default: half a second. It needs an ID.
	Keep time.Duration

	// Store makes the instances share the hub through a store, by the rules of the SDKs for
	// Event Hubs, so that they can be in one fleet. Default nil: the broker coordinates.
	Store CheckpointStore
	// Strategy is how fast partitions are taken in store mode; default Balanced.
	Strategy Strategy
	// Interval is the time from one look at the store to the next, default 10 s; Expiry is
	// when a record that nobody renews is free, default six times that.
	Interval, Expiry time.Duration

	// Start is where to begin in partitions without a checkpoint; default [Earliest].
	// StartOf says it for single partitions.
	Start   Position
	StartOf map[string]Position

	// Checkpoint says when the position in a partition is saved; default [EveryBatch].
	Checkpoint CheckpointPolicy
	// Batch is how many events Handle gets at most; default 100.
	Batch int
	// Prefetch is about how many events of each partition are fetched ahead of the handler,
	// and with Async how many are unfinished at most; default ten batches. About 4 MiB of a
	// partition are fetched at most, whatever their number.
	Prefetch int
	// PrefetchBytes is about how many bytes of events are on their way, wait, or are in the hands
	// of handlers, of all partitions together; default 64 MiB. Events are decoded when Handle gets
	// them. A partition fetches at least one delivery, of about 60 KiB or of one larger batch.
	PrefetchBytes int
	// Async means that an event is not handled when Handle returns, but when
	// [Partition.Done] is called for it. Checkpoints cover what is done without a gap. No
	// more are begun when one that is not done has about 100,000 behind it.
	Async bool

	// AtGap says what a partition does when events are gone that were not handled, such as
	// those older than the retention; default [GoOn].
	AtGap GapPolicy

	// Timeout is how long one call of Handle may take; default: as long as it likes. Then its
	// context ends, with ErrTimeout as the cause, and if it returns an error it has failed. If it
	// goes on for five seconds more, the partition is released and goes to another instance;
	// this one does not get it back for CoolDown, nor before that call has returned.
	Timeout time.Duration

	// Attempts is how often Handle is called for events that it fails for; default 3.
	// After that each event of the batch is tried by itself.
	Attempts int
	// Retry is the time to the next attempt; default exponential from 100 ms to 10 s.
	Retry func(failures int) time.Duration
	// DeadLetter is the queue to which events go that Handle cannot do. If it is empty, the
	// partition stands still for CoolDown, default one minute, and the event is tried
	// again: events are never skipped.
	DeadLetter string
	CoolDown   time.Duration
	// Grace is how long handlers may go on after Run's context has ended; default 30 s.
	// Then their contexts end, with ErrStopping as the cause.
	Grace time.Duration

	// Log gets what an operator should know; default [slog.Default].
	Log *slog.Logger

	link  broker // of tests; nil: Client
	live  atomic.Pointer[run]
	mu    sync.Mutex
	pause map[string]bool // partitions that are paused here; guarded by mu
}

// Strategy is how an instance takes partitions in store mode.
type Strategy uint8

// The strategies.
const (
	// Balanced takes one partition in each interval.
	Balanced Strategy = iota
	// Greedy takes its whole share at once.
	Greedy
)

// Status is a snapshot of a processor.
type Status struct {
	ID         string
	Partitions []PartitionStatus // those it owns, by name
	Hub        int               // partitions of the hub; 0 if not known yet

	Handled, Failed, DeadLettered, Panics, Lost uint64
	Skipped                                     uint64 // events that were gone; see [GapError]
}

// PartitionStatus is a snapshot of one partition that the processor owns.
type PartitionStatus struct {
	ID         string
	Epoch      int64
	State      string        // "running", "paused", "cooling down", "gap", "moving", or "stuck"
	Handled    client.SeqNo  // of the last event that was handled without a gap; -1 none yet
	Checkpoint client.SeqNo  // that was saved last; -1 none
	Lag        time.Duration // see [Partition.Lag]
	Waiting    int           // events fetched that the handler has not begun with
}

// Run reads and handles events until ctx ends; then it stops gracefully: handlers end,
// checkpoints are saved and the partitions given to the others. It returns nil then, or
// the error that makes it useless to go on: a wrong setting ([ErrInvalid]), missing
// rights, or another process with the same ID ([client.ErrTaken]). A broker or a store
// that cannot be reached is waited for. [ErrHandlerStuck] means that handlers ignored
// the end of their contexts.
func (p *Processor) Run(ctx context.Context) error {
	s, err := p.checked()
	if err != nil {
		return err
	}
	r := newRun(ctx, p, s)
	if !p.live.CompareAndSwap(nil, r) {
		return fmt.Errorf("%w: processor %q runs already", ErrInvalid, s.id)
	}
	defer p.live.Store(nil)
	return r.loop(ctx)
}

// Pause stops the handling of a partition by this instance, which goes on owning it. The
// batch in hand is finished.
func (p *Processor) Pause(partition string) { p.setPause(partition, true) }

// Resume undoes Pause.
func (p *Processor) Resume(partition string) { p.setPause(partition, false) }

func (p *Processor) setPause(partition string, on bool) {
	p.mu.Lock()
	if p.pause == nil {
		p.pause = map[string]bool{}
	}
	p.pause[partition] = on
	p.mu.Unlock()
	if r := p.live.Load(); r != nil {
		r.pauseChanged(partition)
	}
}

func (p *Processor) paused(partition string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pause[partition]
}

// Rewind moves the position of a partition, backwards or forwards, for the whole fleet.
// Its owner begins there at once. In store mode the partition must be this instance's own;
// otherwise that of another instance needs a key with Manage.
func (p *Processor) Rewind(ctx context.Context, partition string, to Position) error {
	r := p.live.Load()
	if r == nil {
		return fmt.Errorf("%w: rewind of partition %s", ErrNotRunning, partition)
	}
	return r.rewind(ctx, partition, to)
}

// Status returns the present state. It is empty while the processor does not run.
func (p *Processor) Status() Status {
	if r := p.live.Load(); r != nil {
		return r.status()
	}
	return Status{ID: p.ID}
}
