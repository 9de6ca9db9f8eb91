// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/worker/internal/slots"
)

// lastCall is how long handlers have to return after their contexts ended with
// ErrStopping.
const lastCall = 5 * time.Second

// maxWaiting bounds how many messages wait for a retry with their locks. Further ones
// are abandoned at once.
const maxWaiting = 256

// run is a pool while it runs. The fields below machine belong to loop.
type run struct {
	pool     *Pool
	settings settings
	supply   *supply
	failures *failureLog

	events   chan func(now time.Time) []slots.Action // for loop to call
	wished   chan struct{}                           // capacity 1: the wishes have changed
	over     chan struct{}                           // closed when loop has ended
	stopped  chan struct{}                           // closed when no new messages are taken
	ordered  chan struct{}                           // closed when loop knows what the broker wants of the pool
	order    func()                                  // closes ordered, once
	hurry    chan struct{}                           // capacity 1: have the broker told of the pool now
	life     context.Context                         // of settlements and renewals
	end      context.CancelCauseFunc                 // ends life
	asking   context.Context                         // of requests; ends with the stop
	endAsk   context.CancelFunc
	wg       sync.WaitGroup // requests, keepers, hooks, announcing
	waiting  atomic.Int32   // messages that wait for a retry
	snapshot atomic.Pointer[snapshot]

	began time.Time

	machine  *slots.Machine
	lastID   slots.ID
	attempts map[slots.ID]*attempt // arrived, and not settled
	stopAsk  [slots.Channels]context.CancelFunc
	slots    int
	paused   bool
	gate     gate
	holding  string // why no messages are taken although the pool is not paused
	failure  error  // why it is useless to go on
}

// snapshot is what Status shows of the fields of loop.
type snapshot struct {
	counts  slots.Counts
	slots   int
	paused  bool
	holding string
}

func newRun(ctx context.Context, p *Pool, s settings) *run {
	r := &run{
		pool: p, settings: s, supply: newSupply(p, s),
		events: make(chan func(time.Time) []slots.Action), wished: make(chan struct{}, 1),
		over: make(chan struct{}), stopped: make(chan struct{}), ordered: make(chan struct{}), hurry: make(chan struct{}, 1),
		attempts: map[slots.ID]*attempt{}, began: time.Now(),
	}
	r.order = sync.OnceFunc(func() { close(r.ordered) })
	r.supply.ordered = r.awaitOrders
	r.failures = newFailureLog(s.log, r.began)
	r.life, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	r.asking, r.endAsk = context.WithCancel(r.life)
	r.gate = gate{windows: s.windows, whenSpare: p.WhenSpare, latestStart: p.LatestStart, began: r.began}
	w := p.wished()
	r.slots = w.wanted(s.slots)
	r.machine = slots.New(slots.Settings{
		Preempt: p.Preempt != nil, Cancel: s.preempt.Cancel,
		MinRun: s.preempt.MinRun, Budget: s.preempt.Budget,
		Reachable: r.supply.reachable,
	}, r.slots)
	r.publish()
	return r
}

// loop schedules until ctx has ended and everything has stopped.
func (r *run) loop(ctx context.Context) error {
	defer func() {
		close(r.over)
		r.end(ErrStopping)
		r.wg.Wait()
		r.supply.closeAll()
		r.failures.end()
	}()
	r.wg.Go(r.announce)
	wake := time.NewTimer(0)
	defer wake.Stop()
	r.passGate(time.Now()) // before the first request
	stop := ctx.Done()
	var grace, last, final <-chan time.Time
	var stuck error
	r.heed(time.Now())
	r.do(r.machine.Tick(time.Now()))
	for {
		if r.failure != nil && stop != nil {
			stop, grace = nil, time.After(r.settings.grace)
			r.beginStop()
		}
		if stop == nil && r.machine.Idle() && len(r.attempts) == 0 {
			return errors.Join(r.failure, stuck)
		}
		r.publish()
		r.setWake(wake, time.Now())
		select {
		case event := <-r.events:
			r.do(event(time.Now()))
		case <-wake.C:
			r.passGate(time.Now())
			r.do(r.machine.Tick(time.Now()))
		case <-r.wished:
			r.heed(time.Now())
		case <-stop:
			stop, grace = nil, time.After(r.settings.grace)
			r.beginStop()
		case <-grace:
			r.cancelAll()
			last = time.After(lastCall)
		case <-last:
			stuck = r.giveUp()
			final = time.After(lastCall)
		case <-final:
			r.end(ErrStopping) // messages that cannot be settled come again
		}
	}
}

// maxSleep bounds how long loop sleeps, so that a wall clock that jumps is noticed.
const maxSleep = time.Minute

// setWake sets the timer to when time alone changes something.
func (r *run) setWake(timer *time.Timer, now time.Time) {
	at := r.machine.Wake()
	if next := r.gate.wake; at.IsZero() || !next.IsZero() && next.Before(at) {
		at = next
	}
	timer.Stop()
	if !at.IsZero() {
		timer.Reset(min(at.Sub(now), maxSleep))
	}
}

