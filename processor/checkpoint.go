// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/client"
)

// tryDue returns what is to be saved of the pump, and keeps others from saving until saved
// is called. It returns false if there is nothing, or if a checkpoint is being written.
func (p *pump) tryDue() (mark, bool) {
	select {
	case p.saving <- struct{}{}:
	default:
		return mark{}, false
	}
	p.mu.Lock()
	m := mark{p.grant, p.progress.upTo}
	due := m.seqNo > p.progress.savedTo && !p.state.lost
	p.mu.Unlock()
	if !due {
		<-p.saving
	}
	return m, due
}

// saved ends what tryDue began.
func (p *pump) saved(n client.SeqNo, err error) {
	p.mu.Lock()
	if err == nil {
		p.progress.saved(n)
	}
	p.mu.Unlock()
	<-p.saving
	if errors.Is(err, ErrLost) {
		p.lose()
	}
}

// save writes a checkpoint and waits for it.
func (p *pump) save(ctx context.Context, n client.SeqNo) error {
	select {
	case p.saving <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.mu.Lock()
	needed, lost := n > p.progress.savedTo, p.state.lost || p.state.over || p.run.life.Err() != nil
	p.mu.Unlock()
	var err error
	switch {
	case lost:
		err = fmt.Errorf("%w: partition %s", ErrLost, p.grant.partition)
	case needed:
		err = p.write(ctx, n)
	}
	p.saved(n, err)
	return err
}

// write writes a checkpoint, whatever the one before.
func (p *pump) write(ctx context.Context, n client.SeqNo) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	errs, err := p.run.fleet.checkpoint(ctx, []mark{{p.grant, n}})
	if err != nil {
		return err
	}
	return errs[0]
}

// saveStart writes the first checkpoint of a partition: n, or the beginning if the
// partition never had an event.
func (p *pump) saveStart(ctx context.Context, n client.SeqNo) error {
	select {
	case p.saving <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	at := n
	if n < 0 {
		at = beginning
	}
	err := p.write(ctx, at)
	p.saved(n, err)
	return err
}

// saveIfDue saves before the next events are handled, if the policy asks for that. It
// tries until it succeeds, and returns false if the pump ends before.
func (p *pump) saveIfDue() bool {
	p.mu.Lock()
	n, due := p.progress.due(p.run.settings.policy)
	p.mu.Unlock()
	for failures := 1; due; failures++ {
		err := p.save(p.ctx, n)
		if err == nil {
			return true
		}
		if p.ending() {
			return false // handOver tries again
		}
		p.run.tell(fmt.Errorf("processor: checkpoint of partition %s: %w", p.grant.partition, err))
		if !p.wait(p.run.settings.retry(failures)) {
			return false
		}
	}
	return true
}

// checkpointByHand saves at the wish of the handler.
func (p *pump) checkpointByHand(ctx context.Context, n client.SeqNo) error {
	if err := p.save(ctx, n); err != nil {
		return fmt.Errorf("processor: checkpoint of partition %s at %d: %w", p.grant.partition, n, err)
	}
	return nil
}

// awaitDone waits until all events are done that were begun, with Async.
func (p *pump) awaitDone() {
	for {
		p.mu.Lock()
		left := p.progress.left
		p.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-p.news:
		case <-p.ctx.Done():
			return
		}
	}
}

// handOver saves and releases a partition that is drained and still this instance's. The
// release waits for the save: without it the next owner would repeat events. Both are tried
// until they succeed, since nobody works on the partition meanwhile.
func (p *pump) handOver() {
	p.mu.Lock()
	n, coolDown, how := p.progress.upTo, p.state.coolDown, p.state.handOver()
	p.mu.Unlock()
	switch how {
	case handOverNothing:
		return
	case handOverElsewhere:
		<-p.released
		return
	}
	ctx, cancel := p.untilDeposed()
	defer cancel()
	if how == handOverBack {
		p.handBack(ctx, n)
	} else {
		p.release(ctx, n, coolDown)
	}
}

// untilDeposed returns a context that ends when the fleet has ended the grant.
func (p *pump) untilDeposed() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(p.run.life)
	go func() { // ends with the caller
		select {
		case <-p.deposed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// leaveBehind saves and releases the partition of a handler that goes on after its time-out,
// so that another instance handles its events. This one does not get it back for the cool-down.
func (p *pump) leaveBehind() {
	defer close(p.released)
	ctx, cancel := p.untilDeposed()
	defer cancel()
	p.mu.Lock()
	p.stopFetch()
	n, coolDown := p.progress.upTo, max(p.state.coolDown, p.run.settings.coolDown)
	p.mu.Unlock()
	<-p.fetched // the reader is closed before another is told to open one
	p.forgetBacklog()
	p.release(ctx, n, coolDown)
	p.lose()
}

func (p *pump) release(ctx context.Context, n client.SeqNo, coolDown time.Duration) {
	name := p.grant.partition
	if p.run.settings.policy.kind != byHand {
		if !p.run.insist(ctx, "checkpoint of partition "+name, func(ctx context.Context) error { return p.save(ctx, n) }) {
			return
		}
	}
	if p.run.isStopping() {
		select {
		case <-p.run.left:
		case <-ctx.Done():
		}
	}
	p.run.insist(ctx, "release partition "+name, func(ctx context.Context) error { return p.run.fleet.release(ctx, p.grant, coolDown) })
}

// handBack releases a partition whose reader was ended by one that is none of the fleet's.
// If it was the next owner's, both requests are refused.
func (p *pump) handBack(ctx context.Context, n client.SeqNo) {
	name := p.grant.partition
	if p.run.settings.policy.kind != byHand && n >= 0 {
		saved := p.run.insist(ctx, "checkpoint of partition "+name, func(ctx context.Context) error { return p.write(ctx, n) })
		if !saved {
			return
		}
	}
	// The reader may be there still, and would end that of the next grant too.
	if !pause(ctx, stolenPause) {
		return
	}
	if p.run.insist(ctx, "release partition "+name, func(ctx context.Context) error { return p.run.fleet.release(ctx, p.grant, 0) }) {
		p.run.tell(fmt.Errorf("%w: partition %s was read with a higher epoch by a reader outside the group", ErrLost, name))
	}
}

// stolenPause bounds how often a partition is granted while somebody else reads it.
const stolenPause = time.Second
