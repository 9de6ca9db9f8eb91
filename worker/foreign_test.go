// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// foreign uses the broker as plain Service Bus: it asks for none of our extensions, and
// gives messages back by abandoning them.
type foreign struct{ *client.Receiver }

func (foreign) Extensions() bool { return false }

func (f foreign) Poll(ctx context.Context, limit int) ([]*client.Received, error) {
	brief, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	ms, err := f.Receive(brief, limit)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, nil
	}
	return ms, err
}

func (f foreign) Release(ctx context.Context, m *client.Received, properties map[string]any) error {
	return f.Abandon(ctx, m, properties)
}

func (b *bench) foreignPool(h worker.HandlerFunc, sources ...string) *worker.Pool {
	p := &worker.Pool{Client: b.client, Handler: h, Retry: worker.Constant(time.Millisecond)}
	for _, name := range sources {
		p.Sources = append(p.Sources, worker.Source{Entity: name})
	}
	p.SetOpener(func(ctx context.Context, entity string, _ *client.ReceiverOptions) (worker.Receiver, error) {
		r, err := b.client.OpenReceiver(ctx, entity, nil)
		return foreign{r}, err
	})
	return p
}

// Without our extensions a message of an earlier source still preempts one of a later.
func TestPoolOnPlainServiceBus(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var order []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, text)
	}
	started, urgent, done := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
	p := b.foreignPool(func(ctx context.Context, task *worker.Task) error {
		name := string(task.Body)
		note(name + " starts")
		if name == "low" {
			close(started)
			<-urgent // the other one runs, so this one was asked to wait
			if err := task.Yield(ctx); err != nil {
				return err
			}
		} else {
			close(urgent)
		}
		note(name + " ends")
		done <- struct{}{}
		return nil
	}, "tasks", "other")
	p.Preempt = &worker.Preemption{}
	stop := run(t, p)
	b.send("other", body("low", ""))
	<-started
	b.send("tasks", body("high", ""))
	<-done
	<-done
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	want := []string{"low starts", "high starts", "high ends", "low ends"}
	if len(order) != len(want) || order[1] != want[1] {
		t.Errorf("order %q, want %q", order, want)
	}
	if s := p.Status(); s.Completed != 2 || s.Preempted != 1 {
		t.Errorf("status %+v", s)
	}
}

func TestFailuresOnPlainServiceBus(t *testing.T) {
	b := newBench(t)
	runs := map[string]int{}
	done := make(chan struct{})
	p := b.foreignPool(func(_ context.Context, task *worker.Task) error {
		name := string(task.Body)
		switch runs[name]++; {
		case name == "poison":
			return worker.DeadLetter("Poison", nil)
		case runs[name] < 3:
			return errors.New("not yet")
		}
		close(done)
		return nil
	}, "tasks")
	stop := run(t, p)
	b.send("tasks", body("poison", ""), body("flaky", ""))
	<-done
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if s := p.Status(); s.Completed != 1 || s.DeadLettered != 1 || s.Failed < 2 || runs["flaky"] != 3 {
		t.Errorf("status %+v, runs %v", s, runs)
	}
}
