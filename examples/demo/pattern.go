// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/priorityqueue/shared"
)

// The settings of an administrator: a bigger pool for what matters more.
var pools = []shared.Pool{{Subscription: "high", Instances: 3}, {Subscription: "low", Instances: 1}}

const (
	batch     = 10
	workTakes = 100 * time.Millisecond
)

// pattern runs the worked example: a topic, a filtered subscription for each
// priority, a pool for each subscription.
func pattern(ctx context.Context, b *broker) error {
	fmt.Fprintln(b.out, "\n1. The Priority Queue pattern: a topic, and a subscription and a pool for each priority")
	if err := b.run(ctx, "apply", "-f", "examples/priorityqueue/triagemq.yaml"); err != nil {
		return err
	}
	if err := b.run(ctx, "rule", "test", shared.Topic, "--property", "Priority=High"); err != nil {
		return err
	}
	c, goodbye, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer goodbye()
	sender, err := c.OpenSender(ctx, shared.Topic, nil)
	if err != nil {
		return err
	}
	l := &ledger{start: time.Now(), left: 2 * batch, done: make(chan struct{}), b: b}
	for _, priority := range []string{"Low", "High"} {
		if err := shared.SendBatch(ctx, sender, priority, batch); err != nil {
			return err
		}
		fmt.Fprintf(b.out, "   %s  sender    sent       %d messages with Priority = %s, as one batch\n", l.clock(), batch, priority)
	}
	if err := l.work(ctx, c); err != nil {
		return err
	}
	return l.account()
}

// ledger is the handler of all pools. It records which pool processed what, and
// when.
type ledger struct {
	b     *broker
	start time.Time
	done  chan struct{} // closed when nothing is left

	mu   sync.Mutex
	left int                      // guarded by mu
	last map[string]time.Duration // when each priority was done; guarded by mu
}

func (l *ledger) clock() string {
	return fmt.Sprintf("%5.2fs", time.Since(l.start).Seconds())
}

// Process implements shared.Handler.
func (l *ledger) Process(ctx context.Context, instance string, m *client.Received) error {
	select {
	case <-time.After(workTakes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.b.out, "   %s  %-8s  processed  %s\n", l.clock(), instance, m.Body)
	if l.last == nil {
		l.last = map[string]time.Duration{}
	}
	l.last[fmt.Sprint(m.Properties["Priority"])] = time.Since(l.start)
	if l.left--; l.left == 0 {
		close(l.done)
	}
	return nil
}

// work runs the pools until everything is done.
func (l *ledger) work(ctx context.Context, c *client.Client) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for _, p := range pools {
		wg.Go(func() {
			w := shared.Worker{Client: c, Topic: shared.Topic, Subscription: p.Subscription, Instances: p.Instances, Handler: l}
			if err := w.Run(ctx); err != nil {
				stop(err)
			}
		})
	}
	select {
	case <-l.done:
		stop(nil)
		wg.Wait()
		return nil
	case <-ctx.Done():
		wg.Wait()
		return context.Cause(ctx)
	}
}

// account prints a summary, and fails if the order was wrong.
func (l *ledger) account() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	high, low := l.last["High"], l.last["Low"]
	if high >= low {
		return fmt.Errorf("high priority was done after %v, low after %v", high, low)
	}
	fmt.Fprintf(l.b.out, "\n   High priority was sent last and was done first: after %.2f s, low after %.2f s.\n", high.Seconds(), low.Seconds())
	fmt.Fprintln(l.b.out, "   Low priority made progress all the time: it has its own pool.")
	return nil
}
