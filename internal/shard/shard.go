// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/queue"
)

// Errors of operations.
var (
	// ErrNoEntity means that the entity was dropped, or never was.
	ErrNoEntity = errors.New("shard: no such entity")
	// ErrBusy means that the mailbox is full.
	ErrBusy = errors.New("shard: mailbox is full")
	// ErrDiskFull means that the journal has no room for anything new.
	ErrDiskFull = errors.New("shard: disk is full")
	// ErrTooLarge means that a message does not fit into the journal.
	ErrTooLarge = journal.ErrTooLarge
	// ErrStopped means that the shard has stopped and answers nothing more.
	ErrStopped = errors.New("shard: stopped")
	// ErrMoved means that another owner has claimed the shard's history, in this
	// process or another. The shard has stopped; others are not affected.
	ErrMoved = journal.ErrFenced
	// ErrUnfinished is what Run returns if the disk took too long when it was
	// told to stop. Nobody was told that what is missing is safe.
	ErrUnfinished = errors.New("shard: stopped before everything was durable")
)

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
	// HandOutStep is how many messages one step hands out to consumers; default
	// 1,024. What waits in the mailbox has its turn between two steps.
	HandOutStep int
	// VisitStep is how many messages one step of an operation visits that is done
	// in steps; default 1,000.
	VisitStep int
	// Go runs work of a shard beside its writer, which may wait for the disk:
	// reading bodies, telling the journal what it may free. Default: on a goroutine
	// that Run waits for. Who steps a shard by hand decides here when it runs.
	Go func(s journal.Shard, work func())
	// NewMonitor makes the monitor of each entity; nil is no monitors.
	NewMonitor NewMonitor
	// Clock is the time by which Run decides about messages; nil is one over
	// the clocks of the system. All shards of a broker should share one.
	Clock *clock.Clock
	// Monotonic is the clock by which a lease of the journal ends; default
	// time.Now.
	Monotonic func() time.Time
}

func (o Options) withDefaults() Options {
	o.Mailbox = cmp.Or(o.Mailbox, 1<<16)
	o.CacheBytes = cmp.Or(o.CacheBytes, 64<<20)
	o.SnapshotAfter = cmp.Or(o.SnapshotAfter, 64<<20)
	o.SnapshotStep = cmp.Or(o.SnapshotStep, 2000)
	o.HandOutStep = cmp.Or(o.HandOutStep, 1024)
	o.VisitStep = cmp.Or(o.VisitStep, 1000)
	if o.Clock == nil {
		o.Clock = clock.New(nil)
	}
	if o.Monotonic == nil {
		o.Monotonic = time.Now
	}
	return o
}

// Shard is one single writer. All fields but mail, spare, work, counters and lookups
// are owned by the goroutine that calls Step.
type Shard struct {
	opts    Options
	journal journal.Journal
	claim   journal.Claim
	mail    *mailbox
	spare   sync.Pool // of *[]Delivery: room for deliveries to sinks

	entities  map[ID]*entity
	nextID    ID
	deadlines deadlines // slots by the time they next need Tick

	step     step        // what the operations of this step have written
	waiting  []commit    // appended, not yet durable; ascending (invariant 1)
	delayed  []op        // sends that wait until the journal is not busy, in order
	holding  []*Consumer // with deliveries that wait for the disk
	handing  []*Consumer // with deliveries for their sinks in this step
	dirty    []*slot     // slots to look at before the step ends
	risen    []*slot     // slots that gave out numbers in this step
	fenced   []*slot     // slots to which messages returned in this step
	eff      queue.Effects
	group    group
	sending  scratch              // of one send
	seen     queue.Delivery       // lent to an observer, so that it costs no memory
	inHand   func(queue.Ref) bool // whether a body is in the cache
	cache    *cache
	fetches  fetches
	stranded []stranded
	onDamage func(Damage) // nil if nobody wants to know
	measured measured
	live     liveness
	snapshot snapshotter
	stepwise stepwise        // operations that take more than one step
	dropped  []*dropped      // entities whose bodies are being freed
	looked   look            // when it was last asked whether one is worth its while
	written  written         // bytes of records
	size     uint64          // of a snapshot, as of the last look
	resized  []*slot         // queues whose part of it may have changed since
	work     sync.WaitGroup  // what runs beside the writer
	ctx      context.Context // of that work
	loadCtx  context.Context // of reads for callers that have none: it never ends
	cancel   context.CancelFunc
	counters counters
	lookups  atomic.Uint64    // of bodies that were moved
	tail     journal.Position // of the last record appended
	// groupLimit is how much a step gathers before it appends: a group must
	// fit into a block.
	groupLimit int
	durable    journal.Position
	full       bool
	failed     error
	// stuck says that the step's group could not be appended, because the disk is
	// full and the reserve used up. Nothing else happens before it is.
	stuck    bool
	handOuts int // messages that this step may still hand out
	// delayedUntil is when to try again what is delayed, at the latest.
	delayedUntil time.Time
	retryAt      time.Time // when to try again what failed for lack of space
	heardAt      time.Time // when the journal last said that something became durable
	now          time.Time // of the step; never goes back
	lazy         time.Time // when to commit at the latest what nobody waits for; zero without any
}

