// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triagemq/triagemq/client"
)

// pump reads and handles one partition, for one grant of it. One goroutine works, another
// fetches. It ends when it is drained, or when the partition is lost.
type pump struct {
	run       *run
	grant     grant
	partition *Partition

	ctx     context.Context // of the handler
	cancel  context.CancelCauseFunc
	lost    chan struct{} // closed when the partition is another's
	deposed chan struct{} // closed when the fleet says so
	drains  chan struct{} // closed when no further events are to be handled
	news    chan struct{} // capacity 1: work should look again
	freed   chan struct{} // capacity 1: fetch should look again
	saving  chan struct{} // capacity 1: full while a checkpoint is written

	stopFetch context.CancelFunc
	fetched   chan struct{} // closed when fetch has ended
	released  chan struct{} // closed when leaveBehind has ended

	end       *client.SeqNo // where a pump with Latest begins; owned by fetch
	isDeposed bool          // owned by loop
	inHand    int           // bytes of the events that are being handled, about; owned by work

	busy  atomic.Int64 // nanoseconds of the handler since the last report
	bytes atomic.Uint64

	mu       sync.Mutex
	backlog  backlog
	current  time.Time // when the first event in hand was enqueued; zero: none is
	progress progress
	state    lifecycle
	resting  bool
	standing bool   // at a gap
	skipped  uint64 // events of gaps since the last report
	timers   []*time.Timer
}

// maxGap bounds how many events are begun behind one that is not done, with Async.
const maxGap = 100_000

func newPump(r *run, g grant) *pump {
	p := &pump{
		run: r, grant: g, lost: make(chan struct{}), deposed: make(chan struct{}), drains: make(chan struct{}),
		news: make(chan struct{}, 1), freed: make(chan struct{}, 1), saving: make(chan struct{}, 1), fetched: make(chan struct{}), released: make(chan struct{}),
		progress: newProgress(g.after),
	}
	if g.rewound != nil {
		p.progress.next = none // whatever there is at that position
	}
	p.partition = &Partition{p}
	p.ctx, p.cancel = context.WithCancelCause(context.WithoutCancel(r.life))
	return p
}

// depose is lose for a grant that the fleet has ended. Only loop calls it.
func (p *pump) depose() {
	if !p.isDeposed {
		p.isDeposed = true
		close(p.deposed)
		p.lose()
	}
}

// lose ends the pump: the partition is another's. The handler's context ends.
func (p *pump) lose() {
	p.mu.Lock()
	first := p.state.lose()
	p.mu.Unlock()
	if !first {
		return
	}
	close(p.lost)
	p.run.totals.lost.Add(1)
	p.run.settings.log.Debug("partition lost", "partition", p.grant.partition, "epoch", p.grant.epoch)
	p.interrupt(ErrLost)
}

// interrupt ends the handler's context, and reports it as stuck if it goes on.
func (p *pump) interrupt(cause error) {
	p.cancel(fmt.Errorf("%w: partition %s", cause, p.grant.partition))
	p.after(lastCall, func() {
		p.mu.Lock()
		stuck := p.state.endOfContext()
		p.mu.Unlock()
		if stuck {
			p.post(p.run.stuck)
		}
	})
}

// post sends the pump to the run, unless that is over.
func (p *pump) post(to chan<- *pump) {
	select {
	case to <- p:
	case <-p.run.life.Done():
	}
}

// after calls f later, unless the pump is over by then.
func (p *pump) after(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.state.over {
		p.timers = append(p.timers, time.AfterFunc(d, f))
	}
}

// drain has the pump end after the batch in hand. At by its handler's context ends with
// cause; a little earlier, if that is when the partition is taken, so that there is time
// to save and release.
func (p *pump) drain(by time.Time, coolDown time.Duration, cause error) {
	p.mu.Lock()
	first, changed := p.state.drain(by, coolDown)
	p.mu.Unlock()
	if !changed {
		return
	}
	if first {
		close(p.drains)
	}
	left := time.Until(by)
	if cause == ErrLost {
		left -= min(time.Second, left/4)
	}
	p.after(left, func() { p.interrupt(cause) })
	p.wake()
}

// giveUp drains the pump at the wish of the handler.
func (p *pump) giveUp(coolDown time.Duration) {
	p.drain(time.Now().Add(p.run.settings.grace), coolDown, ErrLost)
}

func (p *pump) isStuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.stuck
}

func (p *pump) hasReturned() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.returned
}

