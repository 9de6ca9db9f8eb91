// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hostile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
)

const (
	bystanderQueue = "bystander"
	bystanderPause = 5 * time.Millisecond // between two rounds
	patience       = 10 * time.Second     // the longest that an operation of it may take
)

// bystander is a client that means no harm: it sends a small message, receives and
// completes it, over and over.
type bystander struct {
	client *client.Client
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	took   []time.Duration // by sends and receives since the last report; guarded by mu
	fault  error           // the first; guarded by mu
	rounds int             // so far; guarded by mu
}

// watch starts a bystander of a broker.
func watch(ctx context.Context, b *broker) (*bystander, error) {
	c, err := client.Dial(ctx, "amqp://"+bystanderKey.Name+":"+bystanderKey.PrimaryKey+"@"+b.addr, nil)
	if err != nil {
		return nil, err
	}
	s, err := c.Sender(ctx, bystanderQueue)
	if err != nil {
		return nil, err
	}
	r, err := c.Receiver(ctx, bystanderQueue, nil)
	if err != nil {
		return nil, err
	}
	w := &bystander{client: c, done: make(chan struct{})}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { // ends with ctx; stop waits for it
		defer close(w.done)
		for ctx.Err() == nil {
			w.round(ctx, s, r)
			select {
			case <-time.After(bystanderPause):
			case <-ctx.Done():
			}
		}
	}()
	return w, nil
}

func (w *bystander) round(ctx context.Context, s *client.Sender, r *client.Receiver) {
	w.time(ctx, "send", func(ctx context.Context) error {
		return s.Send(ctx, &client.Message{Body: []byte("a small message")})
	})
	w.time(ctx, "receive", func(ctx context.Context) error {
		ms, err := r.Receive(ctx, 1)
		if err != nil {
			return err
		}
		return r.Complete(ctx, ms...)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds++
}

func (w *bystander) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rounds
}

// rest waits for a whole round that begins now, so that what is under way is counted,
// or for the end of the broker.
func (w *bystander) rest(b *broker) {
	for from, begin := w.count(), time.Now(); w.count() < from+2 && time.Since(begin) < 3*patience && !b.dead(); {
		pause(context.Background(), bystanderPause)
	}
}

// time runs an operation, which may take as long as patience allows.
func (w *bystander) time(ctx context.Context, what string, do func(context.Context) error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	err := do(bounded)
	if ctx.Err() != nil {
		return // it is being stopped
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.took = append(w.took, time.Since(begin))
	if err != nil && w.fault == nil {
		w.fault = fmt.Errorf("%s after %v: %w", what, time.Since(begin).Round(time.Millisecond), err)
	}
}

// waits is how long the operations of a while took.
type waits struct {
	count    int
	p99, max time.Duration
}

func (w waits) String() string {
	return fmt.Sprintf("p99 %v, longest %v of %d operations",
		w.p99.Round(10*time.Microsecond), w.max.Round(10*time.Microsecond), w.count)
}

// waitsOf sums up.
func waitsOf(took []time.Duration) waits {
	if len(took) == 0 {
		return waits{}
	}
	took = slices.Sorted(slices.Values(took))
	return waits{len(took), took[len(took)*99/100], took[len(took)-1]}
}

// report returns how long operations took since the last report, and the first fault.
func (w *bystander) report() ([]time.Duration, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took, fault := w.took, w.fault
	w.took, w.fault = nil, nil
	return took, fault
}

func (w *bystander) stop() {
	w.cancel()
	<-w.done
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.client.Close(ctx) // the broker may be gone
}
