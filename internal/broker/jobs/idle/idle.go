// SPDX-License-Identifier: Apache-2.0

package idle

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/broker/jobs"
	"github.com/triagemq/triagemq/internal/clock"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Every is how often the entities are examined.
const Every = 10 * time.Second

// Catalog is what the job needs of the catalog of entities.
type Catalog interface {
	Entities() []*catalog.Entity
	DeleteIdle(ctx context.Context, n *catalog.Entity, since time.Time) error
}

// Deletion is the job that deletes entities which were not used for their auto-delete
// time. What happened before this process started is not known, so the start counts as
// use. So does a step of the clock: the time since the last use is not known then.
type Deletion struct {
	catalog Catalog
	clock   *clock.Clock
	log     *slog.Logger
	since   time.Time
	stepped time.Duration
}

// New returns the job. The present time counts as the last use of every entity.
func New(c Catalog, clk *clock.Clock, log *slog.Logger) *Deletion {
	return &Deletion{catalog: c, clock: clk, log: log, since: clk.Now(), stepped: clk.State().Stepped}
}

// Name implements jobs.Job.
func (d *Deletion) Name() string { return "idle" }

// Run implements jobs.Job.
func (d *Deletion) Run(ctx context.Context) (jobs.Next, error) {
	now := d.clock.Now()
	if s := d.clock.State().Stepped; s != d.stepped {
		d.since, d.stepped = now, s
	}
	var errs error
	for _, n := range d.catalog.Entities() {
		if n.Outlived(d.since, now) {
			errs = cmp.Or(errs, d.Delete(ctx, n, d.since))
		}
	}
	return jobs.After(Every), errs
}

// Delete deletes an entity that was not used for its auto-delete time. One that is in use
// after all stays.
func (d *Deletion) Delete(ctx context.Context, n *catalog.Entity, since time.Time) error {
	err := d.catalog.DeleteIdle(ctx, n, since)
	switch {
	case err == nil:
		d.log.LogAttrs(ctx, slog.LevelInfo, "idle entity deleted", slog.String("entity", n.Path))
	case errors.Is(err, queueserver.ErrInUse) || ctx.Err() != nil:
		return nil
	default:
		d.log.LogAttrs(ctx, slog.LevelWarn, "idle entity not deleted",
			slog.String("entity", n.Path), slog.Any("err", err))
	}
	return err
}
