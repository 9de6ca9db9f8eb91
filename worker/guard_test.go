// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// panicking panics wherever a pool calls it.
type panicking struct{}

func (panicking) Started(*worker.Task)                                     { panic("started") }
func (panicking) Suspended(*worker.Task)                                   { panic("suspended") }
func (panicking) Resumed(*worker.Task, time.Duration)                      { panic("resumed") }
func (panicking) Ended(*worker.Task, worker.Outcome, error, time.Duration) { panic("ended") }

// A hook that waits for a handler which has returned holds up neither the message nor
// the slot, nor the end of Run.
func TestHookThatDoesNotReturnIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		never := make(chan struct{})
		p := handled(t, b, func(_ context.Context, task *worker.Task) error {
			task.OnSuspend(func() error { <-never; return nil }, func() error { return nil })
			time.Sleep(5 * time.Second)
			return nil
		})
		b.send("a", "x", 4)
		stop := run(t, p)
		time.Sleep(2 * time.Second)
		p.Pause()
		time.Sleep(10 * time.Second)
		p.Resume()
		wantCompleted(t, p, 1, "after the handler")
		b.send("a", "y", 4)
		time.Sleep(10 * time.Second)
		wantCompleted(t, p, 2, "after the next handler")
		if err := stop(); err != nil {
			t.Error(err)
		}
		close(never)
	})
}

// A panic of an observer, a hook or a back-off neither ends the process nor spoils a
// message.
func TestPanicsAroundTheHandlerDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
			if task.DeliveryCount == 0 {
				return errors.New("once")
			}
			if string(task.Body) == "hooked" {
				task.OnSuspend(func() error { panic("stop") }, func() error { panic("cont") })
			}
			for range 5 {
				time.Sleep(time.Second)
				if err := task.Yield(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		p.Observer, p.Slots = panicking{}, 2
		p.Retry = func(int) time.Duration { panic("retry") }
		b.send("a", "hooked", 4)
		b.send("a", "yields", 4)
		stop := run(t, p)
		time.Sleep(3 * time.Second)
		p.Pause()
		time.Sleep(3 * time.Second)
		p.Resume()
		time.Sleep(10 * time.Second)
		wantCompleted(t, p, 2, "after the panics")
		if s := p.Status(); s.Panics != 0 || s.DeadLettered != 0 {
			t.Errorf("status %+v, want no panic of a handler", s)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
