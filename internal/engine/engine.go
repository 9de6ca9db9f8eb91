// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/engine/retention"
	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/machine"
)

// Errors of commands. Their texts name the shard, which is what an operator knows.
var (
	// ErrBusy means that the mailbox is full.
	ErrBusy = errors.New("engine: mailbox is full")
	// ErrDiskFull means that the journal has no space for anything new.
	ErrDiskFull = errors.New("engine: disk is full")
	// ErrTooLarge means that something does not fit into the journal.
	ErrTooLarge = journal.ErrTooLarge
	// ErrStopped means that the engine has stopped and answers nothing more.
	ErrStopped = errors.New("engine: stopped")
	// ErrMoved means that another owner has claimed the history, in this
	// process or another. The engine has stopped; others are not affected.
	ErrMoved = journal.ErrFenced
	// ErrUnfinished is what Run returns if the disk took too long when it was
	// stopped. What is missing was never reported as durable.
	ErrUnfinished = errors.New("engine: stopped before everything was durable")
)

// Options tune an engine; the zero value is useful.
type Options struct {
	// Mailbox is how many commands may wait; default 65,536.
	Mailbox int
	// SnapshotAfter is how many bytes an engine writes at least between two
	// snapshots; default 64 MiB.
	SnapshotAfter uint64
	// BodiesStay says that no body is ever moved: machines refer to many bodies by one
	// Ref, and space is freed by segments in which nothing lives any more. There is then
	// a snapshot for each segment that is written, or for each SnapshotAfter if that is
	// less, so that a replay reads about one segment.
	BodiesStay bool
	// SnapshotStep is how many items one step of a snapshot visits; default 2,000.
	SnapshotStep int
	// VisitStep is how many items one step of an operation visits that is done in
	// steps; default 1,000.
	VisitStep int
	// Go runs work of an engine beside its goroutine, which may wait for the disk:
	// reading bodies, telling the journal what it may free. Default: on a goroutine
	// that Run waits for. The caller of Step decides here when it runs.
	Go func(s journal.Shard, work func())
	// Clock is the time by which Run decides; nil is one over the clocks of the
	// system. All engines of a process should share one.
	Clock *clock.Clock
	// Monotonic is the clock by which a lease of the journal ends; default
	// time.Now.
	Monotonic func() time.Time
}

func (o Options) withDefaults() Options {
	o.Mailbox = cmp.Or(o.Mailbox, 1<<16)
	o.SnapshotAfter = cmp.Or(o.SnapshotAfter, 64<<20)
	o.SnapshotStep = cmp.Or(o.SnapshotStep, 2000)
	o.VisitStep = cmp.Or(o.VisitStep, 1000)
	if o.Clock == nil {
		o.Clock = clock.New(nil)
	}
	if o.Monotonic == nil {
		o.Monotonic = time.Now
	}
	return o
}

// Engine is one single writer. All fields but mail, work and counters are owned by the
// goroutine that calls Step.
type Engine struct {
	opts    Options
	journal journal.Journal
	claim   journal.Claim
	host    Host
	mail    *mailbox
	tx      Tx

	units     map[uint64]*Unit
	deadlines deadlines        // units by the time they next need Tick
	eff       *machine.Effects // the records of the open group
	group     group            // what else belongs to it
	waiting   []commit         // appended, not yet durable; ascending (invariant 1)
	delayed   []Command        // wait until the journal is not busy, in order
	append    appendArgs       // of one journal append, for reuse
	fetches   fetches
	stepwise  stepwise   // operations that take more than one step
	dropped   []*dropped // units whose bodies are being freed
	live      retention.Liveness
	snapshot  snapshotter
	looked    look              // when it was last asked whether a snapshot is worth it
	written   retention.Written // bytes of records
	losses    Losses            // of the history that was replayed
	reserved  reserve
	nextTake  int   // how many commands the next step takes
	needs     Needs // of the command that stores bodies next; zero is not known

	work     sync.WaitGroup  // what runs beside the engine
	ctx      context.Context // of that work
	cancel   context.CancelFunc
	readCtx  context.Context // of the part of it that reads bodies
	endReads context.CancelFunc
	counters counters

	// groupLimit is how much a step gathers before it appends: a group must
	// fit into a segment.
	groupLimit int
	tail       journal.Position // of the last record appended
	durable    journal.Position // up to which everything is durable
	full       bool
	failed     error
	// stuck says that the open group could not be appended, because the disk is
	// full and the reserve used up. Nothing else happens before it is.
	stuck      bool
	stuckSince time.Time // zero while it is not
	// delayedUntil is when to try again what is delayed, at the latest.
	delayedUntil time.Time
	retryAt      time.Time // when to try again what failed for lack of space
	heardAt      time.Time // when the journal last said that something became durable
	now          time.Time // of the step; never goes back
	commitBy     time.Time // when to commit at the latest records without an acknowledgement; zero without any
}

