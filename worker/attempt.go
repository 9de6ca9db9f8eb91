// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker/internal/slots"
)

// attempt is one delivery of a message, from its arrival until it is settled. Two
// goroutines belong to it: one runs the handler; the keeper renews the lock, watches
// the timeout, waits for a retry and settles.
type attempt struct {
	delivery
	id              slots.ID
	run             *run
	task            *Task
	preemptedBefore int
	preempted       atomic.Int32 // in this run

	ctx    context.Context // of the handler
	cancel context.CancelCauseFunc

	asked      atomic.Bool // to wait in place; a hint for Yield
	suspension suspension
	changed    chan struct{} // capacity 1: the suspension has changed
	lockEnd    atomic.Int64  // since the start of run, by our clock
	renewed    atomic.Bool   // the lock was renewed: it survives a restart of the broker
	handling   bool          // the handler runs; owned by the keeper

	started  bool          // owned by loop
	returned bool          // the handler has, or is given up; owned by loop
	givenUp  chan struct{} // closed by loop
	done     chan struct{} // closed when the handler has returned
	began    time.Time     // written before the handler starts
	result   result        // valid after done
}

// result is how a handler ended.
type result struct {
	err   error
	panic string // value and stack; empty if it returned
}

func newAttempt(r *run, id slots.ID, d delivery) *attempt {
	a := &attempt{
		delivery: d, id: id, run: r,
		changed: make(chan struct{}, 1), givenUp: make(chan struct{}), done: make(chan struct{}),
	}
	// The handler has a copy, because renewals change the original.
	copied := *d.Received
	a.task = &Task{Received: &copied, Pool: r.settings.name, attempt: a}
	a.preemptedBefore = intProperty(d.Received, propertyPreemptions)
	a.ctx, a.cancel = context.WithCancelCause(r.life)
	a.suspension.hooking, a.suspension.givenUp = make(chan struct{}, 1), make(chan struct{})
	a.noteLock(time.Now(), a.LockedUntil)
	return a
}

// intProperty reads a number that a broker may have made another type of.
func intProperty(m *client.Received, name string) int {
	var n int
	if v, ok := m.Properties[name]; ok {
		_, _ = fmt.Sscan(fmt.Sprint(v), &n)
	}
	return max(n, 0)
}

// refuse hands a message back that was not started.
func (a *attempt) refuse() {
	a.run.wg.Go(func() {
		defer a.finish()
		defer a.cancel(nil)
		ctx, cancel := context.WithTimeout(a.run.life, settleTimeout)
		defer cancel()
		if err := a.handBack(ctx); err != nil {
			a.run.settings.log.Debug("message not released", "message", a.SeqNo, "err", err)
		}
		a.session.close()
	})
}

// start runs the handler.
func (a *attempt) start() {
	a.started, a.began = true, time.Now()
	// Not in a group: Run does not wait for a handler that ignores its context. The
	// keeper waits for it, or is told to give it up.
	go a.handle()
	a.run.wg.Go(a.keep)
}

// handle runs the handler and catches what it throws. Its end is noted in a deferred
// call, so that runtime.Goexit in a handler is noted too.
func (a *attempt) handle() {
	a.result.panic = "the handler ended its goroutine"
	defer close(a.done)
	defer func() {
		if v := recover(); v != nil {
			a.result.panic = fmt.Sprintf("%v\n\n%s", v, debug.Stack())
		}
	}()
	a.run.observe(func(o Observer) { o.Started(a.task) })
	err := a.run.settings.handler.Handle(a.ctx, a.task)
	a.result = result{err: err}
}

// keep keeps the lock until the handler has returned, then settles.
func (a *attempt) keep() {
	defer a.finish()
	a.handling = true
	lost := a.hold(a.done, nil)
	a.handling = false
	a.dropHooks()
	defer a.cancel(nil)
	if a.isGivenUp() {
		a.settle(a.handBack, HandedBack, errHandlerGivenUp)
		a.session.close()
		return
	}
	took := time.Since(a.began)
	if a.session != nil {
		a.keepSession(lost, took)
		return
	}
	a.run.post(func(now time.Time) []slots.Action {
		a.returned = true
		a.run.restAfter(now, a.began, a.result) // before another message is asked for
		return a.run.machine.Ended(now, a.id)
	})
	a.conclude(lost, took)
}

