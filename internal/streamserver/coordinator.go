// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
)

// coordinator is what a hub has for processors: the state of its consumer groups, and the
// members that are connected. It is made when it is first needed. The engine's goroutine
// owns it.
//
//	Join, Checkpoint …  ──► group.Groups ──► records ─► journal
//	                             │ news                    │ durable
//	                             └──► notices ─────────────┴──► Changed, Ended
type coordinator struct {
	m          *group.Groups
	unit       *engine.Unit
	partitions int                   // that m knows of
	charged    int64                 // for what m keeps
	sizeAtFull int64                 // of m, when the disk was last not full
	members    map[memberKey]*Member // that are connected
	away       map[memberKey]away    // that are not, and whose right may end before they do
	notices    engine.Held[notice]
}

type memberKey struct{ group, id string }

// notice is what a member hears when it is durable.
type notice struct {
	to         *Member
	assignment group.Assignment
	err        error // the member ends
}

// groupsUnit is the unit of the coordinator. It is on disk and never changes.
const groupsUnit = 0

// newCoordinator makes one that has no history yet.
func (h *Hub) newCoordinator() *coordinator {
	c := &coordinator{m: group.New(), members: make(map[memberKey]*Member), away: make(map[memberKey]away)}
	c.unit = &engine.Unit{ID: groupsUnit, Machine: c.m, Owner: c, Overhead: 16}
	h.groups = c
	return c
}

// coordinate returns the coordinator, which it makes if there is none.
func (h *Hub) coordinate() *coordinator {
	if h.groups == nil {
		h.eff.BeginPlain(kindGroups)
		h.eff.End()
		c := h.newCoordinator()
		if h.Losses().Records > 0 {
			c.m.Tolerate() // there may have been one, whose epochs are not used again; as replay does
		}
		h.tx.Add(c.unit)
		h.tx.WriteAs(c.unit)
		c.m.Create(&h.eff)
		h.countPartitions()
		h.groupsChanged()
		h.tx.MustCommit()
	}
	return h.groups
}

// countPartitions tells the coordinator how many partitions there are.
func (h *Hub) countPartitions() {
	if c := h.groups; c != nil && !h.missing && c.partitions != len(h.partitions) {
		c.partitions = len(h.partitions)
		c.m.SetPartitions(h.tx.Now(), c.partitions)
		h.tx.Schedule(c.unit)
	}
}

// groupsChanged takes over what a command of the coordinator did.
func (h *Hub) groupsChanged() {
	h.chargeGroups()
	h.tx.Collect(h.groups.unit)
	h.tx.Schedule(h.groups.unit)
}

// chargeGroups charges what the coordinator keeps in memory. A command that would add more
// than there is was refused; what is replayed, or comes with time, is not.
func (h *Hub) chargeGroups() {
	c := h.groups
	if c == nil {
		return
	}
	size := c.m.Size()
	if more := size - c.charged; more > 0 {
		h.stored.Charge(more)
	} else {
		h.stored.Release(-more)
	}
	c.charged = size
}

// ownSpace is how much memory the groups of a hub may take in any case, however much those of
// other hubs take: that of a group, with some dozens of members.
func (h *Hub) ownSpace() int64 { return 64<<10 + 512*int64(len(h.partitions)) }

// tickGroups does what time has made due.
func (h *Hub) tickGroups() {
	h.tx.WriteAs(h.groups.unit)
	before := h.eff.Size()
	h.groups.m.Tick(h.tx.Now(), &h.eff)
	h.pace.wrote(h.eff.Size() - before)
	h.groupsChanged()
}

// settles makes a task of a command of the coordinator that goes on on a full disk, from the
// reserve, as settlements of queues do: processors report how far they are, come back and go.
// What it writes replaces what was written before, which the next snapshot leaves out. So
// the reserve is enough however often it runs, as long as the state itself hardly grows.
func (h *Hub) settles(fn groupCommand) func(*engine.Tx) error { return h.within(2*paceBurst, fn) }

// adds is settles for commands that a client can repeat without end: joins and claims. They
// are refused earlier if too much was written.
func (h *Hub) adds(fn groupCommand) func(*engine.Tx) error { return h.within(paceBurst, fn) }

// operates makes a task of a command of the coordinator that an operator gives. It is refused
// on a full disk.
func (h *Hub) operates(fn groupCommand) func(*engine.Tx) error {
	run := h.adds(fn)
	return func(tx *engine.Tx) error {
		if tx.Full() {
			return ErrDiskFull
		}
		return run(tx)
	}
}

// groupCommand is a command of the coordinator.
type groupCommand func(g *group.Groups, now time.Time) error

