// SPDX-License-Identifier: Apache-2.0

// Patterns runs the ways to arrange worker pools that docs/guide/patterns.md compares.
//
//	triagemq serve --dev --config examples/patterns/triagemq.yaml
//	go run ./examples/patterns            # all of them
//	go run ./examples/patterns reserve    # one
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, cmp.Or(os.Getenv("TRIAGEMQ_CONNECTION_STRING"), "Endpoint=sb://localhost;"+
		"SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"), nil)
	if err != nil {
		log.Fatal(err)
	}
	wanted := os.Args[1:]
	if len(wanted) == 0 {
		wanted = slices.Sorted(maps.Keys(patterns))
	}
	for _, name := range wanted {
		run, ok := patterns[name]
		if !ok {
			log.Fatalf("%s is none of %v", name, slices.Sorted(maps.Keys(patterns)))
		}
		fmt.Println(name)
		if err := run(ctx, c, os.Stdout); err != nil {
			log.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		log.Fatal(err)
	}
}

// patterns are the arrangements by name. Each prints what was done in which order.
var patterns = map[string]func(context.Context, *client.Client, io.Writer) error{
	"strict":   strict,
	"separate": separate,
	"weighted": weighted,
	"reserve":  reserve,
}

// strict is one pool on one queue: low waits while anything high does.
func strict(ctx context.Context, c *client.Client, out io.Writer) error {
	if err := errors.Join(send(ctx, c, "mixed", "low", 3, client.Low), send(ctx, c, "mixed", "high", 3, client.High)); err != nil {
		return err
	}
	j := newJournal(out, 6)
	return j.run(ctx, &worker.Pool{Client: c, Source: "mixed", Handler: j.handler(nil)})
}

// separate is a queue and a pool for each priority: low makes progress whatever high
// does. Here the last high message even waits for the low ones.
func separate(ctx context.Context, c *client.Client, out io.Writer) error {
	if err := errors.Join(send(ctx, c, "urgent", "high", 6, client.High), send(ctx, c, "routine", "low", 2, client.Low)); err != nil {
		return err
	}
	j := newJournal(out, 8)
	return j.run(ctx,
		&worker.Pool{Client: c, Source: "urgent", Slots: 3, Handler: j.handler(map[string]string{"high 6": "low 2"})},
		&worker.Pool{Client: c, Source: "routine", Slots: 1, Handler: j.handler(nil)},
	)
}

// weighted is one pool on two queues, with three turns for one and one for the other.
func weighted(ctx context.Context, c *client.Client, out io.Writer) error {
	if err := errors.Join(send(ctx, c, "urgent", "high", 9, client.High), send(ctx, c, "routine", "low", 3, client.Low)); err != nil {
		return err
	}
	j := newJournal(out, 12)
	return j.run(ctx, &worker.Pool{
		Client: c, Select: worker.ByWeight, Handler: j.handler(nil),
		Sources: []worker.Source{{Entity: "urgent", Weight: 3}, {Entity: "routine", Weight: 1}},
	})
}

// reserve is a second pool on the same queue that takes only what is high. It has a free
// slot when the common one is busy, without preempting: here low waits for high.
func reserve(ctx context.Context, c *client.Client, out io.Writer) error {
	j := newJournal(out, 2)
	if err := send(ctx, c, "mixed", "low", 1, client.Low); err != nil {
		return err
	}
	busy := j.handler(map[string]string{"low 1": "high 1"})
	return j.run(ctx,
		&worker.Pool{Client: c, Name: "common", Source: "mixed", Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			// The common pool has begun the low message; only now the high one arrives.
			if err := send(ctx, c, "mixed", "high", 1, client.High); err != nil {
				return err
			}
			return busy.Handle(ctx, t)
		})},
		&worker.Pool{Client: c, Name: "reserve", Source: "mixed", MinPriority: client.High, Handler: j.handler(nil)},
	)
}

// send sends a number of messages with bodies such as "high 1".
func send(ctx context.Context, c *client.Client, queue, name string, n int, p client.Priority) error {
	s, err := c.OpenSender(ctx, queue, nil)
	if err != nil {
		return fmt.Errorf("%w\n(was the broker started with --config examples/patterns/triagemq.yaml?)", err)
	}
	defer s.Close()
	for i := range n {
		if err := s.Send(ctx, &client.Message{Body: fmt.Appendf(nil, "%s %d", name, i+1), Priority: p}); err != nil {
			return err
		}
	}
	return nil
}

// journal notes what was done.
type journal struct {
	mu   sync.Mutex
	out  io.Writer                // guarded by mu
	done map[string]chan struct{} // closed when that message is done; guarded by mu
	left int                      // guarded by mu
	all  chan struct{}            // closed when none is left
}

func newJournal(out io.Writer, n int) *journal {
	return &journal{out: out, done: map[string]chan struct{}{}, left: n, all: make(chan struct{})}
}

func (j *journal) of(name string) chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done[name] == nil {
		j.done[name] = make(chan struct{})
	}
	return j.done[name]
}

// handler notes each message, after that which it waits for.
func (j *journal) handler(after map[string]string) worker.Handler {
	return worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
		name := string(t.Body)
		if other, ok := after[name]; ok {
			select {
			case <-j.of(other):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		done := j.of(name)
		j.mu.Lock()
		defer j.mu.Unlock()
		select {
		case <-done: // delivered twice, after an outage
			return nil
		default:
		}
		fmt.Fprintf(j.out, "  %-8s %s\n", t.Pool, name)
		close(done)
		if j.left--; j.left == 0 {
			close(j.all)
		}
		return nil
	})
}

// run runs the pools until everything is done.
func (j *journal) run(ctx context.Context, pools ...*worker.Pool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(pools))
	var wg sync.WaitGroup
	for i, p := range pools {
		wg.Go(func() {
			defer stop()
			errs[i] = p.Run(ctx)
		})
	}
	select {
	case <-j.all:
	case <-ctx.Done():
		errs = append(errs, context.Cause(ctx))
	}
	stop()
	wg.Wait()
	return errors.Join(errs...)
}
