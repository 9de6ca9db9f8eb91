// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

var (
	schedules = flag.Int("schedules", 200, "how many random schedules to run")
	seed      = flag.Uint64("seed", 0, "run only the schedule of this seed")
)

// TestRandomSchedules runs pools against a model of a broker while messages arrive,
// the broker crashes, and the pool is paused, resized and restarted.
func TestRandomSchedules(t *testing.T) {
	first, last := uint64(1), uint64(*schedules)
	if *seed > 0 {
		first, last = *seed, *seed
	}
	for s := first; s <= last && !t.Failed(); s++ {
		t.Run(fmt.Sprint("seed ", s), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newSchedule(t, s).run() })
		})
	}
}

// schedule is one random run. It is the handler and the observer of its pool.
type schedule struct {
	t      *testing.T
	rng    *rand.Rand
	broker *modelBroker
	pool   *worker.Pool
	stop   func() error

	sources []string
	calm    bool      // no crashes and no failing handlers: nothing counts as a failure
	paused  bool      // owned by the driver
	upSince time.Time // owned by the driver

	mu        sync.Mutex
	active    map[*worker.Task]*activity // handlers that run; guarded by mu
	allowed   int                        // most handlers that may have a slot; guarded by mu
	slots     int                        // guarded by mu
	epoch     int                        // of crashes; guarded by mu
	started   map[int]int                // by message; guarded by mu
	suspended int                        // guarded by mu
	steps     map[int]int                // of work done; guarded by mu
}

type activity struct {
	ctx   context.Context
	epoch int
}

func newSchedule(t *testing.T, seed uint64) *schedule {
	rng := rand.New(rand.NewPCG(seed, 2))
	s := &schedule{
		t: t, rng: rng, broker: newModelBroker(seed), sources: []string{"a"},
		calm: rng.IntN(2) == 0, active: map[*worker.Task]*activity{},
		started: map[int]int{}, steps: map[int]int{},
	}
	s.slots = 1 + rng.IntN(4)
	s.allowed = s.slots
	s.pool = &worker.Pool{
		Handler: worker.HandlerFunc(s.handle), Observer: s, Slots: s.slots, Grace: 3 * time.Second,
		Retry: worker.Exponential(100*time.Millisecond, 20*time.Second),
		Log:   slog.New(slog.DiscardHandler),
	}
	s.pool.SetOpener(s.broker.opener)
	if rng.IntN(2) == 0 {
		s.sources = []string{"a", "b", "c"}
		s.pool.Select = worker.Selection(rng.IntN(3))
		s.broker.extensions = rng.IntN(4) > 0
	}
	for _, name := range s.sources {
		s.pool.Sources = append(s.pool.Sources, worker.Source{Entity: name})
	}
	if rng.IntN(4) > 0 {
		s.pool.Preempt = &worker.Preemption{
			Cancel: rng.IntN(4) == 0,
			Budget: []int{-1, -1, 1}[rng.IntN(3)],
			MinRun: []time.Duration{0, 0, 300 * time.Millisecond}[rng.IntN(3)],
		}
	}
	return s
}

func (s *schedule) run() {
	s.start()
	for range 40 + s.rng.IntN(60) {
		s.step()
		if s.t.Failed() {
			break
		}
	}
	s.broker.restart()
	s.pool.Resume()
	s.resize(2)
	for i := 0; s.broker.left() > 0 && !s.t.Failed(); i++ {
		elapse(time.Minute)
		if i > 600 {
			s.t.Errorf("after 10 hours %d messages are left; status %+v", s.broker.left(), s.pool.Status())
		}
	}
	s.end()
	s.check()
}

func (s *schedule) start() {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.pool.Run(ctx) }() // ends with stop
	s.stop = func() error { cancel(); return <-done }
	s.upSince = time.Now()
}

func (s *schedule) end() {
	if err := s.stop(); err != nil {
		s.t.Errorf("Run returned %v", err)
	}
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.broker.open != 0 {
		s.t.Errorf("%d receivers are still open after Run", s.broker.open)
	}
}

// step does one thing to the pool or the broker, then lets time pass.
func (s *schedule) step() {
	switch n := s.rng.IntN(40); {
	case n < 20:
		for range 1 + s.rng.IntN(4) {
			s.send([]uint8{0, 2, 4, 7}[s.rng.IntN(4)])
		}
	case n < 28:
		s.sendUrgent()
	case n < 30:
		s.resize(s.rng.IntN(5))
	case n < 32:
		s.pool.Pause()
		s.paused = true
	case n < 36:
		s.pool.Resume()
		s.paused, s.upSince = false, time.Now()
	case n < 37:
		s.end()
		s.start()
	case n < 39 && !s.calm:
		s.mu.Lock()
		s.epoch++
		s.mu.Unlock()
		s.broker.crash()
		elapse(time.Duration(s.rng.IntN(20_000)) * time.Millisecond)
		s.broker.restart()
		s.upSince = time.Now()
	}
	elapse(time.Duration(s.rng.IntN(1000)) * time.Millisecond)
	// After the number of slots was reduced, the handlers that run may go on.
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = max(s.slots, min(s.allowed, s.withSlot()))
}

func (s *schedule) send(level uint8) int {
	return s.broker.send(s.sources[s.rng.IntN(len(s.sources))], "work", level)
}

