// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"
	"time"

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

// Flow counts events since the hub was opened.
type Flow struct {
	Events, Bytes uint64
	Rate          float64 // events a second, lately
}

// ReaderInfo is one reader.
type ReaderInfo struct {
	Group, Name string
	Epoch       *int64
	Next        stream.SeqNo // the next event that it has not got
	LagEvents   int64
	LagTime     time.Duration // age of that event; 0 at the end
	Since       time.Time     // when it was opened
}

// Partition returns the state of a partition.
func (h *Hub) Partition(ctx context.Context, p int) (PartitionInfo, error) {
	return PartitionInfo{}, errors.ErrUnsupported
}

// Info returns the state of all partitions, in order.
func (h *Hub) Info(ctx context.Context) ([]PartitionInfo, error) { return nil, errors.ErrUnsupported }
