// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"
	"errors"

	"github.com/triagemq/triagemq/internal/stream"
)

// Append is one batch for a partition. It is stored as it is and never taken apart here.
type Append struct {
	Partition int
	Raw       []byte // not changed before Done is called
	Count     int    // events in it, at least 1
	Producer  *Producer
	// Done is called exactly once, when the batch is durable or refused. It must not
	// block. first is the number of the first event in the batch, also of a batch that
	// the producer had sent before.
	Done func(first stream.SeqNo, err error)
}

// Producer is an idempotent producer of one partition: a batch that it sends twice is
// stored once.
type Producer struct {
	ID    int64
	Epoch int16 // of two producers with one id the one with the higher epoch stays
	Seq   int32 // of the first event of a batch; after the highest number comes 0
}

// Append stores a batch. It never blocks; a.Done may be called before it returns.
func (h *Hub) Append(a *Append) { a.Done(0, errors.ErrUnsupported) }

// OpenProducer begins an idempotent producer. What is asked may be nil, and a negative
// number in it is none; what is missing is assigned. The result has the number of the
// last event that the producer has published: its next one is one higher.
func (h *Hub) OpenProducer(ctx context.Context, partition int, asked *Producer) (Producer, error) {
	return Producer{}, errors.ErrUnsupported
}
