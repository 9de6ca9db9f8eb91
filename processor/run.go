// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
)

const (
	// lastCall is how long handlers have to return after their contexts ended.
	lastCall = 5 * time.Second
	// reportEvery is the time from one report to the next. The broker takes an instance for
	// dead that is silent for ten seconds.
	reportEvery = 3 * time.Second
	// requestTimeout bounds each request of a checkpoint or release: one that hangs must not
	// keep those after it.
	requestTimeout = 30 * time.Second
)

// run is a processor while it runs. The fields below pumps belong to loop.
type run struct {
	processor *Processor
	settings  settings
	link      broker
	fleet     fleet

	life    context.Context // of everything but handlers
	end     context.CancelCauseFunc
	wg      sync.WaitGroup // all goroutines but those of handlers
	views   chan view
	ended   chan *pump
	stuck   chan *pump
	failed  chan error
	left    chan struct{} // closed when the fleet knows that this instance leaves
	stops   chan struct{} // closed when the stop begins
	joined  atomic.Uint64 // for which of its times in the fleet the last report was accepted
	heard   atomic.Uint64 // of which of these loop has taken over a view
	contact atomic.Int64  // nanoseconds since began at which the last good report began
	began   time.Time
	totals  struct{ handled, failed, dead, panics, lost, skipped atomic.Uint64 }
	hub     atomic.Int64
	owned   atomic.Int64 // partitions, by the last view
	memory  fetchMemory

	mu    sync.Mutex
	pumps map[string]*pump // one for each partition; guarded by mu

	released map[string]int64 // turn of the last grant that is over
	next     map[string]grant // grants that wait for the pump of an older one to end
	latest   view
	stopping bool
}

func newRun(ctx context.Context, p *Processor, s settings) *run {
	r := &run{
		processor: p, settings: s, link: p.link,
		views: make(chan view), ended: make(chan *pump), stuck: make(chan *pump),
		failed: make(chan error, 1), left: make(chan struct{}), stops: make(chan struct{}), began: time.Now(),
		memory: fetchMemory{limit: s.prefetchBytes / 2}, // the other half is on its way
		pumps:  map[string]*pump{}, released: map[string]int64{}, next: map[string]grant{},
	}
	r.life, r.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if r.link == nil {
		r.link = newClientBroker(p.Client, &r.settings)
	}
	return r
}

// loop owns partitions until ctx has ended and everything has stopped.
func (r *run) loop(ctx context.Context) error {
	defer r.link.close()
	defer r.wg.Wait()
	defer r.end(ErrStopping)
	if err := r.join(ctx); err != nil || r.fleet == nil {
		return err
	}
	defer r.leaveForGood()
	r.wg.Go(r.watch)
	r.wg.Go(r.keepSaving)
	r.wg.Go(r.keepReporting)

	stop := ctx.Done()
	var grace, last <-chan time.Time
	var failure error
	for {
		if r.stopping && len(r.pumps) == 0 {
			return failure
		}
		select {
		case v := <-r.views:
			r.heed(v)
		case p := <-r.ended:
			r.pumpEnded(p)
		case p := <-r.stuck:
			r.pumpStuck(p)
		case failure = <-r.failed:
			r.heedFailure(failure)
			if stop != nil {
				stop, grace = nil, r.beginStop()
			}
		case <-stop:
			stop, grace = nil, r.beginStop()
		case <-grace:
			grace, last = nil, time.After(lastCall+time.Second)
		case <-last:
			return errors.Join(failure, r.stuckHandlers())
		}
	}
}

// join makes this instance one of the fleet. It waits for a broker that cannot be
// reached, and leaves fleet nil if ctx ends before.
func (r *run) join(ctx context.Context) error {
	for failures := 1; ; failures++ {
		r.contact.Store(int64(time.Since(r.began)))
		fleet, err := r.enter(ctx)
		switch {
		case err == nil:
			r.mu.Lock()
			r.fleet = fleet
			r.mu.Unlock()
			return nil
		case ctx.Err() != nil:
			return nil
		case fatal(err):
			return fmt.Errorf("processor: join %s/%s: %w", r.settings.hub, r.settings.group, err)
		}
		r.tell(fmt.Errorf("processor: join %s/%s: %w", r.settings.hub, r.settings.group, err))
		if !pause(ctx, defaultRetry(failures)) {
			return nil
		}
	}
}

