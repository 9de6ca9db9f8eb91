// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/shard"
)

const reapEvery = 10 * time.Second

// reap deletes entities that nobody has used for as long as they allow. What
// happened before this process started is not known, so the start counts as use. So
// does a step of the clock: how long ago something was used is not known then.
func (b *Broker) reap(ctx context.Context) {
	since, stepped := b.clock.Now(), b.clock.State().Stepped
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			now := b.clock.Now()
			if s := b.clock.State().Stepped; s != stepped {
				since, stepped = now, s
			}
			for _, n := range b.Entities() {
				if n.Outlived(since, now) {
					b.expire(ctx, n, since)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// expire deletes an entity that has outlived its use.
func (b *Broker) expire(ctx context.Context, n *catalog.Entity, since time.Time) {
	switch err := b.DeleteIdle(ctx, n, since); {
	case err == nil:
		b.log.LogAttrs(ctx, slog.LevelInfo, "idle entity deleted", slog.String("entity", n.Path))
	case !errors.Is(err, shard.ErrInUse) && ctx.Err() == nil:
		b.log.LogAttrs(ctx, slog.LevelWarn, "idle entity not deleted",
			slog.String("entity", n.Path), slog.Any("err", err))
	}
}