func (s *schedule) resize(slots int) {
	synctest.Wait() // handlers that were started have entered
	s.mu.Lock()
	s.slots = slots
	s.allowed = max(s.allowed, slots)
	s.mu.Unlock()
	s.pool.Resize(slots)
	synctest.Wait()
	s.upSince = time.Now()
}

// settled is how long the pool needs after an outage to work again.
const settled = 10 * time.Second

// sendUrgent sends a message above all others, and expects it to run in a moment: a few
// answers of the broker.
func (s *schedule) sendUrgent() {
	if s.paused || time.Since(s.upSince) < settled {
		elapse(settled)
	}
	now := s.pool.Preempt != nil && s.pool.Preempt.Budget < 0 && s.pool.Preempt.MinRun == 0 &&
		s.broker.extensions && !s.paused && s.hasPlace()
	n := s.broker.send(s.sources[0], "urgent", 9)
	elapse(50 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now && s.started[n] == 0 {
		s.t.Errorf("message %d of level 9 does not run after 50 ms; status %+v", n+1, s.pool.Status())
	}
}

// hasPlace reports whether a slot is free or has a task below level 9 that can be
// preempted.
func (s *schedule) hasPlace() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	with := 0
	for t, a := range s.active {
		if t.Asked() {
			continue
		}
		with++
		if *t.Level < 9 && a.ctx.Err() == nil {
			return s.slots > 0
		}
	}
	return with < s.slots
}

// handle works in steps, in one of several manners that the message's number decides.
func (s *schedule) handle(ctx context.Context, t *worker.Task) error {
	n := int(t.SeqNo) - 1
	s.enter(ctx, t, n)
	defer s.leave(t)
	if !s.calm && t.DeliveryCount == 0 {
		switch n % 7 {
		case 3:
			return errors.New("first time")
		case 4:
			panic("first time")
		case 5:
			return worker.RetryAfter(time.Second, nil)
		}
	}
	steps := 1 + n*7919%40
	var done uint64
	if state := t.State(); len(state) == 8 {
		done = binary.BigEndian.Uint64(state)
	}
	gate := newGate()
	if n%5 == 1 {
		t.OnSuspend(gate.stop, gate.cont)
	}
	for int(done) < steps {
		if n%11 != 10 { // these do not cooperate
			if err := t.Yield(ctx); err != nil {
				return err
			}
		}
		select {
		case <-time.After(time.Duration(5+n%90) * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		gate.wait(ctx)
		done++
		s.mu.Lock()
		s.steps[n]++
		s.mu.Unlock()
		if err := t.Save(ctx, binary.BigEndian.AppendUint64(nil, done)); err != nil {
			return err
		}
	}
	return nil
}

// enter checks what must hold when a handler starts.
func (s *schedule) enter(ctx context.Context, t *worker.Task, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started[n]++
	for o, a := range s.active {
		if o.SeqNo == t.SeqNo && a.ctx.Err() == nil && a.epoch == s.epoch {
			s.t.Errorf("message %d is handled twice at a time", t.SeqNo)
		}
	}
	s.active[t] = &activity{ctx: ctx, epoch: s.epoch}
	s.checkSlots()
}

// checkSlots checks that no more handlers have a slot than there are. Called with mu held.
func (s *schedule) checkSlots() {
	if with := s.withSlot(); with > s.allowed {
		s.t.Errorf("%d handlers run that nobody asked to wait, want at most %d", with, s.allowed)
	}
}

// withSlot returns how many handlers have a slot. Called with mu held.
func (s *schedule) withSlot() int {
	with := 0
	for t, a := range s.active {
		if !t.Asked() && a.ctx.Err() == nil {
			with++
		}
	}
	return with
}

func (s *schedule) leave(t *worker.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.active, t)
	s.checkSlots()
}

func (s *schedule) Started(*worker.Task) {}

func (s *schedule) Suspended(*worker.Task) { s.park(1) }

func (s *schedule) Resumed(*worker.Task, time.Duration) { s.park(-1) }

func (s *schedule) park(by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.suspended += by
	s.checkSlots()
}

func (s *schedule) Ended(*worker.Task, worker.Outcome, error, time.Duration) {}

// check checks what must hold in the end.
func (s *schedule) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended != 0 || len(s.active) != 0 {
		s.t.Errorf("%d tasks are still suspended and %d active, want none", s.suspended, len(s.active))
	}
	for n := range s.broker.messages {
		m := s.broker.message(n)
		steps := 1 + n*7919%40
		if !m.done || m.dead != "" {
			s.t.Errorf("message %d: done %v, dead letter for %q", n+1, m.done, m.dead)
		}
		if s.steps[n] < steps {
			s.t.Errorf("message %d is complete after %d steps of work, want %d", n+1, s.steps[n], steps)
		}
		if s.calm && (m.failures > 0 || s.steps[n] > steps) {
			s.t.Errorf("message %d failed %d times and took %d steps of work, want none and %d", n+1, m.failures, s.steps[n], steps)
		}
	}
	if st := s.pool.Status(); st.Busy+st.Suspended+st.Waiting != 0 {
		s.t.Errorf("after Run the status is %+v", st)
	}
}

// gate stops a handler from outside, as signals stop a process.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while the handler may go on
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) stop() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
	return nil
}

func (g *gate) cont() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
	return nil
}

func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-ctx.Done():
	}
}
