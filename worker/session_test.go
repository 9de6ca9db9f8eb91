// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
	"github.com/triagemq/triagemq/worker"
)

const sessionEntities = `
queues:
  - {name: steps, requiresSession: true, lockDuration: 5s}
  - {name: plain}
`

func newSessionBench(t *testing.T) *bench {
	t.Helper()
	b := triagetest.Start(t, sessionEntities)
	return &bench{t, b, b.Client(), map[string]*client.Sender{}}
}

// steps sends messages 0 to n-1 of a session.
func (b *bench) steps(session string, n int) {
	b.t.Helper()
	for i := range n {
		b.send("steps", &client.Message{Session: session, Body: []byte(strconv.Itoa(i))})
	}
}

// watched notes what handlers do, and complains if two work at one session.
type watched struct {
	t    *testing.T
	mu   sync.Mutex
	busy map[string]bool
	done map[string][]string // bodies, in the order of their completion
}

func watch(t *testing.T) *watched {
	return &watched{t: t, busy: map[string]bool{}, done: map[string][]string{}}
}

// handler returns one that works for a while, and fails as f says.
func (w *watched) handler(f func(ctx context.Context, task *worker.Task) error) worker.Handler {
	return worker.HandlerFunc(func(ctx context.Context, task *worker.Task) error {
		w.mu.Lock()
		if w.busy[task.Session] {
			w.t.Errorf("two handlers at session %s", task.Session)
		}
		w.busy[task.Session] = true
		w.mu.Unlock()
		err := f(ctx, task)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy[task.Session] = false
		if err == nil {
			w.done[task.Session] = append(w.done[task.Session], string(task.Body))
		}
		return err
	})
}

func (w *watched) count() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, bodies := range w.done {
		n += len(bodies)
	}
	return n
}

// inOrder checks that each session was worked through from 0 on.
func (w *watched) inOrder() {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for session, bodies := range w.done {
		for i, got := range bodies {
			if got != strconv.Itoa(i) {
				w.t.Errorf("session %s was handled in the order %s", session, strings.Join(bodies, " "))
				break
			}
		}
	}
}

// Two pools share the sessions of a queue. None is in two slots, and each is in order although
// some messages fail and are tried again.
func TestSessionsAreHandledInOrder(t *testing.T) {
	b := newSessionBench(t)
	w := watch(t)
	var pools []*worker.Pool
	var stops []func() error
	for range 2 {
		p := &worker.Pool{
			Client: b.broker.Client(), Source: "steps", Slots: 3, Retry: worker.Constant(5 * time.Millisecond),
			Sessions: &worker.Sessions{Idle: 20 * time.Millisecond},
			Handler: w.handler(func(_ context.Context, task *worker.Task) error {
				<-time.After(time.Millisecond)
				if task.SeqNo%7 == 0 && task.DeliveryCount < 2 {
					return errors.New("not yet")
				}
				return nil
			})}
		pools, stops = append(pools, p), append(stops, run(t, p))
	}
	const sessions, each = 12, 20
	for i := range sessions {
		b.steps(fmt.Sprint("s", i), each)
	}
	eventually(t, "all handled", func() bool { return w.count() == sessions*each })
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	w.inOrder()
	done := pools[0].Status().Completed + pools[1].Status().Completed
	if lost := pools[0].Status().LockLost + pools[1].Status().LockLost; done != sessions*each || lost != 0 {
		t.Errorf("%d completed, %d locks lost", done, lost)
	}
}

// The state of a session is at hand, and outlives its pool.
func TestStateOfASession(t *testing.T) {
	b := newSessionBench(t)
	b.steps("a", 5)
	w := watch(t)
	count := w.handler(func(ctx context.Context, task *worker.Task) error {
		state, err := task.SessionState(ctx)
		if err != nil {
			return err
		}
		if want := strings.Repeat("x", int(task.SeqNo)-1); string(state) != want {
			t.Errorf("before message %d the state is %q", task.SeqNo, state)
		}
		return task.SetSessionState(ctx, append(state, 'x'))
	})
	for _, total := range []int{5, 8} {
		p := &worker.Pool{Client: b.client, Source: "steps", Sessions: &worker.Sessions{}, Handler: count}
		stop := run(t, p)
		eventually(t, "handled", func() bool { return w.count() == total })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if total == 5 {
			b.steps("a", 3)
		}
	}
	task := &worker.Task{Received: &client.Received{}}
	if _, err := task.SessionState(t.Context()); err == nil || task.SetSessionState(t.Context(), nil) == nil {
		t.Error("a task without a session has a state")
	}
}

