// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triagemq/triagemq/internal/broker/catalog"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/group"
	"github.com/triagemq/triagemq/internal/stream"
	"github.com/triagemq/triagemq/internal/streamserver"
)

// groupOf returns the hub of an address and the consumer group, by which the hub knows it.
// An address without one means the group that every hub has.
func (b *Broker) groupOf(addr string) (hub, string, error) {
	h, err := b.hub(addr)
	switch {
	case err != nil:
		return hub{}, "", err
	case h.path.Partition != "" || h.path.Publisher != "":
		return hub{}, "", fmt.Errorf("%w: %q is not a consumer group", ErrNotAllowed, addr)
	}
	return h, entity.Key(cmp.Or(h.path.Group, entity.DefaultGroup)), nil
}

// receiving is groupOf for those who are about to read.
func (b *Broker) receiving(addr string) (hub, string, error) {
	h, g, err := b.groupOf(addr)
	if err == nil && !h.n.Definition().Hub.Status.CanReceive() {
		err = fmt.Errorf("%w: receiving from %q is disabled", ErrDisabled, h.n.Path)
	}
	return h, g, err
}

// JoinGroup adds a member to a consumer group.
func (b *Broker) JoinGroup(ctx context.Context, addr string, o MemberOptions) (*GroupMember, error) {
	h, g, err := b.receiving(addr)
	if err != nil {
		return nil, err
	}
	o.Group = g
	if o.Keep > 0 {
		b.keeps.Store(true)
	}
	h.n.Touch(b.clock.Now())
	m, err := h.on.Join(ctx, o)
	if err != nil {
		return nil, catalog.Translate(err)
	}
	return &GroupMember{m, uint64(h.n.ID), b}, nil
}

// GroupMember is a member of a consumer group.
type GroupMember struct {
	*streamserver.Member
	id     uint64
	broker *Broker
}

// GoneBy says that the connection of the member is lost: its partitions wait for it as long
// as the right holds by which it had joined. It never blocks.
func (m *GroupMember) GoneBy(r Right) {
	m.Member.GoneBy(r)
	if r.Holds != nil && !r.Holds() {
		m.broker.ReviewMembers() // it has ended in between, and may not have been looked at
	}
}

// ID is that of the entity; see catalog.Address.
func (m *GroupMember) ID() uint64 { return m.id }

// ReportGroup is a sign of life of a member, with how far it is.
func (b *Broker) ReportGroup(addr, member string, r MemberReport) error {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return err
	}
	h.on.Report(g, member, r)
	return nil
}

// LeaveGroup gives all partitions of a member back as a planned move.
func (b *Broker) LeaveGroup(ctx context.Context, addr, member, run string) error {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return err
	}
	return catalog.Translate(h.on.Leave(ctx, g, member, run))
}

// MemberRun names a member and, if it is not empty, the run that it must have.
type MemberRun struct{ ID, Run string }

// ReleaseGroup gives up a partition of a member after that has stopped to handle it.
func (b *Broker) ReleaseGroup(ctx context.Context, addr string, m MemberRun, partition int, epoch int64, coolDown time.Duration) error {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return err
	}
	return catalog.Translate(h.on.Release(ctx, g, m.ID, m.Run, partition, epoch, coolDown))
}

// CheckpointGroup stores how far partitions are handled. The errors are those of the
// entries.
func (b *Broker) CheckpointGroup(ctx context.Context, addr string, cs []group.Checkpoint) ([]error, error) {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return nil, err
	}
	errs, err := h.on.Checkpoint(ctx, g, cs)
	return errs, catalog.Translate(err)
}

// RewindGroup sets the checkpoints of partitions, back or forth. It returns of each the event
// before the one that is handled next.
func (b *Broker) RewindGroup(ctx context.Context, addr string, partitions []int, to stream.Start) ([]stream.SeqNo, error) {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return nil, err
	}
	at, err := h.on.Rewind(ctx, g, partitions, to)
	return at, catalog.Translate(err)
}

// MoveAwayGroup takes a partition from its owner, who does not get it back for a while.
func (b *Broker) MoveAwayGroup(ctx context.Context, addr string, partition int, coolDown time.Duration) error {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return err
	}
	return catalog.Translate(h.on.MoveAway(ctx, g, partition, coolDown))
}

// PauseGroup keeps partitions from all members until a time, all of them if none is given; a
// zero time is no longer.
func (b *Broker) PauseGroup(ctx context.Context, addr string, partitions []int, until time.Time) error {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return err
	}
	return catalog.Translate(h.on.Pause(ctx, g, partitions, until))
}

