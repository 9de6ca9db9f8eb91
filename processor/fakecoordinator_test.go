// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/triagemq/triagemq/client"
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/machine"
	"github.com/triagemq/triagemq/internal/stream"
)

// fakeCoordinator runs the broker's own coordinator, in memory.
type fakeCoordinator struct {
	hub *fakeHub
	// accepted is called for each checkpoint that is accepted.
	accepted func(partition int, n client.SeqNo)

	mu      sync.Mutex
	groups  *group.Groups
	out     machine.Effects
	timer   *time.Timer
	members map[string]*fakeMember // by ID, those that are connected; guarded by mu
}

const fakeGroup = "fleet"

func (h *fakeHub) coordinate() *fakeCoordinator {
	c := &fakeCoordinator{hub: h, groups: group.New(), members: map[string]*fakeMember{}, accepted: func(int, client.SeqNo) {}}
	c.groups.Create(&c.out)
	c.groups.SetPartitions(time.Now(), len(h.parts))
	h.coord = c
	return c
}

// grow tells the machine that the hub has more partitions.
func (c *fakeCoordinator) grow() {
	c.do(func(now time.Time) { c.groups.SetPartitions(now, len(c.hub.parts)) })
}

// do calls the machine and passes on what members have to hear.
func (c *fakeCoordinator) do(f func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(time.Now())
	c.settle()
}

func (c *fakeCoordinator) settle() {
	if err := c.groups.Check(); err != nil {
		panic(err)
	}
	c.out.Reset()
	for _, n := range c.groups.News() {
		m := c.members[n.Member]
		if m == nil {
			continue
		}
		if n.Err != nil {
			delete(c.members, n.Member)
			m.end(n.Err)
			continue
		}
		m.hear(n.Assignment)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	if at, ok := c.groups.NextDeadline(); ok {
		c.timer = time.AfterFunc(max(time.Until(at), 0), func() { c.do(func(now time.Time) { c.groups.Tick(now, &c.out) }) })
	}
}

// info returns the group as an operator sees it.
func (c *fakeCoordinator) info() (i group.Info) {
	c.do(func(now time.Time) { i = c.groups.Info(now, fakeGroup) })
	return i
}

func (c *fakeCoordinator) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *fakeCoordinator) join(_ context.Context, h *host, s *settings) (fleet, error) {
	m := &fakeMember{coord: c, host: h, as: group.Member{ID: s.id, Run: rand.Text(), Keep: s.keep}}
	if err := m.enter(); err != nil {
		return nil, err
	}
	return m, nil
}

// drop ends the connection of a host, without its doing.
func (c *fakeCoordinator) drop(h *host) {
	c.do(func(now time.Time) {
		for id, m := range c.members {
			if m.host == h {
				delete(c.members, id)
				c.groups.Gone(now, fakeGroup, id)
				m.end(errDropped)
			}
		}
	})
}

var errDropped = errors.New("fake: connection lost")

// fakeMember does what client.Member and client.Group do.
type fakeMember struct {
	coord *fakeCoordinator
	host  *host
	as    group.Member
	turns turns // owned by next

	mu     sync.Mutex
	newest *group.Assignment // guarded by mu
	ended  error             // guarded by mu
	news   chan struct{}     // capacity 1
	joins  uint64            // guarded by mu
	left   bool              // guarded by mu
}

func (m *fakeMember) enter() (err error) {
	m.mu.Lock()
	m.newest, m.ended = nil, nil
	m.joins++
	if m.news == nil {
		m.news = make(chan struct{}, 1)
	}
	m.mu.Unlock()
	m.coord.do(func(now time.Time) {
		if err = m.coord.groups.Join(now, fakeGroup, m.as, &m.coord.out); err != nil {
			return
		}
		if old := m.coord.members[m.as.ID]; old != nil && old != m {
			old.end(group.ErrTaken)
		}
		m.coord.members[m.as.ID] = m
		m.as.Back = true
	})
	if errors.Is(err, group.ErrTaken) {
		return client.ErrTaken
	}
	return err
}

func (m *fakeMember) hear(a group.Assignment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest = &a
	signal(m.news)
}

func (m *fakeMember) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = err
	signal(m.news)
}

