// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
)

const reapEvery = 10 * time.Second

// reap deletes entities that nobody has used for as long as they allow.
func (b *Broker) reap(ctx context.Context) {
	started := time.Now()
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, n := range b.sorted() {
				if b.idle(ctx, n, started, now) {
					b.expire(ctx, n)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// idle reports whether an entity has outlived its use. A receiver that waits is
// use; what happened before this process started is not known, so the start
// counts as one.
func (b *Broker) idle(ctx context.Context, n *node, started, now time.Time) bool {
	def := n.def.Load()
	limit := def.queue.AutoDeleteOnIdle
	if limit >= entity.Forever {
		return false
	}
	last := started
	for _, t := range []time.Time{time.UnixMilli(n.accessed.Load()), def.Updated} {
		if t.After(last) {
			last = t
		}
	}
	if now.Sub(last) < limit.Std() {
		return false
	}
	rt, err := b.Runtime(ctx, n.path)
	return err == nil && (n.kind == KindTopic || rt.Receivers == 0)
}

func (b *Broker) expire(ctx context.Context, n *node) {
	var err error
	switch n.kind {
	case KindQueue:
		err = b.DeleteQueue(ctx, n.path)
	case KindTopic:
		err = b.DeleteTopic(ctx, n.path)
	case KindSubscription:
		err = b.DeleteSubscription(ctx, n.topic.path, n.def.Load().Subscription.Name)
	}
	if err == nil {
		b.log.LogAttrs(ctx, slog.LevelInfo, "idle entity deleted", slog.String("entity", n.path))
	} else if !errors.Is(err, ErrNotFound) && ctx.Err() == nil {
		b.log.LogAttrs(ctx, slog.LevelWarn, "idle entity not deleted",
			slog.String("entity", n.path), slog.Any("err", err))
	}
}
