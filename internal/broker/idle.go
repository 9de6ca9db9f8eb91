// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
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
			for _, n := range b.sorted() {
				if n.outlived(since, now) {
					b.expire(ctx, n, since)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// outlived reports whether an entity was last used, if it was since a time, longer
// ago than it allows.
func (n *node) outlived(since, now time.Time) bool {
	limit := n.def.Load().queue.AutoDeleteOnIdle
	return limit < entity.Forever && now.Sub(n.used(since)) >= limit.Std()
}

// used returns when an entity was last used or changed, if that was after since.
func (n *node) used(since time.Time) time.Time {
	for _, t := range []time.Time{time.UnixMilli(n.accessed.Load()), n.def.Load().Updated} {
		if t.After(since) {
			since = t
		}
	}
	return since
}

// expire deletes an entity that has outlived its use, unless it turns out to be in
// use after all. That is decided where its messages are, in the same step: a send
// that comes before the deletion has counted as use, one that comes after is told
// that there is no such entity.
func (b *Broker) expire(ctx context.Context, n *node, since time.Time) {
	err := b.change(ctx, func() error {
		if b.node(n.path) != n {
			return nil // somebody was faster
		}
		var subs []*node
		if n.kind == KindTopic {
			subs = b.subscriptions(n)
		}
		err := b.removeIdle(n, subs, since)
		if err == nil && n.kind == KindSubscription {
			err = b.reroute(n.topic)
		}
		if err == nil {
			b.log.LogAttrs(ctx, slog.LevelInfo, "idle entity deleted", slog.String("entity", n.path))
		}
		return err
	})
	if err != nil && !errors.Is(err, shard.ErrInUse) && ctx.Err() == nil {
		b.log.LogAttrs(ctx, slog.LevelWarn, "idle entity not deleted",
			slog.String("entity", n.path), slog.Any("err", err))
	}
}

// removeIdle drops an entity and its subscriptions, unless one of them is in use,
// which is shard.ErrInUse: then it is looked at again when it may have outlived that.
func (b *Broker) removeIdle(n *node, subs []*node, since time.Time) error {
	accessed, ns := n.accessed.Load(), append([]*node{n}, subs...)
	o := shard.DropIdle{LastUse: since, Limit: n.def.Load().queue.AutoDeleteOnIdle.Std()}
	for _, at := range ns {
		o.LastUse = at.used(o.LastUse)
		o.Entities = append(o.Entities, shard.IdleEntity{ID: at.id, Topic: at.kind == KindTopic, Arrivals: at.kind == KindQueue})
	}
	last, err := shard.Finish(n.shard, o)
	if err != nil {
		if last.After(n.used(since)) {
			n.accessed.CompareAndSwap(accessed, last.UnixMilli()) // unless it is used at this moment
		}
		return fmt.Errorf("delete %q: %w", n.path, err)
	}
	b.forget(ns)
	return nil
}
