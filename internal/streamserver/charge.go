// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"errors"

	"github.com/triagemq/triagemq/internal/budget"
)

// ErrMemory means that there is no memory for more partitions or idempotent producers.
var ErrMemory = errors.New("streamserver: no memory is left for partitions and producers of event hubs")

const (
	// partitionCost is what a partition takes in memory without anything in it.
	partitionCost = 1 << 10
	// chargeUnit is in what steps a partition is charged, so that it is done seldom.
	chargeUnit = 2 << 10
)

// size returns what a partition is charged for. Places of batches are not in it: there are 256
// at most, and of older ones 64 bytes for each block of the log.
func (p *partition) size() int64 {
	return (partitionCost + p.m.ProducersSize() + chargeUnit - 1) / chargeUnit * chargeUnit
}

// fits refuses partitions and producers for which there is no memory. What is replayed is not
// refused.
func (h *Hub) fits(units int) error {
	if h.stored.Available() < int64(units)*chargeUnit {
		return ErrMemory
	}
	return nil
}

// Fits refuses a new hub for whose partitions an account, nil is no limit, has no memory.
func Fits(stored *budget.Account, set Settings) error {
	if stored != nil && stored.Available() < int64(set.Partitions)*chargeUnit {
		return ErrMemory
	}
	return nil
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