// wake has work look again.
func (p *pump) wake() { signal(p.news) }

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it was not noticed yet, and will be
	}
}

// work handles events until the pump ends.
func (p *pump) work() {
	reading, stop := context.WithCancel(p.run.life)
	p.mu.Lock()
	p.stopFetch = stop
	p.mu.Unlock()
	go func() { // ends with work, which waits for it
		defer close(p.fetched)
		p.fetch(reading)
	}()
	for {
		events := p.take()
		if len(events) == 0 {
			break
		}
		if !p.handle(events) {
			break
		}
	}
	stop()
	p.awaitDone()
	p.mu.Lock()
	p.state.returned = true
	p.mu.Unlock()
	<-p.fetched // the reader is closed before another is told to open one
	p.forgetBacklog()
	p.run.memory.release(p.inHand)
	p.handOver()
	p.mu.Lock()
	p.state.over = true
	for _, t := range p.timers {
		t.Stop()
	}
	p.mu.Unlock()
	p.cancel(fmt.Errorf("%w: partition %s", ErrLost, p.grant.partition))
	p.post(p.run.ended)
}

// take waits for events that can be handled. It returns none when the pump ends.
func (p *pump) take() []*client.Received {
	p.run.memory.release(p.inHand)
	p.inHand = 0
	for !p.ending() {
		if p.run.processor.Async && !p.saveIfDue() {
			return nil
		}
		if p.run.processor.paused(p.grant.partition) || p.run.silent() {
			// Somebody else may own the partition. A good report, or the loss, wakes us.
		} else if events, gap := p.tryTake(); events != nil {
			return events
		} else if gap != nil && p.meetGap(gap.after, gap.next) {
			continue
		}
		select {
		case <-p.news:
		case <-p.lost:
			return nil
		case <-p.drains:
			return nil
		case <-p.ctx.Done():
			return nil
		}
	}
	return nil
}

func (p *pump) ending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.ending() || p.ctx.Err() != nil
}

// missing is a gap before the next event.
type missing struct{ after, next client.SeqNo }