// The lock of a session is renewed under a long handler, in a long pause before a retry, and
// while the session has no messages.
func TestSessionLockIsRenewed(t *testing.T) {
	b := newSessionBench(t)
	for _, session := range []string{"long", "later", "idle"} {
		b.steps(session, 1)
	}
	w := watch(t)
	const longer = 6 * time.Second // than a lock
	p := &worker.Pool{
		Client: b.client, Source: "steps", Slots: 3, Sessions: &worker.Sessions{Idle: time.Minute}, Retry: worker.Constant(longer),
		Handler: w.handler(func(ctx context.Context, task *worker.Task) error {
			switch {
			case task.Session == "later" && task.DeliveryCount == 0:
				return errors.New("not yet")
			case task.Session != "long":
				return nil
			}
			select {
			case <-time.After(longer):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})}
	run(t, p)
	eventually(t, "all are handled", func() bool { return w.count() == 3 })
	b.send("steps", &client.Message{Session: "idle", Body: []byte("1")})
	eventually(t, "one more is handled", func() bool { return w.count() == 4 })
	if s := p.Status(); s.Busy != 3 || s.LockLost != 0 || s.Failed != 1 {
		t.Errorf("%+v, want three slots that keep their sessions", s)
	}
	w.inOrder()
}

// Crashes of the broker lose no message and change no order.
func TestSessionsSurviveCrashesOfTheBroker(t *testing.T) {
	b := newSessionBench(t)
	const sessions, each = 6, 15
	for i := range sessions {
		b.steps(fmt.Sprint("s", i), each)
	}
	w := watch(t)
	p := &worker.Pool{
		Client: b.client, Source: "steps", Slots: 3, Sessions: &worker.Sessions{Idle: 20 * time.Millisecond},
		Handler: worker.HandlerFunc(func(_ context.Context, task *worker.Task) error {
			<-time.After(2 * time.Millisecond)
			w.mu.Lock()
			defer w.mu.Unlock()
			done := w.done[task.Session]
			if !slices.Contains(done, string(task.Body)) { // else it comes again
				w.done[task.Session] = append(done, string(task.Body))
			}
			return nil
		})}
	stop := run(t, p)
	for n := 20; n <= 60; n += 20 {
		eventually(t, "some are handled", func() bool { return w.count() >= n })
		b.broker.Crash()
	}
	eventually(t, "all are handled", func() bool { return w.count() == sessions*each })
	if err := stop(); err != nil {
		t.Error(err)
	}
	w.inOrder()
}

// A slot lets go of a session that has no more messages, and serves the next one.
func TestIdleSessionFreesItsSlot(t *testing.T) {
	b := newSessionBench(t)
	w := watch(t)
	p := &worker.Pool{
		Client: b.client, Source: "steps", Sessions: &worker.Sessions{Idle: 10 * time.Millisecond},
		Handler: w.handler(func(context.Context, *worker.Task) error { return nil })}
	run(t, p)
	for i := range 10 {
		b.steps(fmt.Sprint(i%3), 1+i/3)
	}
	eventually(t, "all handled", func() bool { return p.Status().Completed == 3*(1+2+3)+4 })
	eventually(t, "the slot is free", func() bool { return p.Status().Busy == 0 })
	s, err := b.client.OpenSession(t.Context(), "steps", "0", nil)
	if err != nil {
		t.Fatalf("the session is not free: %v", err)
	}
	_ = s.Close()
}

// What a stop interrupts goes back to its place, uncounted. The next pool begins there.
func TestStopHandsASessionBack(t *testing.T) {
	b := newSessionBench(t)
	b.steps("a", 3)
	started := make(chan struct{}, 1)
	p := &worker.Pool{
		Client: b.client, Source: "steps", Sessions: &worker.Sessions{}, Grace: 10 * time.Millisecond,
		Handler: worker.HandlerFunc(func(ctx context.Context, task *worker.Task) error {
			if string(task.Body) == "0" {
				return nil
			}
			started <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})}
	stop := run(t, p)
	<-started
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); s.Completed != 1 || s.HandedBack != 1 {
		t.Errorf("status %+v", s)
	}
	var got []string
	p = &worker.Pool{
		Client: b.client, Source: "steps", Sessions: &worker.Sessions{},
		Handler: worker.HandlerFunc(func(_ context.Context, task *worker.Task) error {
			got = append(got, fmt.Sprint(string(task.Body), " after ", task.DeliveryCount))
			return nil
		})}
	stop = run(t, p)
	eventually(t, "the rest is handled", func() bool { return p.Status().Completed == 2 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if want := "[1 after 0 2 after 0]"; fmt.Sprint(got) != want {
		t.Errorf("handled %v, want %s", got, want)
	}
}

// A paused pool lets go of its sessions after their present messages.
func TestPausedPoolFreesItsSessions(t *testing.T) {
	b := newSessionBench(t)
	b.steps("a", 3)
	w := watch(t)
	release := make(chan struct{})
	p := &worker.Pool{
		Client: b.client, Source: "steps", Sessions: &worker.Sessions{},
		Handler: w.handler(func(context.Context, *worker.Task) error { <-release; return nil })}
	run(t, p)
	eventually(t, "one runs", func() bool { return p.Status().Busy == 1 })
	p.Pause()
	release <- struct{}{}
	eventually(t, "it is handled", func() bool { return w.count() == 1 })
	s, err := b.client.OpenSession(t.Context(), "steps", "a", nil)
	for err != nil { // until the pool has let go
		if !errors.Is(err, client.ErrSessionLocked) {
			t.Fatal(err)
		}
		s, err = b.client.OpenSession(t.Context(), "steps", "a", nil)
	}
	_ = s.Close()
	close(release)
	p.Resume()
	eventually(t, "all handled", func() bool { return w.count() == 3 })
	w.inOrder()
}

func TestSessionsOfAPlainQueue(t *testing.T) {
	b := newSessionBench(t)
	p := &worker.Pool{
		Client: b.client, Source: "plain", Sessions: &worker.Sessions{},
		Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error { return nil })}
	if err := p.Run(t.Context()); !errors.Is(err, client.ErrNotAllowed) {
		t.Errorf("%v, want %v", err, client.ErrNotAllowed)
	}
	p.Preempt, p.Buffer, p.MinPriority = &worker.Preemption{}, 1, client.High
	p.Sessions.Idle = -1
	err := p.Run(t.Context())
	for _, part := range []string{"Preempt", "Buffer", "MinPriority", "Sessions.Idle is -1ns"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
}
