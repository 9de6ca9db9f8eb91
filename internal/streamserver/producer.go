// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// Producer is an idempotent producer of one partition: a batch that it sends twice is
// stored once. Its Seq is the number of the first event of a batch.
type Producer = stream.Producer

// OpenProducer begins an idempotent producer. What is asked may be nil, and a negative
// number in it is none; what is missing is assigned. The result has the number of the
// last event that the producer has published: its next one is one higher.
func (h *Hub) OpenProducer(ctx context.Context, partition int, asked *Producer) (Producer, error) {
	var opened Producer
	err := h.do(ctx, func(tx *engine.Tx) (err error) {
		opened, err = h.openProducer(tx, partition, asked)
		return err
	})
	if err != nil {
		return Producer{}, err
	}
	return opened, nil
}

func (h *Hub) openProducer(tx *engine.Tx, partition int, asked *Producer) (Producer, error) {
	p, err := h.partition(partition)
	if err != nil {
		return Producer{}, err
	}
	if tx.Full() {
		return Producer{}, ErrDiskFull
	}
	if asked == nil {
		asked = &Producer{ID: -1, Epoch: -1, Seq: -1}
	}
	tx.WriteAs(p.unit)
	open := p.m.OpenProducer
	if p.m.AddsProducer(*asked) && !h.fitsProducer(p) {
		if asked.ID >= 0 || p.m.Producers() == 0 {
			return Producer{}, ErrMemory
		}
		open = p.m.ReplaceProducer
	}
	got, err := open(*asked, &h.eff)
	h.changed(p)
	return got, err
}
