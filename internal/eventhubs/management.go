// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"context"
	"strconv"
	"time"

	"github.com/triagemq/triagemq/internal/access"
	"github.com/triagemq/triagemq/internal/amqp/codec"
	"github.com/triagemq/triagemq/internal/amqp/names"
	"github.com/triagemq/triagemq/internal/azure"
	"github.com/triagemq/triagemq/internal/azure/wire"
)

// readOperation tells about a hub or a partition. At the node of the namespace the request
// names the hub; the Go SDK sends no body.
func (c *links) readOperation() azure.Operation {
	needs, _ := access.OfRequest(names.Read)
	return azure.Operation{
		Needs:   needs, // any right: senders ask for the partitions, too
		AnyBody: true,
		Entity:  func(k *azure.Call) string { return k.Property(names.ReadName) },
		Begin:   c.beginRead,
	}
}

func (c *links) beginRead(k *azure.Call) (azure.Run, error) {
	path := k.Entity()
	switch kind := k.Property(names.ReadType); kind {
	case names.TypeHub:
		return func(context.Context) (codec.Value, error) { return c.readHub(path) }, nil
	case names.TypePartition:
		partition := k.Property(names.ReadPartition)
		return func(ctx context.Context) (codec.Value, error) { return c.readPartition(ctx, path, partition) }, nil
	default:
		return nil, azure.BadArgument(names.ReadType, names.TypeHub+" or "+names.TypePartition)
	}
}

// readHub tells about a hub. The Go SDK insists on an array of strings and on the factor,
// of which 1 says that there is no replication to other regions.
func (c *links) readHub(path string) (codec.Value, error) {
	h, err := c.broker.HubInfo(path)
	if err != nil {
		return codec.Value{}, err
	}
	ids := make([]string, h.PartitionCount)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	return wire.Result(
		names.ReadName, codec.String(h.Name),
		names.ReadType, codec.String(names.TypeHub),
		names.CreatedAt, codec.Timestamp(h.Created),
		names.PartitionCount, codec.Int(int32(h.PartitionCount)),
		names.PartitionIDs, codec.Raw(codec.AppendStringArray(nil, ids)),
		names.GeoReplication, codec.Int(1),
	), nil
}

// readPartition tells about a partition. Clients take the offset for opaque, and the
// numbers of an empty partition as the service gives them.
func (c *links) readPartition(ctx context.Context, path, partition string) (codec.Value, error) {
	h, err := c.broker.HubInfo(path)
	if err != nil {
		return codec.Value{}, err
	}
	p, err := c.broker.PartitionInfo(ctx, path, partition)
	if err != nil {
		return codec.Value{}, err
	}
	at := p.LastTime
	if at.IsZero() {
		at = time.UnixMilli(0)
	}
	return wire.Result(
		names.ReadName, codec.String(h.Name),
		names.ReadType, codec.String(names.TypePartition),
		names.ReadPartition, codec.String(partition),
		names.BeginSequenceNumber, codec.Long(int64(p.First)),
		names.LastSequenceNumber, codec.Long(int64(p.Last)),
		names.LastOffset, codec.String(strconv.FormatInt(int64(p.Last), 10)),
		names.LastEnqueuedTime, codec.Timestamp(at),
		names.IsPartitionEmpty, codec.Bool(p.First > p.Last),
	), nil
}