// Clock returns the time by which the shard decides. It may be called from any
// goroutine.
func (s *Shard) Clock() *clock.Clock { return s.opts.Clock }

// Run serves the mailbox until ctx ends and what was accepted is durable. It
// returns nil then, or what the journal failed with: ErrMoved concerns this shard
// only. If ctx, once it has ended, has
// a deadline, Run waits for the disk until then and returns ErrUnfinished.
func (s *Shard) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer s.cancel()
	for {
		began := time.Now()
		s.Step(s.opts.Clock.Now())
		s.counters.stepped(time.Since(began))
		s.tell()
		if s.failed != nil {
			s.stop(s.failed)
			s.counters.moved.Store(errors.Is(s.failed, ErrMoved))
			s.work.Wait()
			return fmt.Errorf("shard %d: %w", s.claim.Shard, s.failed)
		}
		var due <-chan time.Time // nil, so never ready, while nothing is due
		if at, ok := s.NextDeadline(); ok {
			timer.Reset(s.opts.Clock.Until(at))
			due = timer.C
		}
		select {
		case <-s.mail.wake:
		case <-due:
		case <-ctx.Done():
			err := s.drain(ctx)
			s.stop(ErrStopped)
			if errors.Is(err, ErrUnfinished) && !s.stuck { // the disk hangs, and with it the work
				s.cancel()
			}
			s.work.Wait()
			if err == nil {
				err = s.releaseClaim(ctx)
			}
			return err
		}
	}
}

// drain takes nothing new, applies what was accepted, and waits until it is
// durable: a stop in good order leaves nobody in doubt. The journal must run on. A
// disk that hangs is waited for until the deadline of ctx.
func (s *Shard) drain(ctx context.Context) error {
	s.mail.close(ErrStopped)
	s.stepwise.closed = true
	for s.Step(s.opts.Clock.Now()); s.Posted() > 0 && s.failed == nil && !s.stuck && !s.expired(); {
		s.Step(s.opts.Clock.Now())
	}
	if s.failed == nil && s.expired() {
		return fmt.Errorf("shard %d: %w: its lease is over", s.claim.Shard, ErrUnfinished)
	}
	if s.failed == nil {
		s.dismiss(ErrStopped)
		s.commit()
	}
	var late <-chan time.Time // nil, so never ready, without a limit
	if at, ok := ctx.Deadline(); ok {
		late = time.After(time.Until(at))
	}
	for s.durable < s.tail && s.failed == nil {
		select {
		case <-s.mail.wake:
			s.Step(s.opts.Clock.Now())
		case <-late:
			return fmt.Errorf("shard %d: %w: %d groups wait for the disk", s.claim.Shard, ErrUnfinished, len(s.waiting))
		}
	}
	if s.stuck && s.failed == nil {
		return fmt.Errorf("shard %d: %w: the disk is full", s.claim.Shard, ErrUnfinished)
	}
	return s.failed
}

// stop answers everything that still waits.
func (s *Shard) stop(err error) {
	s.mail.close(err)
	for _, op := range s.delayed {
		op.fail(err)
	}
	s.delayed = nil
	for {
		ops, _ := s.mail.take()
		for _, op := range ops {
			op.fail(err)
		}
		if len(ops) < most {
			break
		}
	}
	for _, c := range append(s.waiting, commit{acks: s.step.acks}) {
		for _, a := range c.acks {
			a.to.answer(cmp.Or(a.err, err))
		}
	}
	s.waiting = nil
	s.resetStep()
	s.stepwise.stop(err)
	for _, e := range s.sorted() {
		for _, sl := range e.parts {
			sl.end(err)
		}
	}
}

// dismiss ends all consumers; what they were not given yet goes back.
func (s *Shard) dismiss(err error) {
	for _, e := range s.sorted() {
		for _, sl := range e.parts {
			for _, c := range sl.consumers {
				s.withdraw(c)
			}
			sl.end(err)
		}
	}
}

