// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/shard"
)

const reapEvery = 10 * time.Second

// errInUse says that an entity that seemed idle is not.
var errInUse = errors.New("broker: entity is in use")

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
		err := b.removeIf(func(tx *shard.Tx) error { return n.checkIdle(tx, since, subs) }, append([]*node{n}, subs...)...)
		if err == nil && n.kind == KindSubscription {
			err = b.reroute(n.topic)
		}
		if err == nil {
			b.log.LogAttrs(ctx, slog.LevelInfo, "idle entity deleted", slog.String("entity", n.path))
		}
		return err
	})
	if err != nil && !errors.Is(err, errInUse) && ctx.Err() == nil {
		b.log.LogAttrs(ctx, slog.LevelWarn, "idle entity not deleted",
			slog.String("entity", n.path), slog.Any("err", err))
	}
}

// checkIdle returns errInUse if an entity, or one of its subscriptions, is in use:
// then it is looked at again when it may have outlived that.
func (n *node) checkIdle(tx *shard.Tx, since time.Time, subs []*node) error {
	now, accessed := tx.Now(), n.accessed.Load()
	used := n.used(since)
	for _, at := range append([]*node{n}, subs...) {
		last, err := at.lastUse(tx, now)
		if err != nil {
			return err
		}
		if used = at.used(used); last.After(used) {
			used = last
		}
	}
	if used.After(n.used(since)) {
		n.accessed.CompareAndSwap(accessed, used.UnixMilli()) // unless it is used at this moment
	}
	if !n.outlived(since, now) {
		return errInUse
	}
	return nil
}

// lastUse returns when an entity was last used as its messages and consumers tell:
// now, if somebody receives from it, be it a mover that forwards, or if it has
// accepted messages whose time has yet to come.
func (n *node) lastUse(tx *shard.Tx, now time.Time) (time.Time, error) {
	q, err := tx.Inspect(n.id, shard.Main)
	if err != nil {
		return time.Time{}, err
	}
	c := q.Counts()
	readers := tx.Consumers(n.id, shard.DeadLetter) + tx.Consumers(n.id, shard.TransferDeadLetter)
	switch n.kind {
	case KindTopic: // its own mover is no use, but what it has yet to publish
		if readers > 0 || c.Total() > 0 {
			return now, nil
		}
	default:
		if readers+tx.Consumers(n.id, shard.Main) > 0 || c.Scheduled > 0 {
			return now, nil
		}
	}
	if n.kind == KindQueue { // the last to arrive may have waited for its time
		if d, ok := q.Lookup(q.Last()); ok {
			return d.EnqueuedAt, nil
		}
	}
	return time.Time{}, nil
}