func (m *fakeMember) next(ctx context.Context) (view, error) {
	for {
		if err := m.host.alive(); err != nil {
			return view{}, err
		}
		m.mu.Lock()
		a, ended, left, joins := m.newest, m.ended, m.left, m.joins
		m.newest = nil
		m.mu.Unlock()
		switch {
		case errors.Is(ended, group.ErrTaken):
			return view{}, client.ErrTaken
		case ended != nil && left:
			return view{}, client.ErrClosed
		case ended != nil:
			// The client joins again by itself, with the same run.
			if !pause(ctx, 100*time.Millisecond) {
				return view{}, context.Cause(ctx)
			}
			if err := m.enter(); err != nil {
				return view{}, err
			}
			continue
		case a != nil:
			v := view{hub: a.Partitions, joins: joins}
			for _, g := range a.Grants {
				v.grants = append(v.grants, grant{
					partition: strconv.Itoa(g.Partition), epoch: g.Epoch, after: client.SeqNo(g.Checkpoint), revokeBy: g.RevokeBy,
				})
			}
			m.turns.number(&v)
			return v, nil
		}
		select {
		case <-m.news:
		case <-ctx.Done():
			return view{}, context.Cause(ctx)
		case <-m.host.crashed:
		}
	}
}

// ask calls the machine, if the connection is there.
func (m *fakeMember) ask(f func(now time.Time) error) error {
	if err := m.host.alive(); err != nil {
		return err
	}
	var err error
	m.coord.do(func(now time.Time) {
		if m.coord.members[m.as.ID] != m {
			err = errDropped
			return
		}
		err = f(now)
	})
	return err
}

func (m *fakeMember) report(_ context.Context, rs []report) (uint64, error) {
	err := m.ask(func(now time.Time) error {
		var out []group.Progress
		for _, r := range rs {
			out = append(out, group.Progress{Partition: number(r.partition), Epoch: r.epoch, Skipped: r.skipped, Handled: stream.SeqNo(r.handled), BusyNanos: uint64(r.busy), Bytes: r.bytes})
		}
		return m.coord.groups.Report(now, fakeGroup, m.as.ID, out)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.joins, err
}

func (m *fakeMember) checkpoint(_ context.Context, ms []mark) ([]error, error) {
	errs := make([]error, len(ms))
	err := m.ask(func(now time.Time) error {
		for i, c := range ms {
			part := number(c.grant.partition)
			err := m.coord.groups.Checkpoint(now, fakeGroup, group.Checkpoint{Partition: part, Epoch: c.grant.epoch, SeqNo: stream.SeqNo(c.seqNo)}, &m.coord.out)
			switch {
			case err == nil:
				m.coord.accepted(part, c.seqNo)
			case errors.Is(err, group.ErrFenced):
				errs[i] = ErrLost
			case !errors.Is(err, group.ErrBackwards):
				errs[i] = err
			}
		}
		return nil
	})
	return errs, err
}

func (m *fakeMember) release(_ context.Context, g grant, coolDown time.Duration) error {
	err := m.ask(func(now time.Time) error {
		return m.coord.groups.Release(now, fakeGroup, m.as.ID, number(g.partition), g.epoch, coolDown, &m.coord.out)
	})
	switch {
	case errors.Is(err, group.ErrFenced):
		return ErrLost
	case errors.Is(err, group.ErrUnknownMember):
		return client.ErrUnknownMember
	}
	return err
}

func (m *fakeMember) stolen(grant) bool { return true }

func (m *fakeMember) rewind(_ context.Context, partition string, to Position) error {
	return m.ask(func(now time.Time) error {
		n := stream.SeqNo(to.after)
		if to.kind == earliest {
			n = group.None
		}
		return m.coord.groups.Rewind(now, fakeGroup, number(partition), n, &m.coord.out)
	})
}

func (m *fakeMember) leave(context.Context) error {
	m.mu.Lock()
	m.left = true
	m.mu.Unlock()
	return m.ask(func(now time.Time) error { return m.coord.groups.Leave(now, fakeGroup, m.as.ID, &m.coord.out) })
}

func (m *fakeMember) close() error {
	if m.host.isDead() {
		return nil
	}
	m.coord.do(func(now time.Time) {
		if m.coord.members[m.as.ID] == m {
			delete(m.coord.members, m.as.ID)
			m.coord.groups.Gone(now, fakeGroup, m.as.ID)
		}
	})
	return nil
}

func (m *fakeMember) silence() time.Duration { return 9 * time.Second }