// within makes a task of a command that is refused when so many bytes were written beyond
// what time and events allow.
func (h *Hub) within(most int64, fn groupCommand) func(*engine.Tx) error {
	return func(tx *engine.Tx) error {
		if err := h.pace.admit(tx.Now(), most); err != nil {
			return err
		}
		c := h.coordinate()
		space, full := max(h.stored.Available(), h.ownSpace()-c.m.Size()), false
		if most := c.growth(tx); most < space {
			space, full = most, true
		}
		c.m.SetSpace(space)
		tx.WriteAs(c.unit)
		before := h.eff.Size()
		err := fn(c.m, tx.Now())
		h.pace.wrote(h.eff.Size() - before)
		h.groupsChanged()
		if full && errors.Is(err, group.ErrMemory) {
			return ErrDiskFull
		}
		return err
	}
}

const (
	// growthAtFull is how many bytes of memory the state may grow by on a full disk in any
	// case: some members, or a group of a hub with few partitions.
	growthAtFull = 8 << 10
	// growthShare is the part of what is left of the reserve by which one command may make
	// the state larger. What takes a byte of memory takes at most twelve in a snapshot,
	// since records repeat names, and three snapshots have to fit: see retention.State.
	growthShare = 32

	// recordSize is what a record about a partition takes at most beside names.
	recordSize = 40 + 32 // and what the journal adds; see journal.RecordSize
	// longestID is how long the ID of a member may be; see limits.Member.
	longestID = 256
)

// growth is how many bytes of memory the state may grow by as far as the disk is concerned.
func (c *coordinator) growth(tx *engine.Tx) int64 {
	if !tx.Full() {
		c.sizeAtFull = c.m.Size()
		return math.MaxInt64
	}
	return max(c.sizeAtFull+growthAtFull-c.m.Size(), int64(tx.Spare()/growthShare))
}

// oneGroup refuses a command whose records, which are one group of the journal, are larger
// than the segments with which the store was made allow: that would end the hub.
func (h *Hub) oneGroup(bytes int) error {
	err := h.tx.Fits(bytes)
	if errors.Is(err, engine.ErrTooLarge) {
		return fmt.Errorf("%w: up to %d bytes of records about partitions are more than a segment of the store takes (storage.segmentSize)", err, bytes)
	}
	return err
}

// holdNews has members hear what is new when it is durable.
func (h *Hub) holdNews() {
	c := h.groups
	if c == nil || !c.m.HasNews() {
		return
	}
	for _, n := range c.m.News() {
		key := memberKey{n.Group, n.Member}
		if n.Err != nil && c.away[key].run == n.Run {
			h.forgetAway(key)
		}
		m := c.members[key]
		if m == nil || m.opts.Run != n.Run {
			continue
		}
		if n.Err != nil {
			delete(c.members, key)
		}
		c.notices.Hold(h.tx, engine.Pending, notice{m, n.Assignment, n.Err})
	}
}

// releaseNews tells members what is durable.
func (h *Hub) releaseNews(p engine.Permit) {
	c := h.groups
	if c == nil {
		return
	}
	c.notices.Advance(p, nil)
	if c.notices.Ready() == 0 {
		return
	}
	for _, n := range c.notices.Release(p) {
		switch {
		case n.err != nil:
			n.to.end(n.err)
		case !n.to.ended:
			h.fence(n.to, n.assignment.Grants)
			if n.to.opts.Changed != nil {
				n.to.opts.Changed(n.assignment)
			}
		}
	}
}

// fence ends the readers of those who had the partitions before.
func (h *Hub) fence(m *Member, grants []group.Grant) {
	for _, g := range grants {
		p, err := h.partition(g.Partition)
		if err != nil {
			continue // a repair has lost it
		}
		if rs := p.groups[m.opts.Group]; rs != nil && rs.holder != nil && *rs.holder.opts.Epoch < g.Epoch {
			old := rs.holder
			p.remove(old)
			old.end(&EpochError{By: m.opts.ID, ByEpoch: g.Epoch, Name: old.opts.Name, Epoch: old.opts.Epoch, Ended: true})
		}
	}
}

// admitted refuses a reader that has the epoch of an owner before the current one.
func (h *Hub) admitted(r *Reader) error {
	if h.groups == nil || r.opts.Epoch == nil {
		return nil
	}
	owner, epoch := h.groups.m.Owner(r.opts.Group, r.opts.Partition)
	if owner == "" || *r.opts.Epoch >= epoch {
		return nil
	}
	return &EpochError{By: owner, ByEpoch: epoch, Name: r.opts.Name, Epoch: r.opts.Epoch}
}

// stopGroups ends all members.
func (h *Hub) stopGroups(err error) {
	if h.groups == nil {
		return
	}
	for _, m := range h.groups.members {
		m.end(err)
	}
	clear(h.groups.members)
	h.stored.Release(h.groups.charged)
	h.groups.charged = 0
	h.groups.notices.Withdraw(func(n *notice) bool { // some have ended, and have not heard it
		n.to.end(err)
		return true
	})
}
