// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"sync"
	"time"

	"github.com/triagemq/triagemq/worker/internal/slots"
)

// hooks suspend a task from outside.
type hooks struct{ stop, cont func() error }

// suspension is whether a task is to wait in place, and whether it does.
type suspension struct {
	mu      sync.Mutex
	wanted  bool          // guarded by mu
	turn    uint32        // of wanted; guarded by mu
	goOn    chan struct{} // closed when wanted ends; guarded by mu
	hooks   hooks         // guarded by mu
	closed  bool          // the handler has returned; guarded by mu
	waiters int           // goroutines of the task that wait, and the hook; guarded by mu
	since   time.Time     // waits since then, by Yield or by hook; zero: does not. Guarded by mu
	total   time.Duration // of earlier waits; guarded by mu

	hooking chan struct{} // capacity 1: full while a hook runs
	givenUp chan struct{} // closed when a hook that runs is not waited for
	stopped bool          // by the hook; owned by the goroutine that filled hooking
}

// suspend asks the task to wait in place. It is called by loop.
func (a *attempt) suspend(turn uint32) {
	s := &a.suspension
	s.mu.Lock()
	s.wanted, s.turn, s.goOn = true, turn, make(chan struct{})
	hooked := s.hooks.stop != nil
	s.mu.Unlock()
	a.asked.Store(true)
	if hooked {
		a.run.wg.Go(a.applyHooks)
	}
}

// resume lets the task go on. It is called by loop.
func (a *attempt) resume() {
	s := &a.suspension
	s.mu.Lock()
	hooked := s.hooks.stop != nil
	if s.wanted {
		s.wanted = false
		close(s.goOn)
	}
	s.mu.Unlock()
	a.asked.Store(false)
	if hooked {
		a.run.wg.Go(a.applyHooks)
	}
}

// yield waits in place if it is still wanted.
func (a *attempt) yield(ctx context.Context) error {
	s := &a.suspension
	s.mu.Lock()
	if !s.wanted || s.hooks.stop != nil {
		s.mu.Unlock()
		return nil
	}
	turn, goOn := s.turn, s.goOn
	s.mu.Unlock()
	a.waits(turn)
	defer a.goesOn()
	select {
	case <-goOn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.ctx.Done(): // nobody resumes the task now, whatever ctx is
		return context.Cause(a.ctx)
	}
}

// waits notes that the task waits in place. Several goroutines of a handler may, which
// is one wait.
func (a *attempt) waits(turn uint32) {
	s := &a.suspension
	s.mu.Lock()
	s.waiters++
	first := s.waiters == 1
	if first {
		s.since = time.Now()
	}
	s.mu.Unlock()
	if first {
		a.look()
		a.run.observe(func(o Observer) { o.Suspended(a.task) })
	}
	a.run.post(func(now time.Time) []slots.Action { return a.run.machine.Parked(now, a.id, turn) })
}

// goesOn notes that the task waits no more.
func (a *attempt) goesOn() {
	s := &a.suspension
	s.mu.Lock()
	s.waiters--
	if s.waiters > 0 {
		s.mu.Unlock()
		return
	}
	waited := time.Since(s.since)
	s.since = time.Time{}
	s.total += waited
	s.mu.Unlock()
	a.look()
	a.run.pool.totals.suspended.Add(int64(waited))
	a.run.observe(func(o Observer) { o.Resumed(a.task, waited) })
}

// suspendedFor returns how long the task has waited in place until now, and whether it
// does at the moment.
func (a *attempt) suspendedFor(now time.Time) (time.Duration, bool) {
	s := &a.suspension
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		return s.total, false
	}
	return s.total + now.Sub(s.since), true
}

func (a *attempt) setHooks(h hooks) {
	s := &a.suspension
	s.mu.Lock()
	if !s.closed {
		s.hooks = h
	}
	wanted := s.wanted && !s.closed
	s.mu.Unlock()
	if wanted {
		a.run.wg.Go(a.applyHooks)
	}
}

// applyHooks calls the hooks until the task is stopped if that is wanted, and runs if
// it is not.
func (a *attempt) applyHooks() {
	s := &a.suspension
	s.hooking <- struct{}{}
	defer func() { <-s.hooking }()
	for {
		s.mu.Lock()
		h, turn := s.hooks, s.turn
		wanted := s.wanted && a.ctx.Err() == nil
		s.mu.Unlock()
		if wanted == s.stopped || h.stop == nil {
			return
		}
		hook := h.cont
		if wanted {
			hook = h.stop
		}
		returned, err := a.callHook(hook)
		if !returned {
			return
		}
		if err != nil {
			a.run.settings.log.Warn("task cannot be suspended or resumed", "message", a.SeqNo, "err", err)
			if wanted {
				a.run.post(func(now time.Time) []slots.Action { return a.run.machine.NotParked(now, a.id, turn) })
				return
			}
		}
		if s.stopped = wanted; wanted {
			a.waits(turn)
		} else {
			a.goesOn()
		}
	}
}

// callHook calls a hook. It returns false if the hook was given up meanwhile.
func (a *attempt) callHook(hook func() error) (returned bool, err error) {
	result := make(chan error, 1)
	go func() { result <- a.run.guard("hook of OnSuspend", hook) }() // not in a group: see hookLimit
	select {
	case err := <-result:
		return true, err
	case <-a.suspension.givenUp:
		return false, nil
	}
}

// hookLimit is how long a hook may go on after the handler has returned. One that waits
// for the handler would otherwise keep its slot and its message forever.
const hookLimit = time.Second

// dropHooks has no hook called any more. It waits for one that runs, for a while.
func (a *attempt) dropHooks() {
	s := &a.suspension
	s.mu.Lock()
	s.hooks, s.closed = hooks{}, true
	s.mu.Unlock()
	limit := time.NewTimer(hookLimit)
	defer limit.Stop()
	select {
	case s.hooking <- struct{}{}:
	case <-limit.C:
		a.run.settings.log.Warn("a hook of OnSuspend does not return", "message", a.SeqNo)
		close(s.givenUp)
		s.hooking <- struct{}{}
	}
	defer func() { <-s.hooking }()
	if s.stopped {
		s.stopped = false
		a.goesOn()
	}
}
