// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"

	"github.com/triagemq/triagemq/internal/budget"
	"github.com/triagemq/triagemq/internal/stream"
)

// ErrMemory means that there is no memory for more partitions or idempotent producers.
var ErrMemory = errors.New("streamserver: no memory is left for partitions and producers of event hubs")

const (
	// partitionCost is what a partition takes in memory without anything in it. Places of
	// batches are not in it: there are 256 at most, and of older ones 64 bytes for each block
	// of the log.
	partitionCost = 2 << 10
	// fewProducers is how many producers a partition may remember as long as there is any
	// memory. More of them get half of the memory, so that who sends does not take that of
	// those who read.
	fewProducers = 16
)

// size returns what a partition is charged for.
func (p *partition) size() int64 {
	return partitionCost + int64(p.m.Producers())*stream.ProducerCost
}

// fits refuses partitions for which there is no memory. What is replayed is not refused.
func (h *Hub) fits(partitions int) error { return fits(h.stored, partitions) }

func fits(stored *budget.Account, partitions int) error {
	if stored.Available() < int64(partitions)*partitionCost {
		return ErrMemory
	}
	return nil
}

// fitsProducer reports whether a partition may remember one producer more.
func (h *Hub) fitsProducer(p *partition) bool {
	left := h.stored.Available()
	if p.m.Producers() >= fewProducers {
		left -= h.stored.Limit() / 2
	}
	return left >= stream.ProducerCost
}

// Fits refuses a new hub for whose partitions an account, nil is no limit, has no memory.
func Fits(stored *budget.Account, set Settings) error {
	if stored == nil {
		return nil
	}
	return fits(stored, set.Partitions)
}

// chargePartition charges what a partition keeps in memory.
func (h *Hub) chargePartition(p *partition) {
	size := p.size()
	switch more := size - p.charged; {
	case more > 0:
		h.stored.Charge(more)
	case more < 0:
		h.stored.Release(-more)
	}
	p.charged = size
}

// releasePartitions gives everything back.
func (h *Hub) releasePartitions() {
	for _, p := range h.partitions {
		if p != nil {
			h.stored.Release(p.charged)
			p.charged = 0
		}
	}
}
