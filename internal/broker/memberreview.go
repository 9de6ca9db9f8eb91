// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"time"

	"github.com/triagemq/triagemq/internal/broker/jobs"
)

// ReviewMembers has the members of consumer groups looked at soon that are away, and for
// which their partitions wait: those that have lost the right by which they had joined end.
// It never blocks.
func (b *Broker) ReviewMembers() {
	if b.keeps.Load() {
		b.members.Wake()
	}
}

// memberReview is the job that does it. It runs when rights have changed.
type memberReview Broker

// reviewAgain is when a review that could not be finished is tried again.
const reviewAgain = time.Second

// Name implements jobs.Job.
func (r *memberReview) Name() string { return "members" }

// Run implements jobs.Job.
func (r *memberReview) Run(ctx context.Context) (jobs.Next, error) {
	b := (*Broker)(r)
	if b.logs == nil {
		return jobs.Next{}, nil
	}
	var errs []error
	for _, h := range b.Hubs() {
		on, err := b.hub(h.Name)
		if err != nil {
			continue // it was deleted, or has no members as long as its events cannot be reached
		}
		ctx, cancel := context.WithTimeout(ctx, forgetWithin)
		errs = append(errs, on.on.ReviewMembers(ctx))
		cancel()
	}
	if err := errors.Join(errs...); err != nil {
		return jobs.After(reviewAgain), err
	}
	return jobs.Next{}, nil
}
