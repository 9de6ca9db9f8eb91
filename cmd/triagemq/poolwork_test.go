// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// tally counts how often each message was handled.
type tally struct {
	mu   sync.Mutex
	seen map[string]int // guarded by mu
	all  int            // guarded by mu
}

func (c *tally) Handle(ctx context.Context, t *worker.Task) error {
	select { // so much work that a queue lasts for the test
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[string(t.Body)]++
	c.all++
	return nil
}

func (c *tally) counts() (different, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen), c.all
}

// work runs a pool with two slots until the test ends.
func (c terminal) work(name string) (*worker.Pool, *tally) {
	c.t.Helper()
	count := &tally{seen: map[string]int{}}
	p := &worker.Pool{Client: c.Client(), Name: name, Source: name, Slots: 2, Handler: count, Log: slog.New(slog.DiscardHandler)}
	c.run(p)
	return p, count
}

// run runs a pool until the test ends.
func (c terminal) run(p *worker.Pool) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }() // waited for below
	c.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			c.t.Errorf("pool %s: %v", p.Source, err)
		}
	})
}

// fill sends numbered messages.
func (c terminal) fill(queue string, from, n int) {
	c.t.Helper()
	s, err := c.Client().OpenSender(c.t.Context(), queue, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range n {
		if err := s.Send(c.t.Context(), &client.Message{Body: fmt.Append(nil, from+i)}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// until waits for something to become true.
func (c terminal) until(what string, ok func() bool) {
	c.t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > 20*time.Second {
			c.t.Fatalf("not within 20 s: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// states returns what pool list says of each pool.
func (c terminal) states() map[string]string {
	c.t.Helper()
	o := c.with("", "pool", "list")
	states := map[string]string{}
	for line := range strings.Lines(o.out) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "NAME" {
			states[f[0]] = f[2]
		}
	}
	return states
}

// A pool that is paused stops, also through a power failure of the broker, while another
// goes on. Resumed, it works off everything.
func TestPausedPoolStopsAndLosesNothing(t *testing.T) {
	c := startCLI(t, "queues:\n  - {name: high}\n  - {name: low}\n")
	const messages = 1000 // more than two slots can do before the pause
	c.fill("low", 0, messages)
	low, lowCount := c.work("low")
	_, highCount := c.work("high")
	c.until("both are listed and work", func() bool {
		_, n := lowCount.counts()
		s := c.states()
		return s["low"] == "working" && s["high"] == "working" && n > 5
	})

	c.want("Paused pool low at low, 1 process.\n", "pool", "pause", "low")
	c.until("low is paused and has no task left", func() bool { s := low.Status(); return s.Paused && s.Busy == 0 })
	_, before := lowCount.counts()
	if before == messages {
		t.Fatal("everything was done before the pause: the test shows nothing")
	}
	c.fill("high", 0, 20)
	c.until("high goes on", func() bool { n, _ := highCount.counts(); return n == 20 })

	c.Crash()
	c.until("low is listed again, still paused", func() bool { s := c.states(); return s["low"] == "paused" && s["high"] != "" })
	c.fill("high", 20, 20)
	c.until("high still goes on", func() bool { n, _ := highCount.counts(); return n == 40 })
	if _, n := lowCount.counts(); n != before {
		t.Errorf("%d messages were handled by a pool that is paused", n-before)
	}

	c.want("Resized pool low at low, 1 process.\n", "pool", "resize", "low", "20")
	c.want("Resumed pool low at low, 1 process.\n", "pool", "resume", "low")
	c.until("low finishes", func() bool { n, _ := lowCount.counts(); return n == messages })
}

// Orders reach a pool whose slots they change.
func TestRunningPoolIsResized(t *testing.T) {
	c := startCLI(t, "queues:\n  - {name: low}\n")
	p, _ := c.work("low")
	c.until("low is listed", func() bool { return c.states()["low"] != "" })
	c.do("pool", "resize", "low", "5")
	c.until("low has 5 slots", func() bool { return p.Status().Slots == 5 })
	c.do("pool", "resize", "low", "0")
	c.until("low has its own 2 slots", func() bool { return p.Status().Slots == 2 })
}

// Tasks that have begun wait in place while their pool is paused, and go on afterwards.
func TestPausedPoolSuspendsItsTasks(t *testing.T) {
	c := startCLI(t, "queues:\n  - {name: low}\n")
	c.fill("low", 0, 2)
	var steps, runs atomic.Int64
	var finish atomic.Bool
	p := &worker.Pool{Client: c.Client(), Source: "low", Slots: 2, Log: slog.New(slog.DiscardHandler),
		Handler: worker.HandlerFunc(func(ctx context.Context, task *worker.Task) error {
			runs.Add(1)
			for !finish.Load() {
				if err := task.Yield(ctx); err != nil {
					return err
				}
				steps.Add(1)
				<-time.After(time.Millisecond)
			}
			return nil
		})}
	c.run(p)
	c.until("both tasks run", func() bool { return p.Status().Busy == 2 })
	c.until("the pool is listed", func() bool { return c.states()["low"] == "working" })
	c.do("pool", "pause", "low")
	c.until("both tasks wait", func() bool { s := p.Status(); return s.Suspended == 2 && s.Busy == 0 })
	before := steps.Load()
	c.until("the list shows it", func() bool {
		f := strings.Fields(c.with("", "pool", "list", "--processes").out)
		return len(f) > 15 && f[12] == "paused" && f[15] == "2" // state and suspended of the only process
	})
	if n := steps.Load(); n != before {
		t.Errorf("%d steps were taken while the pool was paused", n-before)
	}
	c.do("pool", "resume", "low")
	c.until("the tasks go on", func() bool { return steps.Load() > before })
	finish.Store(true)
	c.until("both are complete", func() bool { return p.Status().Completed == 2 })
	if n := runs.Load(); n != 2 {
		t.Errorf("%d runs of 2 messages", n)
	}
}