// Step does everything there is to do at now: takes what became durable, applies
// the mailbox, ticks what is due, hands out messages, and appends what all of it
// wrote as one group.
func (s *Shard) Step(now time.Time) {
	if now.After(s.now) {
		s.now = now
	}
	if s.expired() {
		return
	}
	s.apply()
	s.hand()
}

// expired reports whether the lease of the claim is over. Another owner may have
// claimed the history then, so nothing is answered, handed out or accepted until the
// journal has prolonged it, or has said that the claim is lost.
func (s *Shard) expired() bool {
	if !s.mail.leased.Load() {
		return false
	}
	st := s.mail.look()
	return !st.Lease.IsZero() && st.Err == nil && !s.opts.Monotonic().Before(st.Lease)
}

// releaseClaim ends the claim, so that a successor need not wait. Everything is durable.
func (s *Shard) releaseClaim(ctx context.Context) error {
	at, limited := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	err := s.journal.Release(ctx, s.claim)
	if err != nil && !errors.Is(err, ErrMoved) {
		return fmt.Errorf("shard %d: release: %w", s.claim.Shard, err)
	}
	return nil
}

// apply is Step without handing out. It ends early if there is no space for a group.
func (s *Shard) apply() {
	if s.stuck && !s.retry() {
		return
	}
	s.handOuts = s.opts.HandOutStep
	ops, status := s.mail.take()
	s.observe(status)
	if s.failed != nil {
		for _, op := range ops {
			op.fail(s.failed)
		}
		return
	}
	if len(s.stranded) > 0 && !s.full {
		s.retryStranded()
	}
	if len(s.delayed) > 0 && !status.Busy {
		s.resumeSends()
		if s.stuck {
			s.mail.putBack(ops)
			return
		}
	}
	for i, op := range ops {
		op.run(s)
		if s.filled(); s.stuck {
			s.mail.putBack(ops[i+1:])
			return
		}
	}
	if s.tick(); !s.stuck {
		s.goOn()
	}
	s.serve()
	s.startFetches()
	if s.stuck {
		return // the rest has its turn when there is space
	}
	s.maintain()
	if s.due() {
		s.commit()
	}
}

// NextDeadline reports when Step next has work of its own accord, if ever.
func (s *Shard) NextDeadline() (time.Time, bool) {
	switch {
	case s.expired():
		return time.Time{}, false // the journal says when it goes on
	case s.stuck:
		return s.retryAt, true
	case len(s.dirty) > 0, s.snapshot.due(s.durable), s.stepwise.due(s.durable):
		return s.now, true
	}
	at, ok := s.deadlines.next()
	sooner := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if !s.lazy.IsZero() {
		sooner(s.lazy)
	}
	if s.snapshot.keep != nil {
		sooner(s.retryAt)
	}
	if len(s.delayed) > 0 && !s.mail.look().Busy { // else its end is told
		sooner(s.delayedUntil)
	}
	if t, quiet := s.quietAt(); quiet {
		sooner(t)
	}
	return at, ok
}

// background runs work beside the writer.
func (s *Shard) background(work func()) { s.opts.Go(s.claim.Shard, work) }

// observe takes the journal's news and releases what became durable.
func (s *Shard) observe(st journal.Status) {
	if st.Err != nil && s.failed == nil {
		s.failed = st.Err
	}
	s.full = st.Full
	if st.Durable <= s.durable {
		return
	}
	s.durable, s.heardAt = st.Durable, s.now
	s.looked.quiet = false
	n := 0
	for n < len(s.waiting) && s.waiting[n].at <= s.durable {
		c := &s.waiting[n]
		for _, a := range c.acks {
			a.give()
		}
		s.step.recycle(c.acks)
		n++
	}
	if n > 0 {
		rest := copy(s.waiting, s.waiting[n:])
		clear(s.waiting[rest:])
		s.waiting = s.waiting[:rest]
	}
	s.snapshot.durable(s)
	s.unhold()
}

// tick runs the machines whose time has come.
func (s *Shard) tick() {
	for range 64 { // slots; the rest has its turn in the next step
		sl := s.deadlines.due(s.now)
		if sl == nil {
			return
		}
		s.withdrawExpired(sl)
		sl.q.Tick(s.now, s.out(sl))
		s.absorb(sl)
		sl.checkSessions(s)
		s.deadlines.set(sl)
		if s.filled(); s.stuck {
			return
		}
	}
}
