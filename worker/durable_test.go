// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// A retry after more than the broker allows is the longest there is, not one after each lock.
func TestVeryLateRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(context.Context, *worker.Task) error {
			return worker.RetryAfter(400*24*time.Hour, errors.New("next year"))
		})
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(time.Minute)
		if m := b.message(0); m.failures != 1 || time.Until(m.retryAt) < 365*24*time.Hour {
			t.Errorf("failed %d times, again in %v; want once, and a year", m.failures, time.Until(m.retryAt))
		}
	})
}

// Save says with ErrLockLost that the session is someone else's, too.
func TestSaveInALostSession(t *testing.T) {
	b := newSessionBench(t)
	got := make(chan error, 10)
	stop := run(t, &worker.Pool{Client: b.broker.Client(), Source: "steps", Sessions: &worker.Sessions{},
		Handler: worker.HandlerFunc(func(ctx context.Context, task *worker.Task) error {
			if task.DeliveryCount == 0 && len(got) == 0 {
				b.broker.Crash()
				save, cancel := context.WithTimeout(ctx, 3*time.Second)
				defer cancel()
				got <- task.Save(save, []byte("x"))
			}
			return nil
		})})
	b.steps("s", 1)
	if err := <-got; !errors.Is(err, worker.ErrLockLost) {
		t.Errorf("Save: %v, want %v", err, worker.ErrLockLost)
	}
	_ = stop()
}

// A message that waits for a retry is not the overdue one to ask for: it hides those of other levels.
func TestRetryingMessageHidesOverdueOnes(t *testing.T) {
	b := newBench(t)
	never := time.Now().UTC().Add(12 * time.Hour).Format("15:04")
	p := &worker.Pool{
		Client: b.client, Source: "tasks", Slots: 2, LatestStart: 2 * time.Second,
		Windows: []string{never + "-" + time.Now().UTC().Add(12*time.Hour+time.Minute).Format("15:04") + " UTC"},
		Handler: worker.HandlerFunc(func(_ context.Context, task *worker.Task) error {
			if string(task.Body) == "flaky" {
				return worker.RetryAfter(time.Hour, errors.New("not now"))
			}
			return nil
		})}
	b.send("tasks", body("flaky", client.Normal))
	run(t, p)
	eventually(t, "one has failed", func() bool { return p.Status().Failed == 1 })
	b.send("tasks", body("late", client.Low))
	eventually(t, "the overdue message has begun", func() bool { return p.Status().Completed == 1 })
}
