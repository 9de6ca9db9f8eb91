// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
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
	for _, extensions := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newModelBroker(1)
			b.extensions = extensions
			p := modelPool(b)
			p.Windows, p.LatestStart = []string{"20:00-21:00 UTC"}, 2*time.Hour
			run(t, p)
			b.send("a", "old", 4)
			time.Sleep(110 * time.Minute)
			wantCompleted(t, p, 0, "after 110 minutes")
			time.Sleep(11 * time.Minute)
			wantCompleted(t, p, 1, "after two hours")
			b.send("a", "third", 4)
			time.Sleep(time.Hour)
			wantCompleted(t, p, 1, "with only a young message left")
			if got := p.Status().Idle; got != "outside its windows" {
				t.Errorf("the pool is idle because %q", got)
			}
		})
	}
}

// Only what is overdue starts outside the windows, wherever it is in the order, and however
// many there are.
func TestOnlyOverdueMessagesStartOutsideTheWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		b.lock = time.Hour
		p := modelPool(b)
		p.Source, p.Sources = "", []worker.Source{{Entity: "a"}, {Entity: "b"}}
		p.Slots, p.Preempt = 3, &worker.Preemption{}
		p.Windows, p.LatestStart = []string{"20:00-21:00 UTC"}, 2*time.Hour
		var mu sync.Mutex
		begun := map[string]time.Duration{} // after midnight
		start := time.Now()
		p.Handler = worker.HandlerFunc(func(ctx context.Context, task *worker.Task) error {
			mu.Lock()
			begun[string(task.Body)] = time.Since(start)
			mu.Unlock()
			if string(task.Body) == "old 3" { // one that runs for long is not overdue again
				<-time.After(30 * time.Minute)
			}
			return nil
		})
		run(t, p)
		for i := range 40 {
			b.send([]string{"a", "b"}[i%2], fmt.Sprint("old ", i), uint8(i%3))
		}
		time.Sleep(time.Hour)
		for i := range 40 {
			b.send([]string{"a", "b"}[i%2], fmt.Sprint("young ", i), uint8(9-i%10))
		}
		time.Sleep(62 * time.Minute)
		synctest.Wait()
		mu.Lock()
		old, young := 0, 0
		for name := range begun {
			if strings.HasPrefix(name, "old") {
				old++
			} else {
				young++
			}
		}
		mu.Unlock()
		if old != 40 || young != 0 {
			t.Errorf("after 2 h %d of 40 overdue messages have begun, and %d that are an hour old", old, young)
		}
		time.Sleep(time.Hour)
		wantCompleted(t, p, 80, "after three hours")
		for i := range 80 {
			if n := b.message(i).failures; n != 0 {
				t.Errorf("message %d has failed %d times", i, n)
			}
		}
	})
}

// Messages outside the priorities of a pool do not open it.
func TestOverdueMessagesOfOthersDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := modelPool(b)
		p.MinPriority, p.MaxPriority = client.Level(3), client.Level(6)
		p.Windows, p.LatestStart = []string{"20:00-21:00 UTC"}, 2*time.Hour
		run(t, p)
		for range 1000 { // more than one look
			b.send("a", "of others", 1)
		}
		b.send("a", "of others", 9)
		time.Sleep(time.Hour)
		b.send("a", "ours", 4)
		time.Sleep(90 * time.Minute)
		wantCompleted(t, p, 0, "with old messages of others")
		time.Sleep(33 * time.Minute)
		wantCompleted(t, p, 1, "after two hours of ours")
		if b.left() != 1001 {
			t.Errorf("%d messages are left, want those of others", b.left())
		}
	})
}

// The same at a real broker.
func TestOverdueMessagesOnARealBroker(t *testing.T) {
	b := newBench(t)
	never := time.Now().UTC().Add(12 * time.Hour).Format("15:04")
	var mu sync.Mutex
	begun := map[string]time.Duration{} // age
	release := make(chan struct{})
	p := &worker.Pool{
		Client: b.client, Source: "tasks", Slots: 2, MaxPriority: client.Normal, LatestStart: 2 * time.Second,
		Windows: []string{never + "-" + time.Now().UTC().Add(12*time.Hour+time.Minute).Format("15:04") + " UTC"},
		Handler: worker.HandlerFunc(func(_ context.Context, task *worker.Task) error {
			mu.Lock()
			begun[string(task.Body)] = time.Since(task.Enqueued)
			mu.Unlock()
			if string(task.Body) == "old 0" {
				<-release
			}
			return nil
		})}
	for i := range 5 {
		b.send("tasks", body(fmt.Sprint("old ", i), client.Low), body("of others", client.High))
	}
	run(t, p)
	<-time.After(time.Second)
	b.send("tasks", body("young", client.Normal))
	eventually(t, "all are done but one that runs", func() bool { return p.Status().Completed == 5 })
	close(release)
	eventually(t, "all are done", func() bool { return p.Status().Completed == 6 })
	mu.Lock()
	defer mu.Unlock()
	for name, age := range begun {
		if age < 1900*time.Millisecond || name == "of others" {
			t.Errorf("%q began %v after it came", name, age)
		}
	}
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
