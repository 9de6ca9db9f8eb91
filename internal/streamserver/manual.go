// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"context"

	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// Manual is a hub whose owner calls Step: simulators. It must not be used while Run is
// running. Its methods do not wait: done is called by a later step.
type Manual struct{ h *Hub }

// Manual returns the hub for an owner who calls Step.
func (h *Hub) Manual() Manual { return Manual{h} }

// Partition returns a partition to look at, and behind which event it is not durable.
func (m Manual) Partition(number int) (p *stream.Partition, end stream.SeqNo) {
	return m.h.partitions[number].m, m.h.partitions[number].end
}

// Partitions returns how many there are.
func (m Manual) Partitions() int { return len(m.h.partitions) }

// OpenReader is [Hub.OpenReader].
func (m Manual) OpenReader(o ReaderOptions, done func(*Reader, error)) error {
	r := m.h.newReader(o)
	return m.h.post(r.open, func(err error) { done(r, err) })
}

// OpenProducer is [Hub.OpenProducer].
func (m Manual) OpenProducer(partition int, asked *Producer, done func(Producer, error)) error {
	var got Producer
	return m.h.post(func(tx *engine.Tx) (err error) {
		got, err = m.h.openProducer(tx, partition, asked)
		return err
	}, func(err error) { done(got, err) })
}

// Configure is [Hub.Configure].
func (m Manual) Configure(set Settings, done func(error)) error {
	return m.h.post(func(*engine.Tx) error { return m.h.configure(set) }, done)
}

// Poll is Next for a caller that steps the hub by hand: it asks if it has not, and
// returns what was answered since. It is not ready while there is no answer.
func (r *Reader) Poll(ctx context.Context, maxBytes int) (batches []Batch, ready bool, err error) {
	if err := r.post(maxBytes); err != nil {
		return nil, false, err
	}
	if !r.ready {
		select {
		case <-r.answered:
			err = r.take()
		default:
			return nil, false, nil
		}
	}
	if r.ready = false; err != nil {
		return nil, false, err
	}
	if batches, err = r.load(ctx, maxBytes); len(batches) == 0 && err == nil {
		err = r.post(maxBytes)
	}
	return batches, len(batches) > 0, err
}
