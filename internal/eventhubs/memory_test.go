// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"log/slog"
	"net"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// A request about a thousand partitions takes many times its bytes when it is read, and a thousand
// requests may wait: what they are read into is charged.
func TestPartitionsOfRequestsAreCharged(t *testing.T) {
	const partitions = 1024
	b := brokertest.Start(t)
	if _, err := b.CreateHub(t.Context(), entity.Hub{Name: "h", PartitionCount: partitions}); err != nil {
		t.Fatal(err)
	}
	ints := func(n int) codec.Value { return codec.Raw(codec.AppendIntArray(nil, make([]int32, n))) }
	longs := func(n int) codec.Value { return codec.Raw(codec.AppendLongArray(nil, make([]int64, n))) }
	texts := func(n int) codec.Value { return codec.Raw(codec.AppendStringArray(nil, make([]string, n))) }
	for name, arguments := range map[string]func(n int) []codec.Value{
		names.GroupClaim: func(n int) []codec.Value {
			return []codec.Value{codec.String(names.GroupPartitions), ints(n), codec.String(names.GroupOwners), texts(n), codec.String(names.GroupETags), texts(n)}
		},
		names.GroupCheckpoint: func(n int) []codec.Value {
			return []codec.Value{codec.String(names.GroupPartitions), ints(n), codec.String(names.GroupEpochs), longs(n), codec.String(names.GroupNumbers), longs(n)}
		},
		names.GroupPause: func(n int) []codec.Value {
			if n > 1 {
				n = 0 // which means all
			}
			return []codec.Value{codec.String(names.GroupPartition), codec.Int(int32(n - 1))}
		},
	} {
		service := azure.New(b, budget.Unlimited(), slog.New(slog.DiscardHandler), New(b))
		ours, theirs := net.Pipe()
		c, ls, finish := service.Unserved(t.Context(), endpoint.NewConn(ours, endpoint.Config{}))
		op, ok := ls.Operation(name)
		if !ok {
			t.Fatalf("there is no operation %s", name)
		}
		// The connection has not logged in, and may hold 64 KiB.
		for _, n := range []int{1, partitions} {
			body := codec.Map(append(arguments(n), codec.String(names.GroupName), codec.String("$Default"))...)
			d := message.Draft{Value: &body}
			c.Memory().Charge(1) // an account with nothing in it takes anything
			status := c.Try(t.Context(), op, "h", d.Message())
			if refused := status == condition.StatusForbidden; refused != (n > 1) {
				t.Errorf("%s about %d partitions: status %d", name, n, status)
			}
		}
		finish()
		ours.Close()
		theirs.Close()
	}
}