var errHandlerGivenUp = errors.New("worker: handler given up")

func (a *attempt) isGivenUp() bool {
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// finish has loop forget the attempt.
func (a *attempt) finish() {
	if a.session == nil {
		a.run.supply.settled(a.from)
	}
	a.run.post(func(now time.Time) []slots.Action {
		if a.run.attempts[a.id] == a { // else the next message of the session has its place
			delete(a.run.attempts, a.id)
		}
		return nil
	})
}

// end ends the handler's context. A task that a hook has stopped is continued, so that
// it can notice.
func (a *attempt) end(cause error) {
	a.cancel(cause)
	s := &a.suspension
	s.mu.Lock()
	hooked := s.hooks.stop != nil
	s.mu.Unlock()
	if hooked {
		a.run.wg.Go(a.applyHooks)
	}
}

// endFromKeeper is end for the goroutines of the attempt, which tell loop.
func (a *attempt) endFromKeeper(cause error) {
	a.end(cause)
	a.run.post(func(now time.Time) []slots.Action { return a.run.machine.Leaving(now, a.id) })
}

// look has the keeper look at the suspension.
func (a *attempt) look() {
	select {
	case a.changed <- struct{}{}:
	default: // it has not looked yet, and will
	}
}

// conclude decides what becomes of the message.
func (a *attempt) conclude(lost bool, took time.Duration) {
	err, cause := a.result.err, context.Cause(a.ctx)
	if a.result.panic != "" {
		a.run.pool.totals.panics.Add(1)
		a.poisoned()
		return
	}
	d := asDecision(err)
	switch {
	case err == nil:
		a.settle(func(ctx context.Context) error { return a.from.Complete(ctx, a.Received) }, Completed, nil)
	case lost:
		a.lose(took)
		a.ended(LockLost, err)
	case d == nil && errors.Is(err, ErrUnavailable):
		a.logFailure(errorAttr(err), slog.String("outcome", "handed back"))
		a.lose(took)
		a.settle(a.handBack, HandedBack, err)
	case d != nil && d.outcome == Discarded:
		a.logFailure(errorAttr(err), slog.String("outcome", "discarded"))
		a.settle(func(ctx context.Context) error { return a.from.Complete(ctx, a.Received) }, Discarded, err)
	case d != nil && d.outcome == DeadLettered:
		a.logFailure(errorAttr(err), slog.String("outcome", "dead letter"))
		a.deadLetter(d.reason, text(d.err), err)
	case d != nil:
		a.logFailure(errorAttr(err), slog.Duration("retry after", d.after))
		a.retry(d.after, err)
	case preempted(err, cause) || errors.Is(cause, ErrStopping):
		a.lose(took)
		a.settle(a.handBack, HandedBack, err)
	default:
		after := a.run.backoff(int(a.DeliveryCount) + 1)
		a.logFailure(errorAttr(err), slog.Duration("retry after", after))
		a.retry(after, err)
	}
}

// preempted reports whether a handler returned because it was preempted.
func preempted(err, cause error) bool {
	return errors.Is(err, ErrPreempted) || errors.Is(cause, ErrPreempted) && errors.Is(err, context.Canceled)
}

// lose counts the work of a run that has to be done again, unless it was saved.
func (a *attempt) lose(took time.Duration) {
	if _, saved := a.task.checkpoint(); !saved {
		waited, _ := a.suspendedFor(time.Now())
		a.run.pool.totals.lost.Add(int64(took - waited))
	}
}

// maxDescription bounds the description of a dead letter.
const maxDescription = 4 << 10

// poisoned deals with a message whose handler panicked: the first time it is tried
// again, then it is a dead letter with the stack.
func (a *attempt) poisoned() {
	first, _, _ := strings.Cut(a.result.panic, "\n")
	err := fmt.Errorf("worker: handler panicked: %s", first)
	a.logFailure(slog.String("panic", shortened(a.result.panic, panicText)))
	if a.DeliveryCount > 0 {
		a.deadLetter("HandlerPanicked", a.result.panic, err)
		return
	}
	a.retry(a.run.backoff(1), err)
}

func (a *attempt) deadLetter(reason, description string, err error) {
	if len(description) > maxDescription {
		description = strings.ToValidUTF8(description[:maxDescription], "")
	}
	a.settle(func(ctx context.Context) error {
		return a.from.DeadLetter(ctx, a.Received, reason, description)
	}, DeadLettered, err)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// longestRetry is the longest wait for a retry that the broker takes.
const longestRetry = 366 * 24 * time.Hour

// retry gives the message back as failed, until its time. The broker keeps that time: it
// survives both sides, and any number of messages may wait. With another broker the message
// stays locked here until then, unless the pool stops or too many wait.
func (a *attempt) retry(after time.Duration, err error) {
	if after = min(after, longestRetry); after > 0 && a.from.Extensions() {
		later := func(ctx context.Context, m *client.Received, properties map[string]any) error {
			return a.from.Retry(ctx, m, after, properties)
		}
		a.settle(func(ctx context.Context) error { return a.giveBack(ctx, later) }, Failed, err)
		return
	}
	if after > 0 && a.run.waiting.Add(1) <= maxWaiting {
		due := time.NewTimer(after)
		lost := a.hold(a.run.stopped, due.C)
		due.Stop()
		if lost {
			a.run.waiting.Add(-1)
			a.ended(LockLost, err)
			return
		}
	}
	if after > 0 {
		a.run.waiting.Add(-1)
	}
	a.settle(func(ctx context.Context) error { return a.giveBack(ctx, a.from.Abandon) }, Failed, err)
}

// handBack releases the message with its checkpoint. It counts as no failure.
func (a *attempt) handBack(ctx context.Context) error {
	return a.giveBack(ctx, a.from.Release)
}

// giveBack gives the message back with its checkpoint, or without it if the broker does
// not take it: the lock would expire otherwise, which counts as a failure.
func (a *attempt) giveBack(ctx context.Context, tell func(context.Context, *client.Received, map[string]any) error) error {
	properties := a.properties()
	err := tell(ctx, a.Received, properties)
	state, saved := properties[propertyState].([]byte)
	if err == nil || !saved || errors.Is(err, client.ErrLockLost) || ctx.Err() != nil {
		return err
	}
	a.run.settings.log.Warn("the broker refused a checkpoint; it is dropped", "message", a.SeqNo, "bytes", len(state), "err", err)
	delete(properties, propertyState)
	return tell(ctx, a.Received, properties)
}

// properties are what the next run of the message gets.
func (a *attempt) properties() map[string]any {
	out := map[string]any{}
	if state, saved := a.task.checkpoint(); saved && !a.from.Extensions() {
		out[propertyState] = append([]byte{}, state...)
	}
	if n := a.preempted.Load(); n > 0 {
		out[propertyPreemptions] = int64(a.preemptedBefore) + int64(n)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// settleTimeout bounds a settlement. The client tries again meanwhile.
const settleTimeout = time.Minute

// settle tells the broker what became of the message. If that is impossible, the lock
// ends and the message comes again.
func (a *attempt) settle(tell func(context.Context) error, outcome Outcome, err error) {
	ctx, cancel := context.WithTimeout(a.run.life, settleTimeout)
	defer cancel()
	if e := tell(ctx); e != nil {
		outcome, err = LockLost, errors.Join(err, e)
		a.run.settings.log.Warn("message not settled; it will be delivered again", "message", a.SeqNo, "source", a.Source, "err", e)
	}
	a.ended(outcome, err)
}

// ended counts an outcome and tells the observer.
func (a *attempt) ended(outcome Outcome, err error) {
	a.run.pool.totals.count(outcome)
	a.run.observe(func(o Observer) { o.Ended(a.task, outcome, err, time.Since(a.began)) })
}
