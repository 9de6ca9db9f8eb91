// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"time"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// PartitionInfo is a partition as an operator sees it. Everything in it is durable.
type PartitionInfo struct {
	Partition   int
	First, Last stream.SeqNo // an empty partition has First = Last+1
	LastTime    time.Time    // of the last event that was ever appended; zero without any
	Bytes       uint64       // of the batches that are retained
	In, Out     Flow
	Readers     []ReaderInfo
}

// ReaderInfo is one reader.
type ReaderInfo struct {
	Group, Name string
	Epoch       *int64
	Next        stream.SeqNo // the next event that it has not got
	LagEvents   int64
	LagBytes    uint64        // about
	LagTime     time.Duration // about the age of that event; 0 at the end
	Since       time.Time     // when it was opened
}

// NeverUsed reports whether no event was ever stored, and no consumer group. It is for the owner
// that has just opened the hub.
func (h *Hub) NeverUsed() bool {
	if h.groups != nil || h.Losses().Records > 0 {
		return false
	}
	for _, p := range h.partitions {
		if p == nil || p.m.Next() > 0 {
			return false
		}
	}
	return true
}

// Partition returns the state of a partition.
func (h *Hub) Partition(ctx context.Context, number int) (PartitionInfo, error) {
	var info PartitionInfo
	err := h.do(ctx, func(tx *engine.Tx) error {
		p, err := h.partition(number)
		if err == nil {
			info = p.info(tx.Now())
		}
		return err
	})
	if err != nil {
		return PartitionInfo{}, err
	}
	return info, nil
}

// Info returns the state of all partitions, in order.
func (h *Hub) Info(ctx context.Context) ([]PartitionInfo, error) {
	var infos []PartitionInfo
	err := h.do(ctx, func(tx *engine.Tx) error {
		for _, p := range h.partitions {
			infos = append(infos, p.info(tx.Now()))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

// info describes the partition as it is when the open group is durable.
func (p *partition) info(now time.Time) PartitionInfo {
	i := PartitionInfo{
		Partition: p.number,
		First:     p.m.First(), Last: p.m.Behind() - 1,
		LastTime: p.m.Latest(),
		Bytes:    p.m.Bytes(),
		In:       p.in.flow(now), Out: p.out.flow(now),
	}
	for _, r := range p.readers() {
		x := ReaderInfo{Group: r.opts.Group, Name: r.opts.Name, Epoch: r.opts.Epoch, Next: max(r.seen, i.First), Since: r.sinceAt}
		if x.LagEvents = p.m.EventsFrom(x.Next); x.LagEvents > 0 {
			x.LagBytes = p.m.BytesFrom(x.Next)
			x.LagTime = max(0, now.Sub(time.UnixMilli(p.m.TimeOf(x.Next))))
		}
		i.Readers = append(i.Readers, x)
	}
	return i
}
