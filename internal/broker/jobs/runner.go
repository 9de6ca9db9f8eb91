// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Job is background work that is done in pieces.
type Job interface {
	// Name is that of the kind of job, under which its figures are counted.
	Name() string
	// Run does a bounded piece of the work and returns when to run again. It is never called
	// beside itself. An error is counted, and reported by the job itself.
	Run(ctx context.Context) (Next, error)
}

// Finisher is a Job with work at the end, when no job runs any more.
type Finisher interface {
	Job
	Finish(ctx context.Context)
}

// Next is when a job runs again, if it is not woken before. The zero value is never.
type Next struct {
	again bool
	after time.Duration
}

// Again has a job run again after those that are queued already.
func Again() Next { return Next{again: true} }

// After has a job run again after a time.
func After(d time.Duration) Next { return Next{after: d} }

// Stat are the figures of all jobs of one kind since the start.
type Stat struct {
	Name         string
	Jobs         int // in total
	Waiting      int // for a worker
	Running      int
	Runs, Errors uint64
	Last         time.Duration // how long the last run took
	Longest      time.Duration
}

// Runner runs jobs. A job that is woken is queued with its kind, and a worker, a goroutine
// that exists while the queue is not empty, runs it. Each kind has at most as many workers
// as Limit says, however many jobs there are; beyond that the jobs take turns. So a job
// that blocks delays no job of another kind, and none of its own while there are free
// workers.
type Runner struct {
	mu      sync.Mutex
	handles map[*Handle]bool // guarded by mu
	kinds   map[string]*kind // guarded by mu; by name
	running bool             // guarded by mu; Run is under way
	ctx     context.Context  // guarded by mu; of Run

	done sync.WaitGroup // of the workers
}

// kind are the jobs of one name.
type kind struct {
	Stat
	limit int       // workers at most
	busy  int       // workers at present
	queue []*Handle // woken, and without a worker
}

// New returns a runner without jobs.
func New() *Runner {
	return &Runner{handles: make(map[*Handle]bool), kinds: make(map[string]*kind)}
}

// Limit sets how many jobs of a kind run at the same time; without it one does.
func (r *Runner) Limit(name string, workers int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kind(name).limit = workers
}

// kind returns the jobs of a name. The caller has mu.
func (r *Runner) kind(name string) *kind {
	if r.kinds[name] == nil {
		r.kinds[name] = &kind{Stat: Stat{Name: name}, limit: 1}
	}
	return r.kinds[name]
}

// Handle is a job of a runner.
type Handle struct {
	r    *Runner
	job  Job
	kind *kind // guarded by Runner.mu

	state state       // guarded by Runner.mu
	timer *time.Timer // guarded by Runner.mu; not nil while it waits for a time
}

type state uint8

const (
	idle       state = iota
	queued           // queued
	running          // with a worker
	wokenAgain       // with a worker, and woken meanwhile
	stopped          // never runs again
)

// Add adds a job, which runs when it is woken.
func (r *Runner) Add(j Job) *Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &Handle{r: r, job: j, kind: r.kind(j.Name())}
	r.handles[h] = true
	h.kind.Jobs++
	return h
}

// Wake has the job run; once more, if it runs at this moment. It never blocks.
func (h *Handle) Wake() {
	r := h.r
	r.mu.Lock()
	defer r.mu.Unlock()
	switch h.state {
	case idle:
		h.endWait()
		r.join(h)
	case running:
		h.state = wokenAgain
	}
}

// WakeAfter wakes the job after a time, unless it is woken before.
func (h *Handle) WakeAfter(d time.Duration) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	if h.state == idle {
		h.endWait()
		h.timer = time.AfterFunc(d, h.Wake)
	}
}

// Stop removes the job. A run that is in progress is completed.
func (h *Handle) Stop() {
	r := h.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.state == stopped {
		return
	}
	if h.state == queued {
		h.kind.queue = slices.DeleteFunc(h.kind.queue, func(o *Handle) bool { return o == h })
		h.kind.Waiting--
	}
	h.endWait()
	h.state = stopped
	delete(r.handles, h)
	h.kind.Jobs--
}

// endWait stops the timer of the job. The caller has mu.
func (h *Handle) endWait() {
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}

// join queues a job. The caller has mu.
func (r *Runner) join(h *Handle) {
	h.state = queued
	h.kind.queue = append(h.kind.queue, h)
	h.kind.Waiting++
	r.hire(h.kind)
}

// hire starts a worker unless the limit is reached. The caller has mu; Run waits for the
// worker.
func (r *Runner) hire(k *kind) {
	if r.running && k.busy < k.limit {
		k.busy++
		ctx := r.ctx
		r.done.Go(func() { r.work(ctx, k) })
	}
}

// Run runs the jobs until ctx ends, and returns when none runs.
func (r *Runner) Run(ctx context.Context) {
	r.mu.Lock()
	r.running, r.ctx = true, ctx
	for _, k := range r.kinds {
		for range k.queue {
			r.hire(k)
		}
	}
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	r.running = false
	var last []Finisher
	for h := range r.handles {
		h.endWait()
		if f, ok := h.job.(Finisher); ok {
			last = append(last, f)
		}
	}
	r.mu.Unlock()
	r.done.Wait()
	for _, f := range last {
		f.Finish(context.WithoutCancel(ctx))
	}
}

// work runs the queued jobs of a kind until there is none.
func (r *Runner) work(ctx context.Context, k *kind) {
	for h := r.next(k); h != nil; h = r.next(k) {
		began := time.Now()
		next, err := h.job.Run(ctx)
		r.finish(h, next, time.Since(began), err)
	}
}

// next removes the first job from the queue. Without one the worker ends.
func (r *Runner) next(k *kind) *Handle {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(k.queue) == 0 || !r.running {
		k.busy--
		return nil
	}
	h := k.queue[0]
	k.queue[0] = nil
	k.queue = k.queue[1:]
	h.state = running
	k.Waiting--
	k.Running++
	return h
}

// finish counts a run, and queues the job again if it has to run again.
func (r *Runner) finish(h *Handle, next Next, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h.kind.Running--
	h.kind.count(took, err)
	switch {
	case h.state == stopped:
	case h.state == wokenAgain || next.again:
		r.join(h)
	default:
		h.state = idle
		if next.after > 0 && r.running {
			h.timer = time.AfterFunc(next.after, h.Wake)
		}
	}
}

// count counts a run.
func (k *kind) count(took time.Duration, err error) {
	k.Runs++
	k.Last, k.Longest = took, max(k.Longest, took)
	if err != nil {
		k.Errors++
	}
}

// Do runs work that its caller waits for, on the goroutine of the caller, and counts it as
// a run of a kind of jobs.
func (r *Runner) Do(name string, fn func() error) error {
	r.mu.Lock()
	k := r.kind(name)
	k.Running++
	r.mu.Unlock()
	began := time.Now()
	err := fn()
	r.mu.Lock()
	defer r.mu.Unlock()
	k.Running--
	k.count(time.Since(began), err)
	return err
}

// Stats returns the figures of all kinds of jobs, by name.
func (r *Runner) Stats() []Stat {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Stat, 0, len(r.kinds))
	for _, k := range r.kinds {
		all = append(all, k.Stat)
	}
	slices.SortFunc(all, func(x, y Stat) int { return strings.Compare(x.Name, y.Name) })
	return all
}
