// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/queueserver"
)

// Outlived reports whether an entity was not used for its auto-delete time. since is the
// earliest time that counts as use.
func (n *Entity) Outlived(since, now time.Time) bool {
	limit := n.Definition().Properties.AutoDeleteOnIdle
	return limit < entity.Forever && now.Sub(n.used(since)) >= limit.Std()
}

// used returns when an entity was last used or changed, if that was after since.
func (n *Entity) used(since time.Time) time.Time {
	for _, t := range []time.Time{time.UnixMilli(n.accessed.Load()), n.Definition().Updated} {
		if t.After(since) {
			since = t
		}
	}
	return since
}

// DeleteIdle deletes an entity that was not used for its auto-delete time, unless it is in
// use after all, which is queueserver.ErrInUse. The shard decides that in the same step: a
// send before the deletion counts as use, one after it gets ErrNotFound.
func (c *Catalog) DeleteIdle(ctx context.Context, n *Entity, since time.Time) error {
	return c.Change(ctx, func() error {
		if c.Entity(n.Path) != n {
			return queueserver.ErrInUse // it was used or changed meanwhile
		}
		var subs []*Entity
		if n.Kind == KindTopic {
			subs = c.SubscriptionsOf(n)
		}
		err := c.removeIdle(n, subs, since)
		if err == nil && n.Kind == KindSubscription {
			c.reroute(n.Topic)
		}
		return err
	})
}

// removeIdle drops an entity and its subscriptions, unless one of them is in use, which is
// queueserver.ErrInUse: then that is stored as its last use.
func (c *Catalog) removeIdle(n *Entity, subs []*Entity, since time.Time) error {
	accessed, ns := n.accessed.Load(), append([]*Entity{n}, subs...)
	o := queueserver.DropIdle{LastUse: since, Limit: n.Definition().Properties.AutoDeleteOnIdle.Std()}
	for _, at := range ns {
		o.LastUse = at.used(o.LastUse)
		o.Entities = append(o.Entities, queueserver.IdleEntity{ID: at.ID, Topic: at.Kind == KindTopic, Arrivals: at.Kind == KindQueue})
	}
	last, err := queueserver.Finish(n.Shard, o)
	if err != nil {
		if last.After(n.used(since)) {
			n.accessed.CompareAndSwap(accessed, last.UnixMilli()) // unless it is used at this moment
		}
		return fmt.Errorf("delete %q: %w", n.Path, err)
	}
	c.forget(ns)
	return nil
}

// InSessions reports whether every message of the sub-queue has a session.
func (n *Entity) InSessions(part queueserver.SubQueue) bool {
	return part == queueserver.Main && n.Definition().Properties.RequiresSession
}
