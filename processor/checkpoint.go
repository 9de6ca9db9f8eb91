// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"errors"
	"fmt"

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
	m := mark{p.grant, p.tracker.upTo}
	due := m.seqNo > p.savedTo && !p.isLost
	p.mu.Unlock()
	if !due {
		<-p.saving
	}
	return m, due
}

// saved ends what tryDue began.
func (p *pump) saved(n client.SeqNo, err error) {
	p.mu.Lock()
	if err == nil && n > p.savedTo {
		p.savedTo = n
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
	needed, lost := n > p.savedTo, p.isLost || p.isOver || p.run.life.Err() != nil
	p.mu.Unlock()
	var err error
	switch {
	case lost:
		err = fmt.Errorf("%w: partition %s", ErrLost, p.grant.partition)
	case needed:
		var errs []error
		if errs, err = p.run.fleet.checkpoint(ctx, []mark{{p.grant, n}}); err == nil {
			err = errs[0]
		}
	}
	p.saved(n, err)
	return err
}

// saveIfDue saves before the next events are handled, if the policy asks for that. It
// tries until it succeeds, and returns false if the pump ends before.
func (p *pump) saveIfDue() bool {
	policy := p.run.settings.policy
	p.mu.Lock()
	due := policy.kind == everyCount && p.since >= policy.count
	n := p.tracker.upTo
	if due {
		p.since = 0
	}
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
		left := p.tracker.left
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
// release waits for the save: without it the next owner would repeat events.
func (p *pump) handOver() {
	p.mu.Lock()
	n, coolDown, by, drained := p.tracker.upTo, p.coolDown, p.by, p.draining && !p.isLost
	stolen := p.isLost && p.giveBack
	p.mu.Unlock()
	if stolen {
		p.handBack(n)
	}
	if !drained || p.run.life.Err() != nil {
		return
	}
	ctx, cancel := context.WithDeadline(p.run.life, by.Add(lastCall))
	defer cancel()
	for failures := 1; p.run.settings.policy.kind != byHand; failures++ {
		err := p.save(ctx, n)
		if errors.Is(err, ErrLost) {
			return
		}
		if err == nil {
			break
		}
		p.run.tell(fmt.Errorf("processor: checkpoint of partition %s: %w", p.grant.partition, err))
		if fatal(err) || !p.stillOwned(ctx, failures) {
			return
		}
	}
	if p.run.isStopping() {
		select {
		case <-p.run.left:
		case <-ctx.Done():
		}
	}
	if err := p.run.fleet.release(ctx, p.grant, coolDown); err != nil && !errors.Is(err, ErrLost) {
		p.run.tell(fmt.Errorf("processor: release partition %s: %w", p.grant.partition, err))
	}
}

// stillOwned waits before the next attempt, and returns false if there is none.
func (p *pump) stillOwned(ctx context.Context, failures int) bool {
	select {
	case <-p.lost:
		return false
	default:
		return pause(ctx, min(p.run.settings.retry(failures), lastCall))
	}
}

// handBack releases a partition whose reader was ended by one that is none of the fleet's.
// If it was the next owner's, both requests are refused.
func (p *pump) handBack(n client.SeqNo) {
	ctx, cancel := context.WithTimeout(p.run.life, lastCall)
	defer cancel()
	if p.run.settings.policy.kind != byHand {
		if _, err := p.run.fleet.checkpoint(ctx, []mark{{p.grant, n}}); err != nil {
			return
		}
	}
	if err := p.run.fleet.release(ctx, p.grant, 0); err == nil {
		p.run.tell(fmt.Errorf("%w: partition %s was read with a higher epoch by a reader outside the group", ErrLost, p.grant.partition))
	}
}
