// SPDX-License-Identifier: Apache-2.0

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/worker"
)

// journal notes what handlers do, in order.
type journal struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (j *journal) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) want(t *testing.T, want string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if got := strings.Join(j.lines, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// working returns a handler that works for a time and yields every 10 ms.
func (j *journal) working(d time.Duration) worker.HandlerFunc {
	return func(ctx context.Context, t *worker.Task) error {
		j.note("%s starts", t.Body)
		for worked := time.Duration(0); worked < d; worked += 10 * time.Millisecond {
			if err := t.Yield(ctx); err != nil {
				j.note("%s leaves", t.Body)
				return err
			}
			elapse(10 * time.Millisecond)
		}
		j.note("%s ends", t.Body)
		return nil
	}
}

// send sends messages named by their level, a moment apart.
func sendApart(b *modelBroker, source string, levels ...uint8) {
	for _, level := range levels {
		b.send(source, fmt.Sprint(source, level), level)
		elapse(100 * time.Millisecond)
	}
}

func TestHighWorkIsDoneBeforeLowWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		p := handled(t, b, j.working(time.Second))
		p.Preempt = &worker.Preemption{}
		run(t, p)
		// 7 and 5 preempt; 4 and 6 do not, and 6 runs before 5 and 2 go on.
		sendApart(b, "a", 2, 5, 4, 7, 6)
		time.Sleep(time.Minute)
		j.want(t, "a2 starts, a5 starts, a7 starts, a7 ends, a6 starts, a6 ends, a5 ends, a4 starts, a4 ends, a2 ends")
		if s := p.Status(); s.Preempted != 2 || s.Suspended != 0 || s.SuspendedTime < 4*time.Second {
			t.Errorf("status %+v", s)
		}
	})
}

func TestVictimIsTheLowestWithTheLeastWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		parked := make(chan string, 1)
		p := handled(t, b, j.working(10*time.Second))
		p.Slots, p.Preempt, p.Observer = 3, &worker.Preemption{}, observer{suspended: func(t *worker.Task) { parked <- string(t.Body) }}
		run(t, p)
		for _, name := range []string{"older", "younger"} {
			b.send("a", name, 2)
			time.Sleep(100 * time.Millisecond)
		}
		sendApart(b, "a", 3, 9)
		if got := <-parked; got != "younger" {
			t.Errorf("%s was preempted, want younger", got)
		}
	})
}

// observer calls its functions.
type observer struct {
	suspended func(*worker.Task)
}

func (observer) Started(*worker.Task) {}
func (o observer) Suspended(t *worker.Task) {
	if o.suspended != nil {
		o.suspended(t)
	}
}
func (observer) Resumed(*worker.Task, time.Duration)                      {}
func (observer) Ended(*worker.Task, worker.Outcome, error, time.Duration) {}

func TestCancelledTaskIsHandedBackWithItsState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		p := handled(t, b, func(ctx context.Context, t *worker.Task) error {
			j.note("%s from %q", t.Body, t.State())
			if t.State() == nil {
				_ = t.Save(ctx, []byte("half"))
			}
			select {
			case <-ctx.Done():
				if !errors.Is(context.Cause(ctx), worker.ErrPreempted) {
					j.note("cause %v", context.Cause(ctx))
				}
				return ctx.Err()
			case <-time.After(time.Second):
				return nil
			}
		})
		p.Preempt = &worker.Preemption{Cancel: true, Budget: 2}
		run(t, p)
		// After two preemptions the budget is used up.
		sendApart(b, "a", 1, 9)
		time.Sleep(1500 * time.Millisecond)
		sendApart(b, "a", 9)
		time.Sleep(1500 * time.Millisecond)
		sendApart(b, "a", 9)
		time.Sleep(time.Minute)
		j.want(t, `a1 from "", a9 from "", a1 from "half", a9 from "", a1 from "half", a9 from ""`)
		if m := b.message(0); m.failures != 0 || fmt.Sprint(m.Properties["triagemq-preemptions"]) != "2" || !m.done {
			t.Errorf("%d failures, properties %v, done %v", m.failures, m.Properties, m.done)
		}
		if s := p.Status(); s.HandedBack != 2 || s.Preempted != 2 {
			t.Errorf("status %+v", s)
		}
	})
}

func TestMinRunProtectsYoungTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		p := handled(t, b, j.working(2*time.Second))
		p.Preempt = &worker.Preemption{MinRun: time.Second}
		run(t, p)
		sendApart(b, "a", 1, 9)
		time.Sleep(700 * time.Millisecond)
		j.want(t, "a1 starts")
		time.Sleep(200 * time.Millisecond)
		j.want(t, "a1 starts, a9 starts")
	})
}

func TestHooksSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		p := handled(t, b, func(ctx context.Context, t *worker.Task) error {
			if *t.Level == 9 {
				j.note("high")
				return nil
			}
			t.OnSuspend(func() error { j.note("stop"); return nil }, func() error { j.note("cont"); return nil })
			time.Sleep(time.Second)
			return nil
		})
		p.Preempt = &worker.Preemption{}
		run(t, p)
		sendApart(b, "a", 1, 9)
		time.Sleep(time.Second)
		synctest.Wait()
		j.mu.Lock()
		got := strings.Join(j.lines, " ")
		j.mu.Unlock()
		if got != "stop high cont" && got != "high stop cont" {
			t.Errorf("got %s", got)
		}
	})
}

func TestTaskWhoseHookFailsRunsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newModelBroker(1)
		p := handled(t, b, func(ctx context.Context, t *worker.Task) error {
			t.OnSuspend(func() error { return errors.New("no such process") }, func() error { panic("not stopped") })
			time.Sleep(time.Second)
			return nil
		})
		p.Preempt = &worker.Preemption{}
		run(t, p)
		sendApart(b, "a", 1, 9)
		time.Sleep(time.Minute)
		wantCompleted(t, p, 2, "after a minute")
	})
}

func TestPauseSuspendsAndResumeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		p := handled(t, b, j.working(time.Second))
		run(t, p)
		sendApart(b, "a", 1)
		p.Pause()
		b.send("a", "later", 9)
		time.Sleep(time.Hour)
		j.want(t, "a1 starts")
		if s := p.Status(); s.Suspended != 1 || s.Busy != 0 || s.Idle != "paused" {
			t.Errorf("status %+v", s)
		}
		p.Resume()
		time.Sleep(time.Minute)
		j.want(t, "a1 starts, a1 ends, later starts, later ends")
		if m := b.message(0); m.failures != 0 {
			t.Errorf("%d failures after a pause of an hour", m.failures)
		}
	})
}

func TestStopOfAPausedPoolLetsTasksFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		p := handled(t, b, j.working(time.Second))
		stop := run(t, p)
		sendApart(b, "a", 1)
		p.Pause()
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		j.want(t, "a1 starts, a1 ends")
	})
}

func TestEarlierSourcePreempts(t *testing.T) {
	for _, extensions := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b, j := newModelBroker(1), new(journal)
			b.extensions = extensions
			p := handled(t, b, j.working(4*time.Second))
			p.Source, p.Sources = "", []worker.Source{{Entity: "a"}, {Entity: "b"}, {Entity: "c"}}
			p.Preempt = &worker.Preemption{}
			run(t, p)
			for _, m := range []struct {
				source string
				level  uint8
			}{{"c", 9}, {"a", 1}, {"b", 5}} {
				b.send(m.source, m.source, m.level)
				time.Sleep(1100 * time.Millisecond) // polls are one second apart at most
			}
			time.Sleep(time.Minute)
			j.want(t, "c starts, a starts, a ends, b starts, b ends, c ends")
		})
	}
}

func TestWeightsShareTheSlots(t *testing.T) {
	for _, extensions := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newModelBroker(1)
			b.extensions = extensions
			var mu sync.Mutex
			got := map[string]int{}
			p := handled(t, b, func(_ context.Context, t *worker.Task) error {
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				got[t.Source]++
				return nil
			})
			p.Source, p.Sources, p.Select = "", []worker.Source{{Entity: "a", Weight: 3}, {Entity: "b"}}, worker.ByWeight
			p.Slots = 2
			for range 200 {
				b.send("a", "x", 1)
				b.send("b", "x", 9)
			}
			run(t, p)
			time.Sleep(5 * time.Second)
			mu.Lock()
			if a, b := got["a"], got["b"]; a < 2*b || a > 4*b || b == 0 {
				t.Errorf("%d of a and %d of b, want about 3 to 1", a, b)
			}
			mu.Unlock()
			time.Sleep(time.Minute)
			wantCompleted(t, p, 400, "in the end")
		})
	}
}

func TestMissingExtensionsAreExplainedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, j := newModelBroker(1), new(journal)
		b.extensions = false
		p := handled(t, b, j.working(time.Second))
		p.Preempt = &worker.Preemption{}
		var out syncBuffer
		p.Log = slog.New(slog.NewTextHandler(&out, nil))
		run(t, p)
		sendApart(b, "a", 1, 9)
		time.Sleep(time.Minute)
		j.want(t, "a1 starts, a1 ends, a9 starts, a9 ends")
		if n := strings.Count(out.String(), "cannot filter by level"); n != 1 {
			t.Errorf("explained %d times, want once:\n%s", n, out.String())
		}
	})
}
