// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"log/slog"
	"net"
	"testing"

	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/endpoint"
	"github.com/triagemq/triagemq/internal/amqp/frame"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/condition"
	"github.com/triagemq/triagemq/internal/brokertest"
	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/entity"
	"github.com/triagemq/triagemq/internal/message"
)

// FuzzAttach reads filters and properties that a peer made up.
func FuzzAttach(f *testing.F) {
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(names.SelectorFilter), codec.String("x"))))
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(names.Epoch), codec.Long(5))))
	f.Add(codec.AppendValue(nil, codec.Map(codec.Symbol(names.ProducerID), codec.Long(5), codec.Symbol(names.ProducerEpoch), codec.Short(1))))
	f.Fuzz(func(t *testing.T, raw []byte) {
		remote := &frame.Attach{Properties: raw, Source: &frame.Source{Filter: raw}}
		if _, err := startOf(remote.Source); err != nil && len(err.Error()) > 1000 {
			t.Fatalf("an error of %d bytes", len(err.Error()))
		}
		if n, err := number(remote, names.Epoch, 0, 100); err == nil && n != nil && (*n < 0 || *n > 100) {
			t.Fatalf("epoch %d", *n)
		}
		p, err := producerOf(remote)
		if err != nil || p == nil {
			return
		}
		if p.ID < -1 || p.Epoch < -1 || p.Seq < -1 {
			t.Fatalf("producer %+v", p)
		}
		again, err := producerOf(&frame.Attach{Properties: producerProperties(*p)})
		if p.ID >= 0 && p.Epoch >= 0 && (err != nil || *again != *p) {
			t.Fatalf("producer %+v is told as %+v, %v", p, again, err)
		}
	})
}

// FuzzRead makes requests of whatever properties: each gets an answer, and none is an
// error of the broker.
func FuzzRead(f *testing.F) {
	b := brokertest.Start(f)
	if _, err := b.CreateHub(f.Context(), entity.Hub{Name: "h"}); err != nil {
		f.Fatal(err)
	}
	service := azure.New(b, budget.Unlimited(), slog.New(slog.DiscardHandler), New(b))
	ours, theirs := net.Pipe()
	f.Cleanup(func() { ours.Close(); theirs.Close() })
	c, ls, finish := service.Unserved(f.Context(), endpoint.NewConn(ours, endpoint.Config{}))
	f.Cleanup(finish)
	op, ok := ls.Operation(names.Read)
	if !ok {
		f.Fatal("no such operation")
	}
	f.Add("h", names.TypeHub, "")
	f.Add("h", names.TypePartition, "0")
	f.Add("h", names.TypePartition, "-0")
	f.Add("none", names.TypePartition, "18446744073709551616")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, name, kind, partition string) {
		d := message.Draft{Application: []message.Pair{
			{Name: names.ReadName, Value: codec.String(name)},
			{Name: names.ReadType, Value: codec.String(kind)},
			{Name: names.ReadPartition, Value: codec.String(partition)},
		}}
		status := c.Try(t.Context(), op, name, d.Message())
		if status == condition.StatusInternal || status == 0 {
			t.Fatalf("status %d", status)
		}
	})
}
