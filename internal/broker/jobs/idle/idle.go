// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/queueserver"
)

const reapEvery = 10 * time.Second

// idleDeletion is the job that deletes entities which were not used for their auto-delete
// time. What happened before this process started is not known, so the start counts as
// use. So does a step of the clock: the time since the last use is not known then.
type idleDeletion struct {
	b       *Broker
	since   time.Time
	stepped time.Duration
}

func newIdleDeletion(b *Broker) *idleDeletion {
	return &idleDeletion{b: b, since: b.clock.Now(), stepped: b.clock.State().Stepped}
}

// Name implements jobs.Job.
func (d *idleDeletion) Name() string { return "idle" }

// Run implements jobs.Job.
func (d *idleDeletion) Run(ctx context.Context) (jobs.Next, error) {
	now := d.b.clock.Now()
	if s := d.b.clock.State().Stepped; s != d.stepped {
		d.since, d.stepped = now, s
	}
	var errs error
	for _, n := range d.b.Entities() {
		if n.Outlived(d.since, now) {
			errs = cmp.Or(errs, d.b.expire(ctx, n, d.since))
		}
	}
	return jobs.After(reapEvery), errs
}

// expire deletes an entity that was not used for its auto-delete time.
func (b *Broker) expire(ctx context.Context, n *catalog.Entity, since time.Time) error {
	err := b.DeleteIdle(ctx, n, since)
	switch {
	case err == nil:
		b.log.LogAttrs(ctx, slog.LevelInfo, "idle entity deleted", slog.String("entity", n.Path))
	case errors.Is(err, queueserver.ErrInUse) || ctx.Err() != nil:
		return nil
	default:
		b.log.LogAttrs(ctx, slog.LevelWarn, "idle entity not deleted",
			slog.String("entity", n.Path), slog.Any("err", err))
	}
	return err
}
