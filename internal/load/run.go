// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/internal/objective"
)

// run is one run under way.
type run struct {
	cfg    Config
	number uint64    // distinguishes its messages from those of other runs
	began  time.Time // what stamps count from
	links  atomic.Uint64

	_   [64]byte // senders and receivers are not to share a cache line
	in  atomic.Uint64
	_   [64]byte
	out atomic.Uint64
	_   [64]byte

	behind atomic.Uint64 // events that readers behind have read

	report Report
}

// errOver ends the connections of a phase that is over.
var errOver = errors.New("load: over")

// drainPatience is how long receivers wait for messages that were accepted and do
// not come.
const drainPatience = 5 * time.Second

// Run does what cfg says and reports what it measured.
func Run(ctx context.Context, cfg Config) (Report, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	r := &run{cfg: cfg, number: rand.Uint64(), began: time.Now()}
	r.report.Config = summary(cfg)
	phases := []func(context.Context) error{r.fill, r.load}
	if cfg.Urgent > 0 {
		phases[1] = r.probe
	}
	for _, phase := range phases {
		if err := phase(ctx); err != nil {
			return Report{}, err
		}
	}
	return r.report, nil
}

// since is the time since the run began.
func (r *run) since() time.Duration { return time.Since(r.began) }

func (r *run) linkName(role string) string {
	return fmt.Sprintf("bench-%s-%x-%d", role, r.number, r.links.Add(1))
}

// BacklogError means that the queue refused a message of the backlog, because it was
// full or for another reason: what would be measured is not what was asked for.
type BacklogError struct {
	Queue            string
	Accepted, Wanted uint64 // messages
	Reason           error  // of the first refusal; nil if the broker gave none
}

func (e *BacklogError) Error() string {
	text := fmt.Sprintf("load: queue %q accepted %d of %d messages of the backlog", e.Queue, e.Accepted, e.Wanted)
	if e.Reason != nil {
		text += ": " + e.Reason.Error()
	}
	return text
}

func (e *BacklogError) Unwrap() error { return e.Reason }

// fill sends the backlog.
func (r *run) fill(ctx context.Context) error {
	if r.cfg.Backlog == 0 {
		return nil
	}
	stop := r.watch("fill")
	defer stop()
	from, cpu := r.since(), ProcessorTime()
	q := &quota{total: r.cfg.Backlog, whole: true}
	s, err := r.send(ctx, r.template(kindBacklog), q)
	if err != nil {
		return fmt.Errorf("fill the backlog: %w", err)
	}
	if s.refused > 0 {
		return &BacklogError{Queue: r.entity(), Accepted: r.in.Load(), Wanted: r.cfg.Backlog, Reason: s.reason}
	}
	r.report.Fill = throughput(r.in.Load(), r.since()-from, ProcessorTime()-cpu)
	return nil
}

// template returns what senders send.
func (r *run) template(k kind) *messageTemplate {
	if r.cfg.Hub != "" {
		return newEventTemplate(r.number, k, r.cfg.Size)
	}
	return newMessageTemplate(r.number, k, r.cfg.Size, 0, r.cfg.Levels-1)
}

// entity returns where senders send to.
func (r *run) entity() string { return cmp.Or(r.cfg.Hub, r.cfg.Queue) }

// send runs the senders until q is used up, and merges what they measured.
func (r *run) send(ctx context.Context, s *messageTemplate, q *quota) (*sender, error) {
	senders := make([]*sender, r.cfg.Senders)
	errs := make([]error, len(senders))
	var wg sync.WaitGroup
	for i := range senders {
		c, err := dial(ctx, r.cfg.Target)
		if err == nil {
			senders[i], err = r.newSender(c, s, r.cfg.Window)
		}
		if err != nil {
			q.end()
			wg.Wait()
			return nil, err
		}
		wg.Go(func() {
			defer c.close()
			if errs[i] = senders[i].work(q); errs[i] != nil {
				q.end()
			}
		})
	}
	wg.Wait()
	all := senders[0]
	for _, s := range senders[1:] {
		all.confirms.Merge(&s.confirms)
		all.refused += s.refused
		if all.reason == nil {
			all.reason = s.reason
		}
	}
	return all, errors.Join(errs...)
}

// consumer is a connection that receives.
type consumer interface {
	work() error
	// measured returns the time from sending to receipt, and how many messages were of
	// other runs.
	measured() (*objective.Histogram, uint64)
}

// received is what all consumers measured together.
type received struct {
	latency objective.Histogram
	foreign uint64
}