// Clock returns the time by which the engine decides. It may be called from any
// goroutine.
func (e *Engine) Clock() *clock.Clock { return e.opts.Clock }

// Submit posts a command that adds work; it never blocks. ErrBusy means that too many
// commands wait, ErrStopped that the engine has stopped.
func (e *Engine) Submit(c Command) error { return e.mail.tryPush(c) }

// SubmitReserved posts a command that is bounded elsewhere, by credit or by a waiting
// caller: it is refused only if the engine has stopped.
func (e *Engine) SubmitReserved(c Command) error { return e.mail.push(c) }

// Read reads bodies; it may wait for the disk. It may be called from any goroutine.
func (e *Engine) Read(ctx context.Context, reads []journal.Read) { e.journal.Read(ctx, reads) }

// Run serves the mailbox until ctx ends and what was accepted is durable. It
// returns nil then, or what the journal failed with: ErrMoved concerns this engine
// only. If ctx, once it has ended, has
// a deadline, Run waits for the disk until then and returns ErrUnfinished.
func (e *Engine) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer e.cancel()
	for {
		began := time.Now()
		e.Step(e.opts.Clock.Now())
		e.counters.stepped(time.Since(began))
		e.publish()
		if e.failed != nil {
			e.stop(e.failed)
			e.counters.moved.Store(errors.Is(e.failed, ErrMoved))
			e.cancel() // its results are dropped
			e.work.Wait()
			return fmt.Errorf("shard %d: %w", e.claim.Shard, e.failed)
		}
		var due <-chan time.Time // nil, so never ready, while nothing is due
		if at, ok := e.NextDeadline(); ok {
			timer.Reset(e.opts.Clock.Until(at))
			due = timer.C
		}
		select {
		case <-e.mail.wake:
		case <-due:
		case <-ctx.Done():
			err := e.drain(ctx)
			e.stop(ErrStopped)
			e.endReads()                // their results are dropped
			if err != nil && !e.stuck { // the disk hangs, and with it the work; or it is not needed
				e.cancel()
			}
			e.finishWork(ctx)
			if err == nil {
				err = e.releaseClaim(ctx)
			}
			return err
		}
	}
}

// finishWork waits for the work beside the engine, until the deadline of ctx.
func (e *Engine) finishWork(ctx context.Context) {
	if at, ok := ctx.Deadline(); ok {
		defer time.AfterFunc(time.Until(at), e.cancel).Stop()
	}
	e.work.Wait()
}

