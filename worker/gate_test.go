// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// modelPool returns a pool on a model broker, which handles messages at once.
func modelPool(b *modelBroker) *worker.Pool {
	p := &worker.Pool{
		Source: "a", Log: slog.New(slog.DiscardHandler),
		Handler: worker.HandlerFunc(func(context.Context, *worker.Task) error { return nil }),
	}
	p.SetOpener(b.opener)
	return p
}

// wantCompleted checks the counter once all goroutines wait.
func wantCompleted(t *testing.T, p *worker.Pool, want uint64, when string) {
	t.Helper()
	elapse(10 * time.Millisecond) // for the answers of the broker
	synctest.Wait()
	if got := p.Status().Completed; got != want {
		t.Errorf("%s %d messages are complete, want %d; status %+v", when, got, want, p.Status())
	}
}

func TestPoolWorksInItsWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from midnight UTC on
		b := newModelBroker(1)
		p := modelPool(b)
		p.Windows = []string{"01:00-02:00 UTC"}
		run(t, p)
		b.send("a", "early", 4)
		wantCompleted(t, p, 0, "before the window")
		if got := p.Status().Idle; got != "outside its windows" {
			t.Errorf("the pool is idle because %q", got)
		}
		time.Sleep(time.Hour)
		wantCompleted(t, p, 1, "in the window")
		time.Sleep(time.Hour)
		b.send("a", "late", 4)
		wantCompleted(t, p, 1, "after the window")
		time.Sleep(23 * time.Hour)
		wantCompleted(t, p, 2, "in the next window")
	})
}

func TestOldMessagesDoNotWaitForAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := modelPool(b)
		p.Windows, p.LatestStart = []string{"20:00-21:00 UTC"}, 2*time.Hour
		run(t, p)
		b.send("a", "old", 4)
		time.Sleep(110 * time.Minute)
		b.send("a", "young", 4)
		wantCompleted(t, p, 0, "after 110 minutes")
		time.Sleep(11 * time.Minute)
		// While the pool works it takes the young message too.
		wantCompleted(t, p, 2, "after two hours")
		time.Sleep(2 * time.Minute)
		b.send("a", "third", 4)
		wantCompleted(t, p, 2, "with only a young message left")
	})
}

func TestPoolWaitsForSpareCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := modelPool(b)
		p.WhenSpare = true
		run(t, p)
		b.send("a", "first", 4)
		wantCompleted(t, p, 0, "before the broker's answer")
		p.Obey(worker.Orders{Known: true, Spare: true})
		wantCompleted(t, p, 1, "with spare capacity")
		p.Obey(worker.Orders{Known: true})
		b.send("a", "second", 4)
		time.Sleep(time.Hour)
		wantCompleted(t, p, 1, "without spare capacity")
		p.Obey(worker.Orders{Known: true, Spare: true})
		wantCompleted(t, p, 2, "with spare capacity again")
	})
}