// newConsumer makes a connection receive, the turn-th of all.
func (r *run) newConsumer(c *conn, turn, credit int, urgent func(time.Duration)) (consumer, error) {
	switch {
	case r.cfg.Hub != "" && turn >= r.cfg.Receivers:
		return r.newReaderBehind(c, credit)
	case r.cfg.Hub != "":
		return r.newEventReader(c, credit, turn)
	}
	in, err := r.newReceiver(c, credit)
	if err != nil {
		return nil, err
	}
	in.urgent = urgent
	return in, nil
}

// receivers starts the receivers. stop ends them and returns what they measured.
func (r *run) receivers(ctx context.Context, credit int, urgent func(time.Duration)) (stop func() (*received, error), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	all := make([]consumer, r.cfg.Receivers+r.cfg.Behind)
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	stop = func() (*received, error) {
		cancel(errOver)
		wg.Wait()
		sum := new(received)
		for i, in := range all {
			if in != nil {
				latency, foreign := in.measured()
				sum.latency.Merge(latency)
				sum.foreign += foreign
			}
			if errors.Is(errs[i], errOver) {
				errs[i] = nil
			}
		}
		return sum, errors.Join(errs...)
	}
	for i := range all {
		c, err := dial(ctx, r.cfg.Target)
		if err == nil {
			all[i], err = r.newConsumer(c, i, credit, urgent)
		}
		if err != nil {
			all[i] = nil
			stop()
			return nil, err
		}
		in := all[i]
		wg.Go(func() {
			defer c.close()
			errs[i] = in.work()
		})
	}
	return stop, nil
}

// load is the measured part: senders, receivers or both.
func (r *run) load(ctx context.Context) error {
	backlog := r.in.Load()
	stopWatch := r.watch("load")
	defer stopWatch()
	from, cpu := r.since(), ProcessorTime()
	q := &quota{total: r.cfg.Count, rate: r.cfg.Rate, from: from}
	if r.cfg.Duration > 0 {
		q.until = from + r.cfg.Duration
	}
	stop := func() (*received, error) { return new(received), nil }
	if r.cfg.Mode != Send {
		var err error
		if stop, err = r.receivers(ctx, r.cfg.Credit, nil); err != nil {
			return err
		}
	}
	if r.cfg.Mode != Receive {
		s, err := r.send(ctx, r.template(kindPlain), q)
		if err != nil {
			_, also := stop()
			return errors.Join(err, also)
		}
		r.report.In = throughput(r.in.Load()-backlog, r.since()-from, ProcessorTime()-cpu)
		r.report.Confirm = quantiles(&s.confirms)
		r.report.Refused = s.refused
		if s.reason != nil {
			r.report.Reason = s.reason.Error()
		}
	}
	if r.cfg.Mode != Send {
		if r.cfg.Mode == Receive && r.cfg.Duration > 0 {
			r.await(ctx, func() bool { return r.since() >= q.until })
		} else {
			r.drain(ctx, backlog)
		}
		r.report.Out = throughput(r.out.Load(), r.since()-from, ProcessorTime()-cpu)
	}
	in, err := stop()
	r.report.Latency = quantiles(&in.latency)
	r.report.Foreign = in.foreign
	if r.cfg.Mode == InOut {
		want := r.in.Load()
		if r.cfg.Behind > 0 {
			want -= backlog
		}
		r.report.Missing = want - min(want, r.out.Load())
	}
	r.report.Behind = r.behind.Load()
	return err
}

// drain waits until everything that was accepted has been received, or nothing
// comes any more. With Receive, Count says how much is waited for.
func (r *run) drain(ctx context.Context, backlog uint64) {
	want := r.in.Load()
	if r.cfg.Behind > 0 {
		want -= backlog
	}
	if r.cfg.Mode == Receive && backlog == 0 {
		want = r.cfg.Count
	}
	seen, at := r.out.Load(), r.since()
	r.await(ctx, func() bool {
		now := r.since()
		if out := r.out.Load(); out != seen {
			seen, at = out, now
		}
		return seen >= want || now-at > drainPatience
	})
}

// await polls every millisecond until done reports true or ctx ends.
func (r *run) await(ctx context.Context, done func() bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// watch reports progress once a second until it is stopped.
func (r *run) watch(phase string) (stop func()) {
	if r.cfg.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	began, in0, out0 := r.since(), r.in.Load(), r.out.Load()
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		at, in, out := began, in0, out0
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			now, newIn, newOut := r.since(), r.in.Load(), r.out.Load()
			took := (now - at).Seconds()
			r.cfg.Progress(Progress{
				Phase: phase, Elapsed: now - began, In: newIn - in0, Out: newOut - out0,
				InRate: float64(newIn-in) / took, OutRate: float64(newOut-out) / took,
			})
			at, in, out = now, newIn, newOut
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}
