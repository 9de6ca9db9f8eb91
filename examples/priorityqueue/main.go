// SPDX-License-Identifier: Apache-2.0

// Priorityqueue runs the whole Priority Queue example in one process: the sender,
// and a pool of workers for each subscription. It ends when everything that it sent
// has been processed.
//
//	triagemq serve --dev --config examples/priorityqueue/triagemq.yaml
//	go run ./examples/priorityqueue
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/examples/priorityqueue/shared"
)

func main() {
	workers := flag.String("workers", shared.Setting("WORKERS", "high=3,low=1"), "subscriptions and the number of instances for each")
	priorities := flag.String("priorities", "Low,High", "a batch is sent for each, in this order")
	count := flag.Int("count", 10, "messages in a batch")
	takes := flag.Duration("takes", 200*time.Millisecond, "how long the work on a message takes")
	timeout := flag.Duration("timeout", 30*time.Second, "how long to wait for the workers")
	flag.Parse()
	pools, err := shared.ParsePools(*workers)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := run(ctx, os.Stdout, pools, strings.Split(*priorities, ","), *count, *takes); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, pools []shared.Pool, priorities []string, count int, takes time.Duration) error {
	c, err := client.Dial(ctx, shared.ConnectionString(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	sender, err := c.OpenSender(ctx, shared.Topic, nil)
	if err != nil {
		return fmt.Errorf("%w\n(was the broker started with --config examples/priorityqueue/triagemq.yaml?)", err)
	}
	for _, priority := range priorities {
		if err := shared.SendBatch(ctx, sender, priority, count); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  sender    sent       a batch of %d with Priority = %s\n", clock(), count, priority)
	}
	t := &tally{out: out, takes: takes, left: count * len(priorities), done: make(chan struct{})}
	return t.work(ctx, c, pools)
}

func clock() string { return time.Now().Format("15:04:05.000") }

// tally is the handler of every pool: it prints which worker processed what,
// and detects when everything is done.
type tally struct {
	out   io.Writer
	takes time.Duration
	done  chan struct{} // closed when nothing is left

	mu   sync.Mutex
	left int // guarded by mu
}

// Process implements shared.Handler.
func (t *tally) Process(ctx context.Context, instance string, m *client.Received) error {
	select {
	case <-time.After(t.takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "%s  %-8s  processed  %s\n", clock(), instance, m.Body)
	if t.left--; t.left == 0 {
		close(t.done)
	}
	return nil
}

// work runs the pools until everything is done.
func (t *tally) work(ctx context.Context, c *client.Client, pools []shared.Pool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(pools))
	var wg sync.WaitGroup
	for i, p := range pools {
		wg.Go(func() {
			w := shared.Worker{Client: c, Topic: shared.Topic, Subscription: p.Subscription, Instances: p.Instances, Handler: t}
			errs[i] = w.Run(ctx)
			if errs[i] != nil {
				stop()
			}
		})
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		errs = append(errs, errors.New("not everything was processed in time: does every priority have a subscription and a worker?"))
	}
	stop()
	wg.Wait()
	return errors.Join(errs...)
}
