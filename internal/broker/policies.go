// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs/reclassify"
	"github.com/triagemq/triagemq/internal/policy"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// The names of dry runs that callers of the broker use.
type (
	// DryRun is what a policy would do.
	DryRun = reclassify.DryRun
	// Transition is how many messages would change from one class and level to another.
	Transition = reclassify.Transition
	// ClassLevel is a class and a level that a message has.
	ClassLevel = reclassify.ClassLevel
)

// DryRun returns what another policy would change for the messages of a queue or
// subscription. It changes nothing.
func (b *Broker) DryRun(ctx context.Context, addr string, raw []byte) (DryRun, error) {
	n, err := b.PolicyEntity(addr)
	if err != nil {
		return DryRun{}, err
	}
	p, release, err := b.tryPolicy(ctx, n, raw)
	if err != nil {
		return DryRun{}, err
	}
	defer release()
	return reclassify.Preview(ctx, n, p, func() (done func()) { return b.ForProcessor(n) })
}

// tryPolicy compiles a policy for a dry run, and charges what it takes until release is
// called. One is compiled at a time: what it takes is known only afterwards.
func (b *Broker) tryPolicy(ctx context.Context, n *catalog.Entity, raw []byte) (p *policy.Policy, release func(), err error) {
	err = b.Compiling(ctx, func() error {
		if p, err = catalog.ParsePolicy(raw); err == nil {
			release, err = b.BorrowMemory(ctx, n, p.Cost())
		}
		return err
	})
	return p, release, err
}

// SetPolicy replaces the policy of a queue or subscription; null removes it. The new one
// applies to the next message at once. The stored messages are reclassified and keep
// their age; SetPolicy returns when that is done. If ctx ends before, it continues.
func (b *Broker) SetPolicy(ctx context.Context, addr string, raw []byte) (PolicyState, error) {
	n, err := b.ReplacePolicy(ctx, addr, raw)
	if err != nil {
		return PolicyState{}, err
	}
	if err := b.reclassifier.Wait(ctx, n); err != nil {
		return PolicyState{}, err
	}
	if _, err := queueserver.Do(ctx, n.Shard, queueserver.AwaitOrder{ID: n.ID}); err != nil {
		return PolicyState{}, err
	}
	return catalog.PolicyStateOf(n, n.Definition()), nil
}