// ClaimGroup claims partitions for processors that balance by themselves, and returns the
// claims that won.
func (b *Broker) ClaimGroup(ctx context.Context, addr string, cs []group.Ownership) ([]group.Ownership, error) {
	h, g, err := b.receiving(addr)
	if err != nil {
		return nil, err
	}
	won, err := h.on.Claim(ctx, g, cs)
	return won, catalog.Translate(err)
}

// GroupClaims returns the claims that there are.
func (b *Broker) GroupClaims(ctx context.Context, addr string) ([]group.Ownership, error) {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return nil, err
	}
	cs, err := h.on.Claims(ctx, g)
	return cs, catalog.Translate(err)
}

// SetGroupCheckpoint stores a checkpoint without a fence: the partition may have any owner.
func (b *Broker) SetGroupCheckpoint(ctx context.Context, addr string, c group.Checkpoint) error {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return err
	}
	return catalog.Translate(h.on.SetCheckpoint(ctx, g, c))
}

// GroupInfo returns the state of a consumer group.
func (b *Broker) GroupInfo(ctx context.Context, addr string) (GroupInfo, error) {
	h, g, err := b.groupOf(addr)
	if err != nil {
		return GroupInfo{}, err
	}
	info, err := h.on.Group(ctx, g)
	return info, catalog.Translate(err)
}

// CreateConsumerGroup adds a consumer group to an event hub. It begins empty: a crash may
// have left the state of one that was deleted.
func (b *Broker) CreateConsumerGroup(ctx context.Context, hub string, g entity.ConsumerGroup) (entity.ConsumerGroup, error) {
	if err := b.forgetGroups(ctx, hub, []entity.ConsumerGroup{g}); err != nil {
		return entity.ConsumerGroup{}, err
	}
	return b.Catalog.CreateConsumerGroup(ctx, hub, g)
}

// DeleteConsumerGroup removes a consumer group, with its members and checkpoints. The first
// one of a hub cannot be removed.
func (b *Broker) DeleteConsumerGroup(ctx context.Context, hub, name string) error {
	if err := b.Catalog.DeleteConsumerGroup(ctx, hub, name); err != nil {
		return err
	}
	b.forgetLater(ctx, hub, []entity.ConsumerGroup{{Name: name}})
	return nil
}

// UpdateHub changes an event hub; see catalog.Catalog.UpdateHub.
func (b *Broker) UpdateHub(ctx context.Context, h entity.Hub) (entity.Hub, error) {
	name := h.Name
	before, _ := b.ConsumerGroups(name)                                 // without the hub there is nothing to forget
	if err := b.forgetGroups(ctx, name, h.ConsumerGroups); err != nil { // those that are new begin empty
		return entity.Hub{}, err
	}
	h, err := b.Catalog.UpdateHub(ctx, h)
	b.forgetLater(ctx, name, before)
	return h, err
}

// forgetLater is forgetGroups after they were deleted. What the hub cannot do now is done
// before a group of that name is created.
func (b *Broker) forgetLater(ctx context.Context, name string, groups []entity.ConsumerGroup) {
	if err := b.forgetGroups(context.WithoutCancel(ctx), name, groups); err != nil {
		b.log.Warn("state of deleted consumer groups is kept", "entity", name, "err", err)
	}
}

// forgetGroups has a hub forget those of some groups that are not in the catalog.
func (b *Broker) forgetGroups(ctx context.Context, name string, groups []entity.ConsumerGroup) error {
	if b.logs == nil {
		return nil
	}
	groups = slices.DeleteFunc(slices.Clone(groups), func(g entity.ConsumerGroup) bool {
		_, err := b.ConsumerGroup(name, g.Name)
		return err == nil
	})
	if len(groups) == 0 {
		return nil
	}
	h, err := b.hub(name)
	switch {
	case errors.Is(err, ErrUnavailable):
		return err
	case err != nil:
		return nil // there is no such hub, which the catalog says better
	}
	ctx, cancel := context.WithTimeout(ctx, forgetWithin)
	defer cancel()
	for _, g := range groups {
		if err := h.on.ForgetGroup(ctx, entity.Key(g.Name)); err != nil {
			return fmt.Errorf("consumer group %q of %q: %w", g.Name, h.n.Path, catalog.Translate(err))
		}
	}
	return nil
}

// forgetWithin is how long a change of groups waits for the hub.
const forgetWithin = 10 * time.Second
