// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// Preemption at many levels, on a real broker, costs no message a failure and runs none
// twice.
func TestPreemptionAtManyLevels(t *testing.T) {
	b := newBench(t)
	const messages = 400
	var failures, twice atomic.Int64
	var mu sync.Mutex
	seen := map[string]bool{}
	p := &worker.Pool{Client: b.client, Source: "tasks", Slots: 3, Preempt: &worker.Preemption{Budget: -1},
		Handler: worker.HandlerFunc(func(ctx context.Context, t *worker.Task) error {
			failures.Add(int64(t.DeliveryCount))
			for range 1 + rand.N(10) {
				if err := t.Yield(ctx); err != nil {
					return err
				}
				<-time.After(time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[string(t.Body)] {
				twice.Add(1)
			}
			seen[string(t.Body)] = true
			return nil
		})}
	stop := run(t, p)
	for i := range messages {
		b.send("tasks", body(fmt.Sprint(i), client.Level(uint8(rand.N(256)))))
	}
	eventually(t, "all complete", func() bool { return p.Status().Completed == messages })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if failures.Load() != 0 || twice.Load() != 0 {
		t.Errorf("%d failures, %d ran twice, want none", failures.Load(), twice.Load())
	}
	if s := p.Status(); s.Preempted == 0 || s.LockLost+s.Failed != 0 {
		t.Errorf("status %+v", s)
	}
}