// drain takes nothing new, applies what was accepted, and waits until it is
// durable: after a clean stop every outcome is known. The journal must run on. A
// disk that hangs is waited for until the deadline of ctx.
func (e *Engine) drain(ctx context.Context) error {
	e.mail.close(ErrStopped)
	e.stepwise.closed = true
	for e.Step(e.opts.Clock.Now()); e.Posted() > 0 && e.failed == nil && !e.stuck && !e.expired(); {
		e.Step(e.opts.Clock.Now())
	}
	if e.failed == nil && e.expired() {
		return fmt.Errorf("shard %d: %w: its lease is over", e.claim.Shard, ErrUnfinished)
	}
	if e.failed == nil {
		e.host.Drain()
		e.commit()
	}
	var late <-chan time.Time // nil, so never ready, without a limit
	if at, ok := ctx.Deadline(); ok {
		late = time.After(time.Until(at))
	}
	for e.durable < e.tail && e.failed == nil {
		select {
		case <-e.mail.wake:
			e.Step(e.opts.Clock.Now())
		case <-late:
			return fmt.Errorf("shard %d: %w: %d groups wait for the disk", e.claim.Shard, ErrUnfinished, len(e.waiting))
		}
	}
	if e.stuck && e.failed == nil {
		return fmt.Errorf("shard %d: %w: the disk is full", e.claim.Shard, ErrUnfinished)
	}
	return e.failed
}

// stop answers everything that still waits.
func (e *Engine) stop(err error) {
	e.mail.close(err)
	for _, c := range e.delayed {
		c.Fail(err)
	}
	e.delayed = nil
	for {
		cs, _ := e.mail.take(maxTake)
		for _, c := range cs {
			c.Fail(err)
		}
		if len(cs) < maxTake {
			break
		}
	}
	for _, c := range append(e.waiting, commit{replies: e.group.replies}) {
		for _, r := range c.replies {
			r.to.Reply(cmp.Or(r.err, err))
		}
	}
	e.waiting = nil
	e.resetGroup()
	e.stepwise.stop(err)
	e.host.Stopped(err)
}

// Step does everything there is to do at now: releases what became durable, applies
// the mailbox, ticks what is due, serves, and appends what all of it wrote as one
// group.
func (e *Engine) Step(now time.Time) {
	if now.After(e.now) {
		e.now = now
	}
	if e.expired() {
		return
	}
	e.apply()
	if e.failed != nil || e.silenced() { // since the step began
		return
	}
	p := Permit{below: e.durable + 1, tail: e.tail}
	if e.stuck { // what depends on the open group does not leave before that has a position
		p.tail = 0
	}
	e.host.Release(p)
}

// expired reports whether the lease of the claim is over. Another owner may have
// claimed the history then, so nothing is answered, released or accepted until the
// journal has prolonged it, or has said that the claim is lost.
func (e *Engine) expired() bool {
	if !e.mail.limited.Load() {
		return false
	}
	st := e.mail.lastStatus()
	return st.Err == nil && e.lost(st)
}

// silenced reports whether nothing may leave the engine, according to the last status of the journal.
// It is looked at before anything does, since a step may take longer than the lease.
func (e *Engine) silenced() bool { return e.mail.limited.Load() && e.lost(e.mail.lastStatus()) }

// lost reports whether another owner has the history, or may have it.
func (e *Engine) lost(st journal.Status) bool {
	return errors.Is(st.Err, ErrMoved) || !st.Lease.IsZero() && !e.opts.Monotonic().Before(st.Lease)
}

// releaseClaim ends the claim, so that a successor need not wait. Everything is durable.
func (e *Engine) releaseClaim(ctx context.Context) error {
	at, limited := ctx.Deadline()
	ctx = context.WithoutCancel(ctx)
	if limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at)
		defer cancel()
	}
	err := e.journal.Release(ctx, e.claim)
	switch {
	case err == nil, errors.Is(err, ErrMoved):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("shard %d: %w: release: %w", e.claim.Shard, ErrUnfinished, err)
	}
	return fmt.Errorf("shard %d: release: %w", e.claim.Shard, err)
}