// tryTake takes the events of one batch from the backlog; none if there are none, or if there
// is a gap before them.
func (p *pump) tryTake() ([]*client.Received, *missing) {
	p.mu.Lock()
	s := &p.run.settings
	first := p.backlog.first()
	if p.state.ending() || first == nil || p.run.processor.Async && (p.progress.left >= s.prefetch || len(p.progress.open) >= maxGap) {
		p.mu.Unlock()
		return nil, nil
	}
	after, is := p.progress.gap(first.SeqNo())
	p.mu.Unlock()
	if is {
		return nil, &missing{after, first.SeqNo()}
	}
	events := p.decode(s.batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = events[0].Enqueued
	p.progress.taken(events)
	if p.run.processor.Async {
		p.progress.begin(events)
	}
	return events, nil
}

// decode takes up to limit events from the backlog, whose numbers follow each other. Only work
// calls it.
func (p *pump) decode(limit int) (events []*client.Received) {
	for len(events) < limit {
		p.mu.Lock()
		part := p.backlog.first()
		if events == nil {
			events = make([]*client.Received, 0, min(limit, p.backlog.events))
		}
		p.mu.Unlock()
		n := len(events)
		if part == nil || n > 0 && part.SeqNo() != events[n-1].SeqNo+1 {
			break
		}
		events = part.Take(p.ctx, events, limit-n)
		p.mu.Lock()
		freed := p.backlog.took(len(events) - n)
		p.mu.Unlock()
		p.inHand += freed
		signal(p.freed)
	}
	size := 0
	for _, e := range events {
		size += len(e.Body)
	}
	p.bytes.Add(uint64(size))
	return events
}

// fetch reads events ahead of the handler.
func (p *pump) fetch(ctx context.Context) {
	var r reader
	for failures := 0; ctx.Err() == nil; {
		limit := p.space(ctx)
		if limit == 0 {
			break
		}
		var events stored
		var err error
		if r == nil {
			r, err = p.open(ctx)
		}
		if err == nil {
			events, err = r.receive(ctx, limit)
		}
		if err == nil {
			failures = 0
			p.put(events)
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, ErrLost) {
			p.lose()
			break
		}
		if isStolen(err) {
			release := p.run.fleet.stolen(p.grant)
			p.mu.Lock()
			p.state.giveBack = release
			p.mu.Unlock()
			p.lose()
			break
		}
		failures++
		p.run.tell(fmt.Errorf("processor: read partition %s: %w", p.grant.partition, err))
		pause(ctx, defaultRetry(failures))
	}
	if r != nil {
		_ = r.Close() // nothing is lost: the broker remembers no positions of readers
	}
}

// isStolen reports whether a reader was ended, or refused, because of another's.
func isStolen(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == stolenCode
}

// stolenCode is the condition of a reader that another one has ended.
const stolenCode = "amqp:link:stolen"

// open opens the reader where the last owner ended.
func (p *pump) open(ctx context.Context) (reader, error) {
	at, err := p.startPosition(ctx)
	if err != nil {
		return nil, err
	}
	return p.run.link.open(ctx, p.grant.partition, readerOptions{at: at, epoch: p.grant.epoch, ahead: p.run.ahead()})
}

func (p *pump) startPosition(ctx context.Context) (Position, error) {
	g := &p.grant
	switch {
	case g.rewound != nil:
	case g.after == beginning, g.after == oldest:
		return Earliest(), nil
	case g.after != none:
		return behind(g.after), nil
	}
	at, ok := p.run.processor.StartOf[g.partition]
	if !ok {
		at = p.run.processor.Start
	}
	if g.rewound != nil {
		at = *g.rewound
	}
	if at.kind != latest {
		return at, nil
	}
	return p.settleLatest(ctx)
}

// settleLatest saves the end of the partition as its first checkpoint, before an event is
// handled. The end is another one for the next owner, who would skip what came meanwhile.
func (p *pump) settleLatest(ctx context.Context) (Position, error) {
	if p.end == nil { // else an attempt has failed, and may have been saved
		last, err := p.run.link.last(ctx, p.grant.partition)
		if err != nil {
			return Position{}, err
		}
		p.end = &last
	}
	last := *p.end
	if err := p.saveStart(ctx, last); err != nil {
		return Position{}, err
	}
	p.mu.Lock()
	p.progress.startAfter(last)
	p.mu.Unlock()
	return behind(last), nil
}

// space waits until events may be fetched and returns how many; 0 if ctx ends.
func (p *pump) space(ctx context.Context) int {
	for {
		p.mu.Lock()
		n := p.run.settings.prefetch - p.backlog.events
		empty := p.backlog.events == 0
		full := n <= p.run.settings.prefetch/4 || p.backlog.bytes >= maxWeight // a few are not worth a turn
		p.mu.Unlock()
		if empty || !full && p.run.memory.admits(p) {
			return n
		}
		select {
		case <-p.freed:
		case <-ctx.Done():
			return 0
		}
	}
}

// put queues events for work.
func (p *pump) put(events stored) {
	p.run.memory.take(events.Size())
	first := events.SeqNo()
	p.mu.Lock()
	p.backlog.put(events)
	if p.grant.rewound != nil && p.progress.upTo == none {
		p.progress.upTo = first - 1 // so that a crash does not undo the rewind
	}
	p.mu.Unlock()
	p.wake()
}

// forgetBacklog gives back the memory of events that this pump does not handle any more.
func (p *pump) forgetBacklog() {
	p.mu.Lock()
	left := p.backlog.drop()
	p.mu.Unlock()
	p.run.memory.forget(p, left)
}

func (p *pump) lag() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.current
	if at.IsZero() {
		at = p.backlog.since
	}
	if at.IsZero() {
		return 0
	}
	return max(time.Since(at), 0)
}

func (p *pump) status() PartitionStatus {
	s := PartitionStatus{ID: p.grant.partition, Epoch: p.grant.epoch, State: "running", Lag: p.lag()}
	paused := p.run.processor.paused(p.grant.partition)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Handled, s.Checkpoint, s.Waiting = p.progress.upTo, p.progress.savedTo, p.backlog.events
	switch {
	case p.state.stuck:
		s.State = "stuck"
	case p.state.ending():
		s.State = "moving"
	case paused:
		s.State = "paused"
	case p.resting:
		s.State = "cooling down"
	case p.standing:
		s.State = "gap"
	}
	return s
}

// reported says that the fleet has heard a report.
func (p *pump) reported(r report) {
	p.mu.Lock()
	p.skipped -= r.skipped
	p.mu.Unlock()
}

func (p *pump) report() report {
	r := report{partition: p.grant.partition, epoch: p.grant.epoch, busy: time.Duration(p.busy.Swap(0)), bytes: p.bytes.Swap(0)}
	p.mu.Lock()
	r.handled, r.skipped = p.progress.upTo, p.skipped
	p.mu.Unlock()
	return r
}
