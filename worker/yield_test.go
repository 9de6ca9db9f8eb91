// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// Several goroutines of a handler may yield. The time that they wait together counts once.
func TestGoroutinesOfAHandlerYieldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
			if *task.Level == 9 {
				time.Sleep(10 * time.Second)
				return nil
			}
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for range 20 {
						time.Sleep(time.Second)
						_ = task.Yield(ctx) // its end is that of the pool
					}
				})
			}
			wg.Wait()
			return ctx.Err()
		})
		p.Preempt = &worker.Preemption{}
		b.send("a", "low", 2)
		run(t, p)
		time.Sleep(5 * time.Second)
		b.send("a", "high", 9)
		time.Sleep(time.Minute)
		wantCompleted(t, p, 2, "after a minute")
		if got := p.Status().SuspendedTime; got < 8*time.Second || got > 11*time.Second {
			t.Errorf("the task was suspended for %v, want some 9 s", got)
		}
	})
}

// A handler that yields with a context of its own still ends when its task does.
func TestYieldEndsWithTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
			for {
				time.Sleep(time.Second)
				if err := task.Yield(context.WithoutCancel(ctx)); err != nil || ctx.Err() != nil {
					return err
				}
			}
		})
		b.send("a", "x", 4)
		stop := run(t, p)
		time.Sleep(2 * time.Second)
		p.Pause()
		time.Sleep(2 * time.Second)
		b.mu.Lock()
		for m, n := range b.locks {
			b.unlock(m, n)
		}
		b.mu.Unlock()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := p.Status(); s.Suspended != 0 || s.LockLost != 1 {
			t.Errorf("after the lock was lost: %+v", s)
		}
		if err := stop(); errors.Is(err, worker.ErrHandlerStuck) {
			t.Error(err)
		}
	})
}
