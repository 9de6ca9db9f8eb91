// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"maps"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
)

// Right is that by which a member has joined, for the time when its connection is gone and
// nobody else looks at it. The zero value never ends.
type Right struct {
	Ends  time.Time   // zero is never
	Holds func() bool // may be called from any goroutine; nil: as long as that
}

// away is a member whose partitions wait for it.
type away struct {
	run   string
	holds func() bool
}

// goneAway has the partitions of a member wait for it as long as its right holds.
func (h *Hub) goneAway(key memberKey, run string, by Right) {
	c, now := h.groups, h.tx.Now()
	c.m.Gone(now, key.group, key.id)
	if !by.Ends.IsZero() {
		c.m.KeepUntil(now, key.group, key.id, by.Ends)
	}
	if by.Holds != nil && c.m.Run(key.group, key.id) == run {
		c.away[key] = away{run, by.Holds}
	}
	h.tx.Schedule(c.unit)
}

// forgetAway says that a member is back, or none any more.
func (h *Hub) forgetAway(key memberKey) { delete(h.groups.away, key) }

// ReviewMembers ends the members that are away and have lost the right by which they had
// joined: nothing waits for them any more. It is called when rights have changed.
func (h *Hub) ReviewMembers(ctx context.Context) error {
	if !h.anyAway.Load() {
		return nil
	}
	there := make(map[memberKey]away)
	err := h.do(ctx, func(*engine.Tx) error {
		if h.groups != nil {
			maps.Copy(there, h.groups.away)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key, a := range there { // not on the goroutine of the engine: it asks others
		if a.holds() {
			continue
		}
		expel := h.settles(func(g *group.Groups, now time.Time) error {
			if h.groups.away[key].run == a.run {
				g.Expel(now, key.group, key.id, a.run, &h.eff)
				h.forgetAway(key)
			}
			return nil
		})
		if err := h.do(ctx, expel); err != nil {
			return err
		}
	}
	return nil
}
