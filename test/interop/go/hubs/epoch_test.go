// SPDX-License-Identifier: Apache-2.0

package hubs

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2"
)

// owner opens a reader with an owner level, and proves that it reads.
func (h *hub) owner(level int64, want ...string) *reader {
	h.t.Helper()
	r := h.readerWith(all, "0", azeventhubs.PartitionClientOptions{StartPosition: earliest, OwnerLevel: &level})
	r.wants("owner", want...)
	return r
}

func (r *reader) lost(what string) {
	r.t.Helper()
	_, err := r.ReceiveEvents(r.ctx, 1, nil)
	wantCode(r.t, what, err, azeventhubs.ErrorCodeOwnershipLost)
}

func TestHigherOwnerLevelSteals(t *testing.T) {
	t.Parallel()
	h := open(t, "steal")
	h.send(nil, "a")
	first := h.owner(1, "a")
	second := h.owner(2, "a")
	first.lost("the reader of level 1")
	h.send(nil, "b")
	second.wants("the reader of level 2", "b")
}

func TestSameOwnerLevelSteals(t *testing.T) {
	t.Parallel()
	h := open(t, "same-epoch")
	h.send(nil, "a")
	first := h.owner(0, "a")
	second := h.owner(0, "a")
	first.lost("the first reader")
	third := h.owner(0, "a")
	second.lost("the second reader")
	h.send(nil, "b")
	third.wants("the third reader", "b")
}

func TestLowerOwnerLevelIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, "lower-epoch")
	h.send(nil, "a")
	holder := h.owner(5, "a")
	low := int64(4)
	r := h.readerWith(all, "0", azeventhubs.PartitionClientOptions{StartPosition: earliest, OwnerLevel: &low})
	for _, want := range []string{"amqp:link:stolen", "with a higher epoch '5' already exists"} {
		r.refused("level 4 after 5", want)
	}
	for _, want := range []string{"amqp:link:stolen", "non-epoch receiver is not allowed"} {
		h.reader(all, "0", earliest).refused("no level after 5", want)
	}
	h.send(nil, "b")
	holder.wants("the holder", "b")

	closing(holder.Close) // and then anyone may
	h.reader(all, "0", earliest).wants("after the holder has gone", "a", "b")
}

func TestOwnerDisconnectsReadersWithoutLevel(t *testing.T) {
	t.Parallel()
	h := open(t, "mixed-epochs")
	h.send(nil, "a")
	first, second := h.reader(all, "0", earliest), h.reader(all, "0", earliest)
	first.wants("first", "a")
	second.wants("second", "a")
	owner := h.owner(0, "a")
	first.lost("the first reader")
	second.lost("the second reader")
	h.send(nil, "b")
	owner.wants("the owner", "b")
}

// An owner of one partition in one group leaves the others alone.
func TestOwnerLevelsAreOfOnePartitionAndGroup(t *testing.T) {
	t.Parallel()
	h := open(t, "other-groups")
	h.send(toPartition("0"), "a")
	h.send(toPartition("1"), "a")
	group, partition := h.reader("audit", "0", earliest), h.reader(all, "1", earliest)
	group.wants("another group", "a")
	partition.wants("another partition", "a")
	h.owner(7, "a")
	h.send(toPartition("0"), "b")
	h.send(toPartition("1"), "b")
	group.wants("another group", "b")
	partition.wants("another partition", "b")
}

func TestSixthReaderIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t, "five")
	h.send(nil, "a")
	var readers []*reader
	for range 5 {
		r := h.reader(all, "0", earliest)
		r.wants("one of five", "a")
		readers = append(readers, r)
	}
	h.reader(all, "0", earliest).refused("the sixth", "Exceeded the maximum number of allowed receivers per partition in a consumer group which is 5")
	h.reader("audit", "0", earliest).wants("another group", "a")
	h.send(nil, "b")
	for _, r := range readers {
		r.wants("one of five", "b")
	}
	closing(readers[2].Close)
	h.reader(all, "0", earliest).wants("after one has gone", "a", "b")
}
