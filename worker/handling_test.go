// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/worker"
)

// handled runs a pool with a handler until stop, on a model broker.
func handled(t *testing.T, b *modelBroker, h worker.HandlerFunc) *worker.Pool {
	t.Helper()
	p := modelPool(b)
	p.Handler, p.Retry, p.Grace = h, worker.Constant(time.Second), 5*time.Second
	return p
}

func TestErrorsDecide(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		err      error
		done     bool
		dead     string
		failures uint32
		status   string // completed, failed, dead-lettered, handed back
	}{
		{nil, true, "", 0, "1 0 0 0"},
		{cause, false, "", 1, "0 1 0 0"},
		{worker.RetryAfter(0, nil), false, "", 1, "0 1 0 0"},
		{worker.RetryAfter(time.Hour, cause), false, "", 1, "0 1 0 0"},
		{worker.DeadLetter("Odd", cause), true, "Odd", 0, "0 0 1 0"},
		{fmt.Errorf("wrapped: %w", worker.DeadLetter("Odd", nil)), true, "Odd", 0, "0 0 1 0"},
		{worker.Discard(cause), true, "", 0, "0 1 0 0"},
		{worker.ErrPreempted, false, "", 0, "0 0 0 1"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newModelBroker(1)
			first := true
			p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
				if !first {
					<-ctx.Done()
				}
				first = false
				return c.err
			})
			b.send("a", "x", 4)
			run(t, p)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			m, s := b.message(0), p.Status()
			status := fmt.Sprint(s.Completed, s.Failed, s.DeadLettered, s.HandedBack)
			if m.done != c.done || m.dead != c.dead || m.failures != c.failures || status != c.status {
				t.Errorf("%v: done %v, dead %q, %d failures, status %s; want %v, %q, %d, %s",
					c.err, m.done, m.dead, m.failures, status, c.done, c.dead, c.failures, c.status)
			}
		})
	}
}

func TestPanicTwiceIsADeadLetterWithItsStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(_ context.Context, task *worker.Task) error {
			if task.DeliveryCount > 0 {
				panic(strings.Repeat("x", 5000))
			}
			panic("boom")
		})
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		m := b.message(0)
		if m.failures != 1 || m.dead != "HandlerPanicked" || len(m.about) != 4096 || p.Status().Panics != 2 {
			t.Errorf("after %d failures dead for %q with %d bytes, %d panics", m.failures, m.dead, len(m.about), p.Status().Panics)
		}
		wantCompleted(t, p, 0, "after panics")
	})
}

func TestStackIsInTheDescription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(context.Context, *worker.Task) error { panic("boom") })
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(10 * time.Second)
		if about := b.message(0).about; !strings.HasPrefix(about, "boom\n") || !strings.Contains(about, "handling_test.go") {
			t.Errorf("the description is %q", about)
		}
	})
}

func TestGoexitIsAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(context.Context, *worker.Task) error { runtime.Goexit(); return nil })
		b.send("a", "x", 4)
		stop := run(t, p)
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := p.Status().Panics; got != 2 {
			t.Errorf("%d panics, want 2", got)
		}
	})
}

func TestTimeoutDoesNotCountSuspendedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		var took []time.Duration
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
			began := time.Now()
			for {
				if err := task.Yield(ctx); err != nil {
					took = append(took, time.Since(began))
					return err
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		p.Timeout, p.Retry = time.Minute, worker.Constant(time.Hour)
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(30 * time.Second)
		p.Pause()
		time.Sleep(time.Hour)
		p.Resume()
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if len(took) != 1 || (took[0]-time.Hour-time.Minute).Abs() > time.Second {
			t.Errorf("the handler ended after %v, want an hour and a minute", took)
		}
		if s := p.Status(); s.Failed != 1 || s.LockLost != 0 || s.SuspendedTime < 59*time.Minute {
			t.Errorf("status %+v", s)
		}
		if m := b.message(0); m.failures != 1 || time.Until(m.retryAt) < 59*time.Minute {
			t.Errorf("%d failures, again in %v; want one, and an hour", m.failures, time.Until(m.retryAt))
		}
	})
}

func TestLostLockCancelsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		causes := make(chan error, 1)
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
			if task.DeliveryCount > 0 {
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return context.Cause(ctx)
		})
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(time.Second)
		b.mu.Lock()
		for m, n := range b.locks {
			b.unlock(m, n)
			b.messages[n].failures++
		}
		b.mu.Unlock()
		if cause := <-causes; !errors.Is(cause, worker.ErrLockLost) {
			t.Errorf("the cause is %v, want %v", cause, worker.ErrLockLost)
		}
		wantCompleted(t, p, 1, "after the second delivery")
		if got := p.Status().LockLost; got != 1 {
			t.Errorf("%d lost locks, want 1", got)
		}
	})
}

// A broker that is away for longer than the lock has lost it, although it cannot say so.
func TestLockIsLostWhenTheBrokerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		ended := make(chan time.Time, 1)
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error {
			<-ctx.Done()
			ended <- time.Now()
			return context.Cause(ctx)
		})
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(time.Second)
		b.mu.Lock()
		b.down = true
		b.mu.Unlock()
		began := time.Now()
		if after := (<-ended).Sub(began); after > b.lock {
			t.Errorf("the handler went on for %v without a lock of %v", after, b.lock)
		}
		b.restart()
	})
}

// The broker tells the end of a lock by its own clock.
func TestLockIsRenewedWhateverTheClocksSay(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, -20 * time.Second, 0, 20 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			b := newModelBroker(1)
			b.lock, b.ahead = 30*time.Second, ahead
			p := handled(t, b, func(context.Context, *worker.Task) error { time.Sleep(10 * time.Minute); return nil })
			b.send("a", "x", 4)
			run(t, p)
			time.Sleep(11 * time.Minute)
			if wantCompleted(t, p, 1, "after the handler"); b.message(0).failures != 0 {
				t.Errorf("with the broker's clock %v ahead, the lock was lost", ahead)
			}
		})
	}
}

// A message that waits for a retry is with our own broker, and with another one in the pool.
func TestRetryWaitsOutsideTheSlots(t *testing.T) {
	for _, ours := range []bool{true, false} {
		testRetryWaits(t, ours)
	}
}

func testRetryWaits(t *testing.T, ours bool) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		b.extensions = ours
		p := handled(t, b, func(_ context.Context, task *worker.Task) error {
			if string(task.Body) == "bad" && task.DeliveryCount == 0 {
				return worker.RetryAfter(time.Minute, nil)
			}
			return nil
		})
		b.send("a", "bad", 9)
		for range 5 {
			b.send("a", "good", 4)
		}
		run(t, p)
		time.Sleep(time.Second)
		wantCompleted(t, p, 5, "while one waits")
		if s := p.Status(); (s.Waiting == 0) != ours || s.Busy != 0 {
			t.Errorf("status %+v", s)
		}
		time.Sleep(time.Minute)
		wantCompleted(t, p, 6, "after the wait")
		if got := b.message(0).failures; got != 1 {
			t.Errorf("%d failures, want 1", got)
		}
	})
}

func TestStuckHandlerIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		release := make(chan struct{})
		p := handled(t, b, func(ctx context.Context, task *worker.Task) error { <-release; return nil })
		b.send("a", "x", 4)
		stop := run(t, p)
		time.Sleep(time.Second)
		began := time.Now()
		err := stop()
		if !errors.Is(err, worker.ErrHandlerStuck) || !strings.Contains(err.Error(), "message 1") {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the stop took %v", took)
		}
		if m := b.message(0); m.holder != nil || m.failures != 0 {
			t.Errorf("the message was not handed back")
		}
		close(release)
		synctest.Wait()
		if m := b.message(0); m.done {
			t.Errorf("the handler that was given up completed the message")
		}
	})
}

func TestStopLetsHandlersFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(context.Context, *worker.Task) error { time.Sleep(3 * time.Second); return nil })
		b.send("a", "x", 4)
		b.send("a", "not started", 4)
		stop := run(t, p)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if s := p.Status(); s.Completed != 1 || b.left() != 1 {
			t.Errorf("%d complete and %d left, want 1 and 1", s.Completed, b.left())
		}
	})
}

func TestMissingSourceIsWaitedForAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		b.setMissing("a", true)
		p := handled(t, b, func(context.Context, *worker.Task) error { return nil })
		var out syncBuffer
		p.Log = slog.New(slog.NewTextHandler(&out, nil))
		b.send("a", "x", 4)
		run(t, p)
		time.Sleep(time.Minute)
		if got := p.Status().Idle; got != "waiting for a source that does not exist yet" {
			t.Errorf("idle because %q", got)
		}
		b.setMissing("a", false)
		time.Sleep(5 * time.Second)
		wantCompleted(t, p, 1, "after the source appeared")
		if n := strings.Count(out.String(), "does not exist yet"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, out.String())
		}
		if got := p.Status().Idle; got != "" {
			t.Errorf("still idle because %q", got)
		}
	})
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestMissingRightsEndRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := modelPool(newModelBroker(1))
		p.SetOpener(func(context.Context, string, *client.ReceiverOptions) (worker.Receiver, error) {
			return nil, fmt.Errorf("open: %w", client.ErrUnauthorized)
		})
		if err := p.Run(t.Context()); !errors.Is(err, client.ErrUnauthorized) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestAllFaultsAtOnce(t *testing.T) {
	p := &worker.Pool{
		Source: "a", Sources: []worker.Source{{Entity: "b", Weight: 2}, {Entity: "B"}, {}}, Slots: -1, Buffer: 1, Timeout: -1,
		Windows: []string{"Someday"}, Scale: &worker.Scale{Min: 3, Max: 2}, Preempt: &worker.Preemption{MinRun: -1},
	}
	err := p.Run(t.Context())
	if !errors.Is(err, worker.ErrInvalid) {
		t.Fatalf("Run returned %v", err)
	}
	for _, want := range []string{
		"Client", "Handler", "Source and Sources", "weight", "twice", "empty", "Slots", "Buffer", "Timeout", "Someday", "Scale.Max", "MinRun",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s:\n%v", want, err)
		}
	}
}

func TestRunTwiceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := modelPool(newModelBroker(1))
		run(t, p)
		synctest.Wait()
		if err := p.Run(t.Context()); !errors.Is(err, worker.ErrInvalid) {
			t.Errorf("the second Run returned %v", err)
		}
	})
}

func TestNoMoreIsLockedThanSlotsCanStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(context.Context, *worker.Task) error { time.Sleep(time.Second); return nil })
		p.Slots = 3
		for range 30 {
			b.send("a", "x", 4)
		}
		run(t, p)
		time.Sleep(time.Minute)
		synctest.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		// A message that is being settled is locked while its slot is used again.
		if b.locked > 2*p.Slots || p.Status().Completed != 30 {
			t.Errorf("%d messages were locked at a time, %d complete", b.locked, p.Status().Completed)
		}
	})
}

// A service that handlers need is away for ten minutes: what waits is tried again until it is
// back, and nothing of the backlog becomes a dead letter.
func TestAnOutageMakesNoDeadLetters(t *testing.T) {
	const backlog, outage = 1000, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		b.deliveries = 10
		began := time.Now()
		p := handled(t, b, func(context.Context, *worker.Task) error {
			time.Sleep(10 * time.Millisecond)
			if time.Since(began) < outage {
				return errors.New("connection refused")
			}
			return nil
		})
		p.Slots, p.Retry = 200, nil
		for range backlog {
			b.send("a", "x", 4)
		}
		run(t, p)
		time.Sleep(3 * outage)
		s := p.Status()
		dead := 0
		for n := range backlog {
			if b.message(n).dead != "" {
				dead++
			}
		}
		if s.Completed != backlog || dead > 0 {
			t.Errorf("%d of %d are complete and %d are dead letters; status %+v", s.Completed, backlog, dead, s)
		}
	})
}
