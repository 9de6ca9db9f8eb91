// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"errors"
	"testing"

	"github.com/triagemq/triagemq/internal/broker"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/stream"
)

// A member gets the partitions of its hub, checkpoints, and ends with its group.
func TestGroupFromJoiningToDeletion(t *testing.T) {
	b := brokertest.Start(t)
	ctx := t.Context()
	if _, err := b.CreateHub(ctx, entity.Hub{Name: "events", PartitionCount: 2, ConsumerGroups: []entity.ConsumerGroup{{Name: "Readers"}}}); err != nil {
		t.Fatal(err)
	}
	p, err := b.OpenPublisher("events/Partitions/1")
	if err != nil {
		t.Fatal(err)
	}
	published := make(chan error, 1)
	p.Publish(broker.Events{Raw: []byte("xxxxx"), Count: 5}, func(err error) { published <- err })
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	const addr = "events/ConsumerGroups/readers"
	changes, ended := make(chan broker.Assignment, 100), make(chan error, 1)
	join := func() *broker.GroupMember {
		m, err := b.JoinGroup(ctx, addr, broker.MemberOptions{
			ID: "a", Run: "1", Changed: func(a broker.Assignment) { changes <- a }, Ended: func(err error) { ended <- err },
		})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	join()
	var has broker.Assignment
	for len(has.Grants) < 2 {
		has = <-changes
	}
	if err := b.ReportGroup(addr, "a", broker.MemberReport{Handled: []broker.Progress{{Partition: 1, Handled: 3}}}); err != nil {
		t.Fatal(err)
	}
	errs, err := b.CheckpointGroup(ctx, addr, []broker.Checkpoint{{Partition: 1, Epoch: 1, SeqNo: 2}, {Partition: 1, Epoch: 2, SeqNo: 3}})
	if err != nil || errs[0] != nil || !errors.Is(errs[1], broker.ErrFenced) {
		t.Fatalf("checkpoints: %v, %v", errs, err)
	}
	info, err := b.GroupInfo(ctx, addr)
	if err != nil || len(info.Members) != 1 || info.Partitions[1].Owner != "a" || info.Partitions[1].LagEvents != 1 {
		t.Errorf("info %+v, %v", info, err)
	}
	if n, err := b.RewindGroup(ctx, addr, []int{1}, stream.Earliest()); err != nil || n[0] != -1 {
		t.Errorf("rewind: %d, %v", n, err)
	}
	for has.Grants[1].Checkpoint != broker.Beginning {
		has = <-changes
	}
	if err := b.DeleteConsumerGroup(ctx, "events", "READERS"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, broker.ErrUnknownMember) {
		t.Errorf("the member ended with %v", err)
	}
	if _, err := b.GroupInfo(ctx, addr); !errors.Is(err, broker.ErrNotFound) {
		t.Errorf("after the deletion: %v", err)
	}

	if _, err := b.CreateConsumerGroup(ctx, "events", entity.ConsumerGroup{Name: "readers"}); err != nil {
		t.Fatal(err)
	}
	if info, err := b.GroupInfo(ctx, addr); err != nil || info.Partitions[1].Checkpoint != nil || info.Partitions[1].Epoch != 0 {
		t.Errorf("one of the same name is not new: %+v, %v", info, err)
	}
	join()
	if _, err := b.UpdateHub(ctx, entity.Hub{Name: "events", ConsumerGroups: []entity.ConsumerGroup{{Name: "others"}}}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, broker.ErrUnknownMember) {
		t.Errorf("the member ended with %v", err)
	}
}

func TestGroupAddresses(t *testing.T) {
	b := brokertest.Start(t)
	ctx := t.Context()
	if _, err := b.CreateHub(ctx, entity.Hub{Name: "events", PartitionCount: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateQueue(ctx, entity.Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]error{
		"events":                                      nil, // $Default
		"events/ConsumerGroups/$default":              nil,
		"events/ConsumerGroups/x":                     broker.ErrNotFound,
		"events/Partitions/0":                         broker.ErrNotAllowed,
		"events/ConsumerGroups/$default/Partitions/0": broker.ErrNotAllowed,
		"q":       broker.ErrNotAllowed,
		"nothing": broker.ErrNotFound,
	} {
		if _, err := b.GroupInfo(ctx, addr); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", addr, err, want)
		}
	}
	if _, err := b.JoinGroup(ctx, "events", broker.MemberOptions{ID: "a"}); !errors.Is(err, broker.ErrMemberName) {
		t.Errorf("a member without a run: %v", err)
	}
	if _, err := b.UpdateHub(ctx, entity.Hub{Name: "events", Status: entity.ReceiveDisabled}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.JoinGroup(ctx, "events", broker.MemberOptions{ID: "a", Run: "1"}); !errors.Is(err, broker.ErrDisabled) {
		t.Errorf("a hub that is disabled: %v", err)
	}
}

// A group is not created while the state of one before it may be there: its checkpoints
// would have events left out.
func TestAGroupBeginsEmptyOrNotAtAll(t *testing.T) {
	b, ctx := brokertest.Start(t), t.Context()
	if _, err := b.CreateHub(ctx, entity.Hub{Name: "events", PartitionCount: 1}); err != nil {
		t.Fatal(err)
	}
	group := entity.ConsumerGroup{Name: "g"}
	restore := b.LoseHubs()
	if _, err := b.CreateConsumerGroup(ctx, "events", group); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("create: %v", err)
	}
	if _, err := b.UpdateHub(ctx, entity.Hub{Name: "events", PartitionCount: 1, ConsumerGroups: []entity.ConsumerGroup{group}}); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("update: %v", err)
	}
	if _, err := b.ConsumerGroup("events", "g"); err == nil {
		t.Error("it was created")
	}
	restore()
	if _, err := b.CreateConsumerGroup(ctx, "events", group); err != nil {
		t.Error(err)
	}
	if _, err := b.CreateConsumerGroup(ctx, "none", group); !errors.Is(err, broker.ErrNotFound) {
		t.Errorf("of a hub that there is not: %v", err)
	}
}