func (r *run) enter(ctx context.Context) (fleet, error) {
	if r.processor.Store != nil {
		return newStoreFleet(r), nil
	}
	return r.link.join(ctx, &r.settings)
}

// fatal reports whether it is useless to try again.
func fatal(err error) bool {
	for _, known := range []error{
		client.ErrUnauthorized, client.ErrInvalid, client.ErrNotAllowed, client.ErrClosed, client.ErrAddress, client.ErrTaken,
		errors.ErrUnsupported,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// watch hands what the fleet says to loop.
func (r *run) watch() {
	for failures := 0; ; {
		v, err := r.fleet.next(r.life)
		switch {
		case r.life.Err() != nil:
			return
		case err == nil:
			failures = 0
			select {
			case r.views <- v:
			case <-r.life.Done():
				return
			}
		case r.isStopping():
			return // it has left
		case fatal(err):
			select {
			case r.failed <- fmt.Errorf("processor: %s/%s: %w", r.settings.hub, r.settings.group, err):
			case <-r.life.Done():
			}
			return
		default:
			r.tell(err)
			failures++
			pause(r.life, defaultRetry(failures))
		}
	}
}

// heed brings the pumps in line with what this instance owns.
func (r *run) heed(v view) {
	r.latest = v
	r.hub.Store(int64(v.hub))
	r.owned.Store(int64(len(v.grants)))
	owned := map[string]bool{}
	for _, g := range v.grants {
		if g.turn <= r.released[g.partition] {
			continue // older than the end of its pump
		}
		owned[g.partition] = true
		r.take(g)
	}
	for partition, p := range r.pumps {
		if !owned[partition] {
			delete(r.next, partition)
			p.depose()
		}
	}
	if r.heard.Swap(v.joins) != v.joins {
		for _, p := range r.pumps {
			p.wake() // it may have waited for this
		}
	}
}

// heedFailure ends the handlers of an instance whose partitions another has by now.
func (r *run) heedFailure(err error) {
	if errors.Is(err, client.ErrTaken) {
		for _, p := range r.pumps {
			p.depose()
		}
	}
}

// take starts a pump for a grant, or changes the one that is there.
func (r *run) take(g grant) {
	p := r.pumps[g.partition]
	switch {
	case p == nil && r.stopping: // it was granted before the fleet knew
		r.refuse(g)
	case p == nil:
		r.start(g)
	case p.grant.turn == g.turn && !g.revokeBy.IsZero():
		p.drain(g.revokeBy, 0, ErrLost)
	case p.grant.turn < g.turn && p.isStuck():
		p.depose()
		r.refuse(g)
	case p.grant.turn < g.turn:
		r.next[g.partition] = g
		p.depose()
	}
}

// refuse gives back a grant for which a handler of an older one is in the way.
func (r *run) refuse(g grant) {
	delete(r.next, g.partition)
	r.released[g.partition] = g.turn
	stopping := r.stopping
	r.wg.Go(func() {
		if stopping { // what is released before that comes back
			<-r.left
		}
		r.insist(r.life, "release partition "+g.partition, func(ctx context.Context) error {
			return r.fleet.release(ctx, g, r.settings.coolDown)
		})
	})
}

// insist tries until it succeeds. It returns false if the partition is another's, if ctx
// ends, or if the stop has begun and there is no hope.
func (r *run) insist(ctx context.Context, doing string, try func(context.Context) error) bool {
	for failures := 1; ; failures++ {
		one, cancel := context.WithTimeout(ctx, requestTimeout)
		err := try(one)
		cancel()
		switch {
		case err == nil:
			return true
		case errors.Is(err, ErrLost), ctx.Err() != nil:
			return false
		}
		r.tell(fmt.Errorf("processor: %s: %w", doing, err))
		// One that is not a member may be one again soon, but not when it leaves.
		if r.isStopping() && (fatal(err) || errors.Is(err, client.ErrUnknownMember)) {
			return false
		}
		if !pause(ctx, min(defaultRetry(failures), lastCall)) {
			return false
		}
	}
}

func (r *run) start(g grant) {
	p := newPump(r, g)
	r.mu.Lock()
	r.pumps[g.partition] = p
	r.mu.Unlock()
	r.settings.log.Debug("partition taken", "partition", g.partition, "epoch", g.epoch, "after", g.after)
	go p.work() // a handler that is stuck outlives the run
	if !g.revokeBy.IsZero() {
		p.drain(g.revokeBy, 0, ErrLost)
	}
}

// pumpEnded is called when nothing of a pump runs any more.
func (r *run) pumpEnded(p *pump) {
	name := p.grant.partition
	r.mu.Lock()
	delete(r.pumps, name)
	r.mu.Unlock()
	r.released[name] = max(r.released[name], p.grant.turn) // each grant is for one pump
	g, ok := r.next[name]
	delete(r.next, name)
	switch {
	case ok && r.stopping:
		r.refuse(g)
	case ok:
		r.start(g)
	}
}

// pumpStuck is called when a handler goes on although its context has ended.
func (r *run) pumpStuck(p *pump) {
	if r.pumps[p.grant.partition] != p {
		return // it has returned by now
	}
	r.tell(fmt.Errorf("%w: partition %s, %v after its context has ended", ErrHandlerStuck, p.grant.partition, lastCall))
	if g, ok := r.next[p.grant.partition]; ok {
		r.refuse(g)
	}
}

// beginStop takes no more events. The fleet is told first, so that what the pumps release
// does not come back.
func (r *run) beginStop() <-chan time.Time {
	r.stopping = true
	close(r.stops)
	by := time.Now().Add(r.settings.grace)
	r.wg.Go(func() {
		defer close(r.left)
		ctx, cancel := context.WithTimeout(r.life, lastCall)
		defer cancel()
		if err := r.fleet.leave(ctx); err != nil {
			r.tell(fmt.Errorf("processor: leave the group: %w", err))
		}
	})
	for _, p := range r.pumps {
		p.drain(by, 0, ErrStopping)
	}
	return time.After(r.settings.grace)
}

// ahead is how many bytes are on their way to one partition before they are asked for.
func (r *run) ahead() int {
	return max(r.settings.prefetchBytes/2/max(int(r.owned.Load()), 1), 1)
}

func (r *run) isStopping() bool {
	select {
	case <-r.stops:
		return true
	default:
		return false
	}
}

// leaveForGood ends the membership. What is not released by now is taken at once or when
// its time is over.
func (r *run) leaveForGood() {
	if err := r.fleet.close(); err != nil {
		r.tell(fmt.Errorf("processor: leave the group: %w", err))
	}
}

// stuckHandlers names the partitions whose handlers did not return.
func (r *run) stuckHandlers() error {
	var names []string
	for name, p := range r.pumps {
		if !p.hasReturned() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil // the broker cannot be reached, and OnError knows
	}
	slices.SortFunc(names, compareNames)
	return fmt.Errorf("%w: partition %s", ErrHandlerStuck, strings.Join(names, ", "))
}

// tell passes an error on. It must not be called with a lock.
func (r *run) tell(err error) {
	if f := r.processor.OnError; f != nil {
		f(err)
		return
	}
	r.settings.log.Warn("event processor", "err", err)
}

// all returns the pumps.
func (r *run) all() []*pump {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*pump, 0, len(r.pumps))
	for _, p := range r.pumps {
		out = append(out, p)
	}
	return out
}

func (r *run) pauseChanged(partition string) {
	r.mu.Lock()
	p := r.pumps[partition]
	r.mu.Unlock()
	if p != nil {
		p.wake()
	}
}

func (r *run) rewind(ctx context.Context, partition string, to Position) error {
	r.mu.Lock()
	fleet := r.fleet
	r.mu.Unlock()
	if fleet == nil {
		return fmt.Errorf("%w: rewind of partition %s", ErrNotRunning, partition)
	}
	if err := fleet.rewind(ctx, partition, to); err != nil {
		return fmt.Errorf("processor: rewind partition %s: %w", partition, err)
	}
	return nil
}

func (r *run) status() Status {
	s := Status{
		ID: r.settings.id, Hub: int(r.hub.Load()),
		Handled: r.totals.handled.Load(), Failed: r.totals.failed.Load(), DeadLettered: r.totals.dead.Load(),
		Panics: r.totals.panics.Load(), Lost: r.totals.lost.Load(), Skipped: r.totals.skipped.Load(),
	}
	for _, p := range r.all() {
		s.Partitions = append(s.Partitions, p.status())
	}
	slices.SortFunc(s.Partitions, func(a, b PartitionStatus) int {
		return compareNames(a.ID, b.ID)
	})
	return s
}

// compareNames orders names of partitions by their numbers.
func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// pause waits, and returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
