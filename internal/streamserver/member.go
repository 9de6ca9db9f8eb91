// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/group"
)

// MemberOptions say who joins a consumer group.
type MemberOptions struct {
	Group, ID, Run, Name string
	// Back says that this run has joined before: it does not take its place from another.
	Back bool
	// Key names the one by whose right it joins: one key cannot have all places of a group.
	// Empty is not known.
	Key string
	// By is the right by which it joins, for a connection that is lost before Join returns.
	By Right
	// Keep is how long its partitions wait for it when its connection is lost.
	Keep time.Duration
	// Changed gets everything that the member has, each time it changes. It is called on
	// the engine's goroutine, only with what is durable, and must not block. It may be
	// called before Join has returned.
	Changed func(group.Assignment)
	// Ended is called once if the member ends by itself: it has joined elsewhere, has left,
	// was silent for too long, or the hub is gone. It is called as Changed is. After Gone it
	// is never called.
	Ended func(error)
}

// Member is a process that handles events of a consumer group.
type Member struct {
	hub   *Hub
	opts  MemberOptions
	ended bool // owned by the engine
}

// Report is a sign of life of a member, with how far it is.
type Report struct{ Handled []group.Progress }

// Join adds a member to a group. It has no partitions at first. A member of that id that is
// connected ends with group.ErrTaken; so does this one if a younger run has its place.
func (h *Hub) Join(ctx context.Context, o MemberOptions) (*Member, error) {
	m := &Member{hub: h, opts: o}
	if err := h.do(ctx, m.join); err != nil {
		m.GoneBy(o.By) // it may join still
		return nil, err
	}
	return m, nil
}

func (m *Member) join(tx *engine.Tx) error {
	back := m.hub.groups != nil && m.hub.groups.m.Run(m.opts.Group, m.opts.ID) == m.opts.Run // nothing new is stored
	run := m.hub.adds
	if back {
		run = m.hub.settles
	}
	return run(func(g *group.Groups, now time.Time) error {
		o := &m.opts
		if !back { // it may get all partitions, from others, at once
			if err := m.hub.oneGroup(2 * len(m.hub.partitions) * (recordSize + len(o.Group) + len(o.ID))); err != nil {
				return err
			}
		}
		m.hub.holdNews() // what there is to hear so far is for the link before
		err := g.Join(now, o.Group, group.Member{ID: o.ID, Run: o.Run, Name: o.Name, Key: o.Key, Back: o.Back, Keep: o.Keep}, &m.hub.eff)
		if err != nil {
			return err
		}
		c, key := m.hub.groups, m.key()
		if old := c.members[key]; old != nil {
			c.notices.Hold(m.hub.tx, engine.Pending, notice{to: old, err: group.ErrTaken})
		}
		c.members[key] = m
		m.hub.forgetAway(key)
		return nil
	})(tx)
}

// end ends the member, on the engine's goroutine.
func (m *Member) end(err error) {
	if !m.ended {
		m.ended = true
		if m.opts.Ended != nil {
			m.opts.Ended(err)
		}
	}
}

func (m *Member) key() memberKey { return memberKey{m.opts.Group, m.opts.ID} }

// Report tells how far the member is. It never blocks. Once another link has its place it
// says nothing.
func (m *Member) Report(r Report) {
	_ = m.hub.Submit(&reporting{m.hub, m, m.opts.Group, m.opts.ID, r}) // the next one comes soon
}

// Leave gives all partitions back as a planned move. It returns at once; the member ends
// when the last one is released or taken. Once another run has its place it is
// group.ErrTaken.
func (m *Member) Leave(ctx context.Context) error {
	return m.hub.Leave(ctx, m.opts.Group, m.opts.ID, m.opts.Run)
}

// Gone says that the connection is lost. It never blocks, and a second call does nothing.
func (m *Member) Gone() { m.GoneBy(Right{}) }

// GoneBy is Gone of a member that has joined by a right: its partitions wait for it only as
// long as that holds.
func (m *Member) GoneBy(r Right) {
	if m.opts.Keep <= 0 {
		r.Holds = nil // it is not worth while
	}
	if r.Holds != nil {
		m.hub.anyAway.Store(true) // before it is posted: a review comes after it
	}
	_ = m.hub.SubmitReserved(&leaving{m, r}) // an engine that has stopped has no members
}

// leaving is the command of Gone.
type leaving struct {
	*Member
	by Right
}

// Apply implements [engine.Command].
func (l *leaving) Apply(tx *engine.Tx) {
	m := l.Member
	m.ended = true
	c, key := m.hub.groups, m.key()
	if c == nil || c.members[key] != m {
		return
	}
	delete(c.members, key)
	m.hub.goneAway(key, m.opts.Run, l.by)
}

// Fail implements [engine.Command].
func (l *leaving) Fail(error) {}

// Report is [Member.Report] of a member that is known by its id.
func (h *Hub) Report(grp, member string, r Report) {
	_ = h.Submit(&reporting{h, nil, grp, member, r}) // the next one comes soon
}

// reporting is the command of Report.
type reporting struct {
	hub           *Hub
	link          *Member // whose link it came by; nil is not known
	group, member string
	report        Report
}

// Apply implements [engine.Command].
func (r *reporting) Apply(tx *engine.Tx) {
	c := r.hub.groups
	if c != nil && (r.link == nil || c.members[r.link.key()] == r.link) {
		_ = c.m.Report(tx.Now(), r.group, r.member, r.report.Handled) // one that is unknown has been told
	}
}

// Fail implements [engine.Command].
func (r *reporting) Fail(error) {}

// Leave is [Member.Leave] of a member that is known by its id and run. It need not be
// connected.
func (h *Hub) Leave(ctx context.Context, grp, member, run string) error {
	leave := h.leave(grp, member)
	return h.do(ctx, func(tx *engine.Tx) error {
		if c := h.groups; c != nil && c.m.Run(grp, member) != run && c.m.Run(grp, member) != "" {
			return group.ErrTaken
		}
		return leave(tx)
	})
}

func (h *Hub) leave(grp, member string) func(*engine.Tx) error {
	return h.settles(func(g *group.Groups, now time.Time) error { return g.Leave(now, grp, member, &h.eff) })
}

// Release gives up a partition after its owner has stopped to handle it. The owner does not
// get it back for the cool-down. A run that is not empty must be that of the member.
func (h *Hub) Release(ctx context.Context, grp, member, life string, partition int, epoch int64, coolDown time.Duration) error {
	return h.do(ctx, h.release(grp, member, life, partition, epoch, coolDown))
}

func (h *Hub) release(grp, member, life string, partition int, epoch int64, coolDown time.Duration) func(*engine.Tx) error {
	return h.settles(func(g *group.Groups, now time.Time) error {
		if life != "" && g.Run(grp, member) != life {
			return group.ErrUnknownMember
		}
		return g.Release(now, grp, member, partition, epoch, coolDown, &h.eff)
	})
}
