// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// Messages that were acknowledged are handled although the broker crashes meanwhile.
func TestCrashesOfTheBrokerLoseNothing(t *testing.T) {
	b := newBench(t)
	const messages = 60
	for i := range messages {
		b.send("tasks", body(fmt.Sprint(i), client.Level(uint8(i%10))))
	}
	var mu sync.Mutex
	seen := map[string]bool{}
	p := &worker.Pool{Client: b.client, Source: "tasks", Slots: 4, Preempt: &worker.Preemption{}, Retry: worker.Constant(10 * time.Millisecond),
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			for range 5 {
				if err := t.Yield(ctx); err != nil {
					return err
				}
				<-time.After(2 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[string(t.Body)] = true
			return nil
		})}
	stop := run(t, p)
	for n := 10; n <= 40; n += 15 {
		eventually(t, "some messages are handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) >= n })
		b.broker.Crash()
	}
	eventually(t, "all messages are handled", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) == messages })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A broker may refuse a receiver above the pool's highest priority, where nothing can come
// from. That is no failure.
func TestPreemptionBelowTheHighestPriority(t *testing.T) {
	b := newBench(t)
	release := make(chan struct{})
	p := &worker.Pool{Client: b.client, Source: "tasks", Preempt: &worker.Preemption{}, MaxPriority: client.Level(7),
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			<-release
			return nil
		})}
	var above atomic.Bool
	p.SetOpener(func(ctx context.Context, entity string, o *client.ReceiverOptions) (worker.Receiver, error) {
		if o.MinPriority != "" {
			defer above.Store(true)
		}
		return b.client.OpenReceiver(ctx, entity, o)
	})
	b.send("tasks", body("a", client.Level(7)), body("out of reach", client.Level(9)))
	stop := run(t, p)
	eventually(t, "it asks above its highest priority", above.Load)
	close(release)
	eventually(t, "one is complete", func() bool { return p.Status().Completed == 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestCancelledTaskGoesOnFromItsState(t *testing.T) {
	b := newBench(t)
	type step struct{ name, state string }
	steps := make(chan step, 10)
	p := &worker.Pool{Client: b.client, Source: "tasks", Preempt: &worker.Preemption{Cancel: true},
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			steps <- step{string(t.Body), string(t.State())}
			if string(t.Body) == "low" && t.State() == nil {
				_ = t.Save(ctx, []byte("half"))
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		})}
	b.send("tasks", body("low", client.Low))
	run(t, p)
	if got := <-steps; got != (step{"low", ""}) {
		t.Fatalf("first %v", got)
	}
	b.send("tasks", body("high", client.High))
	for _, want := range []step{{"high", ""}, {"low", "half"}} {
		if got := <-steps; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	eventually(t, "both complete", func() bool { return p.Status().Completed == 2 })
}

func TestSelectionsOnARealBroker(t *testing.T) {
	for _, rule := range []worker.Selection{worker.ByOrder, worker.ByLevel, worker.ByWeight} {
		b := newBench(t)
		for i := range 10 {
			b.send("tasks", body("x", client.Level(uint8(i))))
			b.send("other", body("x", client.Level(uint8(i))))
		}
		var mu sync.Mutex
		var order []string
		p := &worker.Pool{Client: b.client, Sources: []worker.Source{{Entity: "tasks"}, {Entity: "other"}}, Select: rule,
			Handler: worker.HandlerFunc(func(_ context.Context, t *worker.Task) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprintf("%c%d", t.Source[0], *t.Level))
				return nil
			})}
		stop := run(t, p)
		eventually(t, "all complete", func() bool { return p.Status().Completed == 20 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		want := map[worker.Selection]string{
			worker.ByOrder:  "[t9 t8 t7 t6]",
			worker.ByLevel:  "[t9 o9 t8 o8]",
			worker.ByWeight: "[t9 o9 t8 o8]",
		}[rule]
		if got := fmt.Sprint(order[:4]); got != want {
			t.Errorf("rule %d: first %s, want %s", rule, got, want)
		}
	}
}

// A pool may start before its broker, and stops at once when it never comes.
func TestStopWhileTheBrokerIsAway(t *testing.T) {
	dialled := make(chan struct{})
	var once sync.Once
	c, err := client.New("amqp://localhost", &client.Options{
		RetryTimeout: math.MaxInt64, // so that only the stop ends the waiting
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			once.Do(func() { close(dialled) })
			return nil, errors.New("nobody there")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p := &worker.Pool{Client: c, Source: "tasks", Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error { return nil })}
	stop := run(t, p)
	<-dialled
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestNoGoroutineIsLeft(t *testing.T) {
	b := newBench(t)
	for i := range 20 {
		b.send("tasks", body(fmt.Sprint(i), client.Level(uint8(i%10))))
	}
	pool := func() *worker.Pool {
		return &worker.Pool{Client: b.client, Source: "tasks", Slots: 3, Preempt: &worker.Preemption{}, Timeout: time.Minute,
			Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error { return t.Yield(ctx) })}
	}
	warm := pool()
	stop := run(t, warm)
	eventually(t, "all complete", func() bool { return warm.Status().Completed == 20 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	before := runtime.NumGoroutine()
	for range 5 {
		b.send("tasks", body("x", ""))
		p := pool()
		stop := run(t, p)
		eventually(t, "complete", func() bool { return p.Status().Completed == 1 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+2 })
}

// Subscriptions are sources too, in any spelling that the broker takes.
func TestEarlierSubscriptionPreempts(t *testing.T) {
	b := newBench(t)
	urgent := make(chan struct{})
	j := new(journal)
	p := &worker.Pool{Client: b.client, Preempt: &worker.Preemption{},
		Sources: []worker.Source{{Entity: "events/subscriptions/first"}, {Entity: client.Subscription("events", "second")}},
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			j.note("%s starts", t.Subject)
			if t.Subject == "first" {
				close(urgent)
				return nil
			}
			for {
				if err := t.Yield(ctx); err != nil {
					return err
				}
				select {
				case <-urgent:
					return nil
				case <-time.After(time.Millisecond):
				}
			}
		})}
	b.send("events", &client.Message{Subject: "second", Priority: client.High})
	run(t, p)
	eventually(t, "one runs", func() bool { return p.Status().Busy == 1 })
	b.send("events", &client.Message{Subject: "first", Priority: client.Low})
	eventually(t, "both complete", func() bool { return p.Status().Completed == 2 })
	if got := p.Status().Preempted; got != 1 {
		t.Errorf("%d preempted, want 1", got)
	}
	j.want(t, "second starts, first starts")
}

// A checkpoint that the broker does not take must not cost a failure.
func TestCheckpointThatIsTooLarge(t *testing.T) {
	b := newBench(t)
	runs := make(chan *worker.Task, 2)
	p := &worker.Pool{Client: b.client, Source: "tasks", Grace: 10 * time.Millisecond,
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			_ = t.Save(ctx, make([]byte, 8<<20))
			runs <- t
			<-ctx.Done()
			return context.Cause(ctx)
		})}
	b.send("tasks", body("x", ""))
	stop := run(t, p)
	<-runs
	if err := stop(); err != nil {
		t.Error(err)
	}
	if s := p.Status(); s.HandedBack != 1 {
		t.Errorf("status %+v", s)
	}
	stop = run(t, p)
	if next := <-runs; next.DeliveryCount != 0 {
		t.Errorf("%d failures, want 0", next.DeliveryCount)
	}
	_ = stop()
}

func TestBufferedMessagesAreGivenBackUncounted(t *testing.T) {
	b := newBench(t)
	for i := range 6 {
		b.send("tasks", body(fmt.Sprint(i), ""))
	}
	p := &worker.Pool{Client: b.client, Source: "tasks", Buffer: 4, Grace: 10 * time.Millisecond,
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})}
	stop := run(t, p)
	eventually(t, "one runs", func() bool { return p.Status().Busy == 1 })
	if err := stop(); err != nil {
		t.Error(err)
	}
	failures := make(chan uint32, 6)
	p = &worker.Pool{Client: b.client, Source: "tasks", Slots: 6, Handler: worker.HandlerFunc(func(_ context.Context, t *worker.Task) error {
		failures <- t.DeliveryCount
		return nil
	})}
	run(t, p)
	for range 6 {
		if n := <-failures; n != 0 {
			t.Errorf("%d failures, want none", n)
		}
	}
}
