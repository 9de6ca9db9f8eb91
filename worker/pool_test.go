// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/triagetest"
	"github.com/triagemq/triagemq/worker"
)

const entities = `
queues:
  - {name: tasks, lockDuration: 5s}
  - {name: other}
  - {name: example}
  - {name: example-low}
  - {name: brief, lockDuration: 5s}
topics:
  - name: events
    subscriptions:
      - {name: first, rules: [{name: mine, filter: "sys.Label = 'first'"}]}
      - {name: second, rules: [{name: mine, filter: "sys.Label = 'second'"}]}
`

// bench is a pool on a real broker.
type bench struct {
	t      *testing.T
	broker *triagetest.Broker
	client *client.Client
	sender map[string]*client.Sender
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := triagetest.Start(t, entities)
	return &bench{t, b, b.Client(), map[string]*client.Sender{}}
}

func (b *bench) send(queue string, ms ...*client.Message) {
	b.t.Helper()
	s := b.sender[queue]
	if s == nil {
		var err error
		if s, err = b.client.OpenSender(b.t.Context(), queue, nil); err != nil {
			b.t.Fatal(err)
		}
		b.sender[queue] = s
	}
	for _, m := range ms {
		if err := s.Send(b.t.Context(), m); err != nil {
			b.t.Fatal(err)
		}
	}
}

func body(text string, p client.Priority) *client.Message {
	return &client.Message{Body: []byte(text), Priority: p}
}

// run runs a pool until stop is called, which returns Run's error.
func run(t *testing.T, p *worker.Pool) (stop func() error) {
	t.Helper()
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // ends with stop
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = stop() })
	return stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("not within 10 s: %s", what)
}

func TestPoolCompletesMessages(t *testing.T) {
	b := newBench(t)
	for i := range 20 {
		b.send("tasks", body(fmt.Sprint(i), ""))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	p := &worker.Pool{Client: b.client, Source: "tasks", Slots: 4, Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
		mu.Lock()
		defer mu.Unlock()
		seen[string(t.Body)]++
		return nil
	})}
	stop := run(t, p)
	eventually(t, "20 completed", func() bool { return p.Status().Completed == 20 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 20 {
		t.Errorf("%d messages were handled, want 20", len(seen))
	}
}

func TestFailedMessageIsTriedAgain(t *testing.T) {
	b := newBench(t)
	b.send("tasks", body("a", ""))
	p := &worker.Pool{Client: b.client, Source: "tasks", Retry: worker.Constant(20 * time.Millisecond),
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			if t.DeliveryCount < 2 {
				return errors.New("not yet")
			}
			return nil
		})}
	run(t, p)
	eventually(t, "completed after 2 failures", func() bool { s := p.Status(); return s.Completed == 1 && s.Failed == 2 })
}

func TestLockIsRenewed(t *testing.T) {
	b := newBench(t)
	b.send("brief", body("long", ""))
	p := &worker.Pool{Client: b.client, Source: "brief", Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
		select {
		case <-time.After(6 * time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})}
	run(t, p)
	eventually(t, "completed after longer than its lock", func() bool { return p.Status().Completed == 1 })
	if s := p.Status(); s.LockLost != 0 {
		t.Errorf("%d locks were lost, want none", s.LockLost)
	}
}

func TestStopHandsBackUncounted(t *testing.T) {
	b := newBench(t)
	b.send("tasks", body("a", ""))
	started := make(chan struct{}, 2)
	p := &worker.Pool{Client: b.client, Source: "tasks", Grace: 50 * time.Millisecond,
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			_ = t.Save(ctx, []byte("half"))
			started <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})}
	stop := run(t, p)
	<-started
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); s.HandedBack != 1 || s.LostWork != 0 {
		t.Errorf("%d handed back and %v lost, want 1 and 0s", s.HandedBack, s.LostWork)
	}
	got := make(chan *worker.Task, 1)
	p = &worker.Pool{Client: b.client, Source: "tasks", Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
		got <- t
		return nil
	})}
	run(t, p)
	next := <-got
	if next.DeliveryCount != 0 || string(next.State()) != "half" {
		t.Errorf("it came back with %d failures and the state %q, want 0 and half", next.DeliveryCount, next.State())
	}
}

func TestUrgentMessageStartsAtOnce(t *testing.T) {
	b := newBench(t)
	const slots = 4
	release := make(chan struct{})
	var running, low sync.WaitGroup
	running.Add(slots)
	low.Add(slots)
	high := make(chan time.Time, 1)
	p := &worker.Pool{Client: b.client, Source: "tasks", Slots: slots, Preempt: &worker.Preemption{},
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			if string(t.Body) == "high" {
				high <- time.Now()
				return nil
			}
			running.Done()
			for {
				if err := t.Yield(ctx); err != nil {
					return err
				}
				select {
				case <-release:
					low.Done()
					return nil
				case <-time.After(time.Millisecond):
				}
			}
		})}
	for i := range slots {
		b.send("tasks", body(fmt.Sprint("low", i), client.Low))
	}
	run(t, p)
	running.Wait()
	sent := time.Now()
	b.send("tasks", body("high", client.High))
	if took := (<-high).Sub(sent); took > time.Second {
		t.Errorf("the urgent message started after %v, want within a second", took)
	}
	close(release)
	low.Wait()
	eventually(t, "all complete", func() bool { return p.Status().Completed == slots+1 })
	if s := p.Status(); s.Preempted != 1 || s.HandedBack != 0 || s.Suspended != 0 {
		t.Errorf("status %+v", s)
	}
}
