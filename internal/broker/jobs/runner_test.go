// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// job is a job that a test makes up.
type job struct {
	name string
	run  func(context.Context) (Next, error)
}

func (j job) Name() string                          { return j.name }
func (j job) Run(ctx context.Context) (Next, error) { return j.run(ctx) }

// startRunner runs a runner until the test ends.
func startRunner(t *testing.T) *Runner {
	r := New()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return r
}

func TestAJobThatBlocksStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRunner(t)
		r.Limit("forward", 2)
		block, ran := make(chan struct{}), atomic.Int32{}
		stuck := r.Add(job{"forward", func(context.Context) (Next, error) { <-block; return Next{}, nil }})
		other := r.Add(job{"forward", func(context.Context) (Next, error) { ran.Add(1); return Next{}, nil }})
		alone := r.Add(job{"measure", func(context.Context) (Next, error) { ran.Add(1); return After(time.Second), nil }})
		stuck.Wake()
		other.Wake()
		alone.Wake()
		synctest.Wait()
		if ran.Load() != 2 {
			t.Errorf("%d of the others ran, want 2", ran.Load())
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if ran.Load() != 12 {
			t.Errorf("%d runs after ten seconds, want 12", ran.Load())
		}
		close(block)
	})
}

func TestWorkersOfAKindAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRunner(t)
		r.Limit("forward", 3)
		block := make(chan struct{})
		for range 10 {
			r.Add(job{"forward", func(context.Context) (Next, error) { <-block; return Next{}, nil }}).Wake()
		}
		synctest.Wait()
		if s := r.Stats()[0]; s.Running != 3 || s.Waiting != 7 || s.Jobs != 10 {
			t.Errorf("%+v, want three that run and seven that wait", s)
		}
		close(block)
		synctest.Wait()
		if s := r.Stats()[0]; s.Running != 0 || s.Waiting != 0 || s.Runs != 10 {
			t.Errorf("%+v, want ten runs", s)
		}
	})
}

func TestAJobNeverRunsBesideItselfAndMissesNoWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := startRunner(t)
		r.Limit("a", 8)
		var at, runs atomic.Int32
		step := make(chan struct{})
		h := r.Add(job{"a", func(context.Context) (Next, error) {
			if at.Add(1) != 1 {
				t.Error("a job runs beside itself")
			}
			<-step
			runs.Add(1)
			at.Add(-1)
			return Next{}, nil
		}})
		h.Wake()
		synctest.Wait()
		for range 5 {
			h.Wake() // while it runs
		}
		step <- struct{}{}
		step <- struct{}{}
		synctest.Wait()
		if runs.Load() != 2 || at.Load() != 0 {
			t.Errorf("%d runs, want one and one more", runs.Load())
		}
	})
}

// last is a job that has something to do at the end.
type last struct {
	job
	finished *atomic.Bool
}

func (l last) Finish(context.Context) { l.finished.Store(true) }

func TestStopEndsTimersAndFinishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		var runs atomic.Int32
		var finished atomic.Bool
		failed := errors.New("failed")
		h := r.Add(last{job{"a", func(context.Context) (Next, error) { runs.Add(1); return After(time.Minute), failed }}, &finished})
		h.WakeAfter(time.Second)
		gone := r.Add(job{"b", func(context.Context) (Next, error) { t.Error("it was stopped"); return Next{}, nil }})
		gone.WakeAfter(time.Second)
		gone.Stop()
		gone.Wake()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		stop()
		wg.Wait()
		time.Sleep(time.Hour)
		if runs.Load() != 2 || !finished.Load() {
			t.Errorf("%d runs, finished %t; want 2 and true", runs.Load(), finished.Load())
		}
		if s := r.Stats(); s[0].Errors != 2 || s[1].Jobs != 0 {
			t.Errorf("%+v, want two errors of the one and none left of the other", s)
		}
	})
}

func TestDoCountsWorkThatIsWaitedFor(t *testing.T) {
	r, failed := New(), errors.New("failed")
	if err := r.Do("redrive", func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want %v", err, failed)
	}
	if s := r.Stats()[0]; s.Name != "redrive" || s.Runs != 1 || s.Errors != 1 || s.Running != 0 {
		t.Errorf("%+v, want one run with an error", s)
	}
}