// apply is Step without the release. It ends early if there is no space for a group.
func (e *Engine) apply() {
	if e.stuck && !e.retry() {
		e.refuseWaiting()
		return
	}
	cs, status := e.mail.take(e.nextTake)
	before := e.written.All
	e.observe(status)
	if e.failed != nil {
		for _, c := range cs {
			c.Fail(e.failed)
		}
		return
	}
	e.noteShort()
	e.host.BeginStep()
	if len(e.delayed) > 0 && !status.Busy {
		e.resume()
		if e.stuck {
			e.mail.putBack(cs)
			return
		}
	}
	for i, c := range cs {
		c.Apply(&e.tx)
		if e.commitIfFull(); e.stuck {
			e.mail.putBack(cs[i+1:])
			return
		}
	}
	e.nextTake = nextTake(len(cs), e.written.All-before)
	if e.tick(); !e.stuck {
		e.nextStep()
	}
	e.host.Serve()
	e.startFetches()
	if e.stuck {
		return // the rest has its turn when there is space
	}
	e.maintain()
	if e.mustCommit() {
		e.commit()
	}
}

// NextDeadline reports when Step next has work of its own accord, if ever.
func (e *Engine) NextDeadline() (time.Time, bool) {
	switch {
	case e.expired():
		return time.Time{}, false // the journal says when it goes on
	case e.stuck:
		return e.retryAt, true
	case e.host.Serving(), e.snapshot.due(e.durable), e.stepwise.due(e.durable):
		return e.now, true
	}
	at, ok := e.deadlines.next()
	sooner := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if e.reserved.short { // a change of the journal's status is a reason, too
		sooner(e.now.Add(retryFull))
	}
	if !e.commitBy.IsZero() {
		sooner(e.commitBy)
	}
	if e.snapshot.retain != nil {
		sooner(e.retryAt)
	}
	if len(e.delayed) > 0 && !e.mail.lastStatus().Busy { // else a status ends it
		sooner(e.delayedUntil)
	}
	if t, quiet := e.quietAt(); quiet {
		sooner(t)
	}
	return at, ok
}

// background runs work beside the engine.
func (e *Engine) background(work func()) { e.opts.Go(e.claim.Shard, work) }

// observe takes the journal's news and releases what became durable.
func (e *Engine) observe(st journal.Status) {
	if st.Err != nil && e.failed == nil {
		e.failed = st.Err
	}
	e.full = st.Full
	if e.lost(st) {
		return
	}
	more := st.Durable > e.durable
	if more {
		e.durable, e.heardAt = st.Durable, e.now
		e.looked.quiet = false
	}
	e.giveReplies() // some may have waited for the lease
	if more {
		e.snapshot.durable(e)
		e.host.Durable(Permit{below: e.durable + 1})
	}
}

// tick has the host tell the time to the machines whose deadline has come.
func (e *Engine) tick() {
	for range 64 { // units; the rest has its turn in the next step
		u := e.deadlines.due(e.now)
		if u == nil {
			return
		}
		done := true
		if e.tooShortToTick() {
			e.reserved.short = true
			done = e.host.TickShort(u)
		} else {
			e.host.Tick(u)
		}
		if e.deadlines.set(u); !done {
			e.deadlines.putOff(u, e.now.Add(retryFull))
		}
		if e.commitIfFull(); e.stuck {
			return
		}
	}
}

func (e *Engine) add(u *Unit) {
	u.index = -1
	u.prefix = unitPrefix(u.ID)
	e.units[u.ID] = u
}

// forget takes units out of memory. Their bodies are still counted. It passes the units that
// have changed once, however many are dropped: both can be hundreds of thousands.
func (e *Engine) forget(us []*Unit) {
	resized := false
	for _, u := range us {
		e.deadlines.remove(u)
		e.reserved.forget(u)
		u.dropped = true
		delete(e.units, u.ID)
		resized = resized || u.resized
	}
	if resized {
		e.reserved.resized = slices.DeleteFunc(e.reserved.resized, func(u *Unit) bool { return u.dropped })
	}
}
