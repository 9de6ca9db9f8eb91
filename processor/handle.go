// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"strings"
	"time"

	"github.com/triagemq/triagemq/client"
)

// handle has events handled, whatever it takes. It returns false if the pump ends before
// they are; the next owner has them then.
func (p *pump) handle(events []*client.Received) bool {
	defer p.idle()
	for {
		err, ended := p.attempts(events)
		switch {
		case ended:
			p.abandon(events)
			return false
		case err == nil:
			return true
		case len(events) > 1:
			return p.handleEach(events)
		case p.deadLetter(events[0], err):
			p.completed(events)
			return true
		case !p.rest():
			p.abandon(events)
			return false
		}
	}
}

// handleEach handles the events of a batch that failed one by one, so that only those go
// to the dead letter queue that fail by themselves.
func (p *pump) handleEach(events []*client.Received) bool {
	for i := range events {
		if p.isDone(events[i]) {
			continue
		}
		if p.ending() {
			p.abandon(events[i:])
			return false
		}
		if !p.handle(events[i : i+1 : i+1]) {
			p.abandon(events[i:])
			return false
		}
	}
	return true
}

// attempts calls the handler until it succeeds or has failed too often. It returns ended
// if the pump ends before.
func (p *pump) attempts(events []*client.Received) (err error, ended bool) {
	for failures := 1; ; failures++ {
		if !p.inContact() {
			return err, true
		}
		err = p.call(p.remaining(events))
		if err == nil {
			if p.run.processor.Async {
				return nil, false
			}
			return nil, !p.completed(events)
		}
		if p.ctx.Err() != nil || p.isStuck() {
			return err, true // it has come too late
		}
		p.run.totals.failed.Add(1)
		p.run.tell(fmt.Errorf("%w: partition %s, events %d to %d, attempt %d: %w", ErrHandler, p.grant.partition,
			events[0].SeqNo, events[len(events)-1].SeqNo, failures, err))
		if failures >= p.run.settings.attempts {
			return err, false
		}
		if !p.wait(p.run.settings.retry(failures)) {
			return err, true
		}
	}
}

// inContact waits while somebody else may own the partition, so that a handler that fails
// is not called again and again beside that of the new owner. It returns false if the pump
// ends.
func (p *pump) inContact() bool {
	for p.run.silent() {
		select {
		case <-p.news: // a good report is one
		case <-p.drains:
			return false
		case <-p.lost:
			return false
		case <-p.ctx.Done():
			return false
		}
	}
	return true
}

// call runs the handler once.
func (p *pump) call(events []*client.Received) (err error) {
	if len(events) == 0 {
		return nil
	}
	ctx, ended := p.beginCall()
	began := time.Now()
	defer func() {
		p.busy.Add(int64(time.Since(began)))
		if v := recover(); v != nil {
			p.run.totals.panics.Add(1)
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrTimeout) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		ended()
	}()
	return p.run.processor.Handle(ctx, p.partition, events)
}

// beginCall returns the context of one call of the handler, and what to do when it returns.
func (p *pump) beginCall() (context.Context, func()) {
	p.mu.Lock()
	n := p.state.call()
	p.mu.Unlock()
	returned := func() {
		p.mu.Lock()
		p.state.calling = false
		p.mu.Unlock()
	}
	limit := p.run.settings.timeout
	if limit == 0 {
		return p.ctx, returned
	}
	ctx, cancel := context.WithTimeoutCause(p.ctx, limit, fmt.Errorf("%w: %v", ErrTimeout, limit))
	late := time.AfterFunc(limit+lastCall, func() {
		p.mu.Lock()
		stuck := p.state.timedOut(n)
		p.mu.Unlock()
		if stuck {
			p.post(p.run.stuck)
			p.leaveBehind() // work waits for it
		}
	})
	return ctx, func() {
		returned()
		late.Stop()
		cancel()
	}
}

// remaining returns the events that are not done. With Async some of a batch that failed
// may be.
func (p *pump) remaining(events []*client.Received) []*client.Received {
	if !p.run.processor.Async {
		return events
	}
	var out []*client.Received
	for _, e := range events {
		if !p.isDone(e) {
			out = append(out, e)
		}
	}
	return out
}