// post has loop call an event. It returns false if loop has ended.
func (r *run) post(event func(now time.Time) []slots.Action) bool {
	select {
	case r.events <- event:
		return true
	case <-r.over:
		return false
	}
}

// look has loop read the wishes.
func (r *run) look() {
	select {
	case r.wished <- struct{}{}:
	default: // loop has not read the last ones, and will
	}
}

// heed brings the machine in line with the wishes.
func (r *run) heed(now time.Time) {
	w := r.pool.wished()
	if n := w.wanted(r.settings.slots); n != r.slots {
		r.slots = n
		r.do(r.machine.Resize(now, n))
	}
	if paused := w.paused || w.orders.paused; paused != r.paused {
		r.paused = paused
		if paused {
			r.do(r.machine.Pause(now))
		} else {
			r.do(r.machine.Unpause(now))
		}
	}
	r.passGate(now)
}

// do carries out actions.
func (r *run) do(actions []slots.Action) {
	for _, a := range actions {
		switch a.Kind {
		case slots.Start:
			r.attempts[a.ID].start()
		case slots.Refuse:
			r.attempts[a.ID].refuse()
		case slots.Suspend:
			r.attempts[a.ID].suspend(a.Turn)
			r.countPreempted(a)
		case slots.Cancel:
			r.attempts[a.ID].end(ErrPreempted)
			r.countPreempted(a)
		case slots.Resume:
			r.attempts[a.ID].resume()
		case slots.Ask:
			r.ask(a)
		case slots.StopAsking:
			r.stopAsk[a.Channel]()
		}
	}
}

func (r *run) countPreempted(a slots.Action) {
	if a.Preempted {
		r.attempts[a.ID].preempted.Add(1)
		r.pool.totals.preempted.Add(1)
	}
}

// ask requests messages from the broker, in the background.
func (r *run) ask(a slots.Action) {
	ctx, cancel := context.WithCancel(r.asking)
	r.stopAsk[a.Channel] = cancel
	r.wg.Go(func() {
		defer cancel()
		got, err := r.supply.fetch(ctx, a)
		r.post(func(now time.Time) []slots.Action { return r.fetched(now, a, got, err) })
	})
}

func (r *run) fetched(now time.Time, asked slots.Action, got []delivery, err error) []slots.Action {
	if asked.Overdue {
		got = r.fetchedOverdue(now, got)
	}
	if err != nil && r.failure == nil {
		r.failure = fmt.Errorf("worker: pool %q: %w", r.settings.name, err)
	}
	messages := make([]slots.Message, len(got))
	for i, d := range got {
		r.lastID++
		a := newAttempt(r, r.lastID, d)
		r.attempts[a.id] = a
		messages[i] = slots.Message{ID: a.id, Rank: d.rank, Preempted: a.preemptedBefore}
	}
	if r.failure != nil {
		// Asking again would meet the same error, so the machine stops in this step.
		return append(r.machine.Fetched(now, asked.Channel, messages), r.machine.Stop(now)...)
	}
	return r.machine.Fetched(now, asked.Channel, messages)
}

// beginStop takes no more messages. Tasks may go on.
func (r *run) beginStop() {
	close(r.stopped)
	r.do(r.machine.Stop(time.Now()))
	r.endAsk()
}

// cancelAll ends the contexts of all handlers that still run.
func (r *run) cancelAll() {
	for id, a := range r.attempts {
		if a.started && !a.returned {
			a.end(ErrStopping)
			r.do(r.machine.Leaving(time.Now(), id))
		}
	}
}

// giveUp hands back the messages of handlers that did not return, and names them.
func (r *run) giveUp() error {
	var names []string
	for id, a := range r.attempts {
		if a.started && !a.returned {
			names = append(names, fmt.Sprint(a.SeqNo))
			a.returned = true
			close(a.givenUp)
			r.do(r.machine.Ended(time.Now(), id))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%w: pool %q, message %s", ErrHandlerStuck, r.settings.name, strings.Join(names, ", "))
}

// publish makes a snapshot for Status.
func (r *run) publish() {
	r.snapshot.Store(&snapshot{r.machine.Counts(), r.slots, r.paused, r.holding})
}

// report returns the state of the pool.
func (r *run) report() Status {
	s := r.snapshot.Load()
	out := Status{
		Name: r.settings.name, Slots: s.slots, Paused: s.paused, Idle: s.holding,
		Busy: s.counts.Running + s.counts.Yielding, Suspended: s.counts.Parked,
		Waiting: int(r.waiting.Load()),
	}
	switch {
	case s.paused:
		out.Idle = "paused"
	case s.slots == 0:
		out.Idle = "no slots"
	case out.Idle == "":
		out.Idle = r.supply.idle()
	}
	r.pool.totals.fill(&out)
	return out
}
