// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// What a pool has fetched ahead and cannot start goes to a pool with free slots, at the same
// level, whether that one fetches ahead or not.
func TestBufferedMessagesGoToFreeSlots(t *testing.T) {
	for _, buffer := range []int{0, 50} {
		b := newBench(t)
		release := make(chan struct{})
		hold := worker.HandlerFunc(func(ctx context.Context, _ *worker.Task) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		for i := range 50 {
			b.send("tasks", body(fmt.Sprint(i), ""))
		}
		hoard := &worker.Pool{Client: b.broker.Client(), Source: "tasks", Slots: 1, Buffer: 50, Handler: hold}
		run(t, hoard)
		eventually(t, "one runs", func() bool { return hoard.Status().Busy == 1 })
		<-time.After(200 * time.Millisecond) // it has fetched all others
		free := &worker.Pool{Client: b.broker.Client(), Source: "tasks", Slots: 49, Buffer: buffer, Handler: hold}
		began := time.Now()
		run(t, free)
		eventually(t, fmt.Sprintf("all run, with a buffer of %d", buffer), func() bool { return free.Status().Busy == 49 })
		t.Logf("with a buffer of %d after %v", buffer, time.Since(began))
		close(release)
		eventually(t, "all are done", func() bool { return hoard.Status().Completed+free.Status().Completed == 50 })
		if s := free.Status(); s.Failed != 0 || s.LockLost != 0 {
			t.Errorf("status %+v", s)
		}
	}
}