func (p *pump) isDone(e *client.Received) bool {
	if !p.run.processor.Async {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress.isDone(e.SeqNo)
}

// done is called for single events, with Async.
func (p *pump) done(n client.SeqNo) {
	p.mu.Lock()
	finished := p.progress.done(n)
	p.mu.Unlock()
	if finished {
		p.run.totals.handled.Add(1)
		p.wake() // there is room for more, and perhaps a checkpoint is due
	}
}

// completed notes that events are done, and saves if it is time. It returns false if the
// pump ends while it waits for that.
func (p *pump) completed(events []*client.Received) bool {
	if p.run.processor.Async { // a dead letter
		for _, e := range events {
			p.done(e.SeqNo)
		}
		return true
	}
	p.run.totals.handled.Add(uint64(len(events)))
	p.mu.Lock()
	p.progress.handled(events)
	p.mu.Unlock()
	return p.saveIfDue()
}

// abandon leaves events to the next owner.
func (p *pump) abandon(events []*client.Received) {
	if !p.run.processor.Async {
		return
	}
	p.mu.Lock()
	p.progress.forget(events[0].SeqNo)
	p.mu.Unlock()
	p.wake()
}

// idle says that no event is in hand.
func (p *pump) idle() {
	p.mu.Lock()
	p.current = time.Time{}
	p.mu.Unlock()
}

// wait pauses, and returns false if the pump ends.
func (p *pump) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !p.ending()
	case <-p.drains:
	case <-p.lost:
	case <-p.ctx.Done():
	}
	return false
}

// rest has the partition stand still after an event that could not be handled.
func (p *pump) rest() bool {
	p.setResting(true)
	defer p.setResting(false)
	p.run.settings.log.Warn("partition stands still", "partition", p.grant.partition, "for", p.run.settings.coolDown)
	return p.wait(p.run.settings.coolDown)
}

func (p *pump) setResting(on bool) {
	p.mu.Lock()
	p.resting = on
	p.mu.Unlock()
}

// Properties of a dead letter, by which one can tell where it came from.
const (
	propertyReason      = "DeadLetterReason"
	propertyDescription = "DeadLetterErrorDescription"
	propertyHub         = "triagemq-hub"
	propertyGroup       = "triagemq-consumer-group"
	propertyPartition   = "triagemq-partition"
	propertySeqNo       = "triagemq-sequence-number"
	propertyEnqueued    = "triagemq-enqueued-time"
	propertyID          = "triagemq-message-id"

	reasonFailed   = "HandlerFailed"
	maxDescription = 4096 // bytes
	maxLetterID    = 128  // as the broker has it
)

// letterID returns the message id of a dead letter, by which duplicate detection sees a
// repetition. The key of a hub with a long name is too long for one.
func letterID(key string) string {
	if len(key) <= maxLetterID {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// deadLetter sends an event to the dead letter queue. It returns false if there is none,
// or if it does not take the event.
func (p *pump) deadLetter(e *client.Received, why error) bool {
	queue := p.run.processor.DeadLetter
	if queue == "" {
		return false
	}
	text := why.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxDescription)], "") // others cannot be sent
	m := e.Message
	m.Properties = map[string]any{}
	maps.Copy(m.Properties, e.Properties)
	maps.Copy(m.Properties, map[string]any{
		propertyReason: reasonFailed, propertyDescription: text,
		propertyHub: p.run.settings.hub, propertyGroup: p.run.settings.group,
		propertyPartition: p.grant.partition, propertySeqNo: int64(e.SeqNo), propertyEnqueued: e.Enqueued,
	})
	if m.ID != "" {
		m.Properties[propertyID] = m.ID
	}
	m.ID = letterID(p.partition.Key(e))
	m.TTL, m.ScheduleAt = 0, time.Time{}
	ctx, cancel := context.WithTimeout(p.ctx, p.run.settings.coolDown)
	defer cancel()
	if err := p.run.link.send(ctx, queue, &m); err != nil {
		p.run.tell(fmt.Errorf("processor: dead letter queue %s: %w", queue, err))
		return false
	}
	p.run.totals.dead.Add(1)
	p.run.settings.log.Warn("event is a dead letter", "partition", p.grant.partition, "event", e.SeqNo, "queue", queue)
	return true
}
