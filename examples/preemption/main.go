// SPDX-License-Identifier: Apache-2.0

// Preemption shows that a high message does not wait for long low tasks. Four slots are
// full of tasks that count for a minute. A high message arrives, one of them makes way at
// its next step, and the high one is done at once. All low tasks go on where they were.
//
//	triagemq serve --dev --config examples/preemption/triagemq.yaml
//	go run ./examples/preemption -speed 10
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

const queue = "preemption"

func main() {
	speed := flag.Float64("speed", 1, "how many times faster than a step each second")
	flag.Parse()
	if *speed <= 0 {
		log.Fatal("-speed must be more than zero")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, cmp.Or(os.Getenv("TRIAGEMQ_CONNECTION_STRING"), "Endpoint=sb://localhost;"+
		"SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"), nil)
	if err != nil {
		log.Fatal(err)
	}
	pause := time.Duration(float64(time.Second) / *speed)
	s := newShow(c, os.Stdout, 4, 60, func(ctx context.Context, t *worker.Task, _ int) error {
		takes := pause
		if t.Priority == client.High {
			takes /= 10
		}
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err := errors.Join(s.run(ctx), c.Close()); err != nil {
		log.Fatal(err)
	}
}

// show is one run of the example. It is the handler of the pool and its observer.
type show struct {
	client *client.Client
	slots  int
	steps  int                                                         // of a low task
	step   func(ctx context.Context, t *worker.Task, number int) error // takes the time of one step

	mu      sync.Mutex
	out     io.Writer // guarded by mu
	begin   time.Time
	started int           // low tasks; guarded by mu
	full    chan struct{} // closed when all slots are busy with low tasks
	left    int           // tasks that have not ended; guarded by mu
	done    chan struct{} // closed when none is left
}

func newShow(c *client.Client, out io.Writer, slots, steps int, step func(context.Context, *worker.Task, int) error) *show {
	return &show{
		client: c, out: out, slots: slots, steps: steps, step: step, begin: time.Now(),
		full: make(chan struct{}), done: make(chan struct{}), left: slots + 1,
	}
}

func (s *show) run(ctx context.Context) error {
	sender, err := s.client.OpenSender(ctx, queue, nil)
	if err != nil {
		return fmt.Errorf("%w\n(was the broker started with --config examples/preemption/triagemq.yaml?)", err)
	}
	for i := range s.slots {
		if err := sender.Send(ctx, &client.Message{Body: fmt.Appendf(nil, "low-%d", i+1), Priority: client.Low}); err != nil {
			return err
		}
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	pool := worker.Pool{
		Client: s.client, Source: queue, Slots: s.slots, Preempt: &worker.Preemption{},
		Handler: worker.HandlerFunc(s.handle), Observer: s,
	}
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(work) }() // ends with work
	for _, wait := range []chan struct{}{s.full, s.done} {
		select {
		case <-wait:
		case err := <-ended:
			return errors.Join(err, errors.New("the pool ended"))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if wait == s.full {
			err = sender.Send(ctx, &client.Message{Body: []byte("high"), Priority: client.High})
		}
		if err != nil {
			return err
		}
	}
	stop()
	return <-ended
}

// handle is what a user writes: work in steps, with Yield between them.
func (s *show) handle(ctx context.Context, t *worker.Task) error {
	steps := s.steps
	if t.Priority == client.High {
		steps = 1
	}
	for i := range steps {
		if err := t.Yield(ctx); err != nil { // waits here while it is preempted
			return err
		}
		if err := s.step(ctx, t, i+1); err != nil {
			return err
		}
		if i+1 == steps || (i+1)%10 == 0 {
			s.say(t, fmt.Sprintf("step %d of %d", i+1, steps))
		}
	}
	return nil
}

func (s *show) say(t *worker.Task, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%8.3fs  %-5s  %s\n", time.Since(s.begin).Seconds(), t.Body, what)
}

// Started implements [worker.Observer].
func (s *show) Started(t *worker.Task) {
	s.say(t, "started")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started++; s.started == s.slots {
		close(s.full)
	}
}

// Suspended implements [worker.Observer].
func (s *show) Suspended(t *worker.Task) { s.say(t, "makes way") }

// Resumed implements [worker.Observer].
func (s *show) Resumed(t *worker.Task, after time.Duration) {
	s.say(t, fmt.Sprintf("goes on after %.3fs", after.Seconds()))
}

// Ended implements [worker.Observer].
func (s *show) Ended(t *worker.Task, outcome worker.Outcome, err error, took time.Duration) {
	what := fmt.Sprintf("done in %.3fs", took.Seconds())
	if outcome != worker.Completed {
		what = fmt.Sprintf("failed: %v", err)
	}
	s.say(t, what)
	if outcome != worker.Completed {
		return // it comes again
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left == 0 {
		close(s.done)
	}
}
