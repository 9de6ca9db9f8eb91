// SPDX-License-Identifier: Apache-2.0

package streamserver

import (
	"github.com/triagemq/triagemq/internal/engine"
	"github.com/triagemq/triagemq/internal/stream"
)

// partition is one partition of a hub. The engine's goroutine owns it.
type partition struct {
	number int
	m      *stream.Partition
	unit   *engine.Unit

	end     stream.SeqNo // behind the last event that is durable
	endAt   int64        // its time, in milliseconds; 0 is none
	given   stream.SeqNo // numbers below it may have been given: more than end after a loss
	arrived flow         // batches, durable or not
	touched bool         // on Hub.touched
	charged int64        // for what m keeps
	in, out meter

	groups  map[string]*readerGroup
	waiting []*Reader // for events that are yet to come
}

// end is how far a partition is when something is durable.
type end struct {
	p       *partition
	seq     stream.SeqNo
	at      int64
	arrived flow
}

// flow is how many events have come, and of how many bytes.
type flow struct{ events, bytes uint64 }

// firstUnit is the unit of partition 0. Those before it are kept for machines of the hub
// itself. It is on disk and never changes.
const firstUnit = 16

// newPartition makes a partition that has no history yet.
func (h *Hub) newPartition(number int) *partition {
	p := &partition{number: number, m: stream.New(), groups: make(map[string]*readerGroup)}
	p.unit = &engine.Unit{ID: uint64(number) + firstUnit, Machine: p.m, Owner: p, Overhead: 16}
	p.m.Retain(h.set.retention())
	for len(h.partitions) <= number {
		h.partitions = append(h.partitions, nil)
	}
	h.partitions[number] = p
	return p
}

// partition returns one by its number.
func (h *Hub) partition(number int) (*partition, error) {
	if number < 0 || number >= len(h.partitions) {
		return nil, ErrPartition
	}
	return h.partitions[number], nil
}

// addPartitions makes those that are wanted and not there.
func (h *Hub) addPartitions() {
	if !h.missing {
		return
	}
	h.missing = false
	there := max(len(h.partitions), h.lostBelow) // of which some may be lost, but none is when this returns
	for n := range max(h.set.Partitions, there) {
		if n < len(h.partitions) && h.partitions[n] != nil {
			continue
		}
		h.eff.BeginPlain(kindPartition)
		h.eff.Uint(uint64(n))
		h.eff.End()
		p := h.newPartition(n)
		h.tx.Add(p.unit)
		h.tx.WriteAs(p.unit)
		p.m.Create(&h.eff)
		if n < h.lostBelow {
			p.m.Skip(&h.eff) // it may have had events
			p.given = p.m.Next()
			p.end = p.given
		}
		h.changed(p)
		h.tx.MustCommit()
		if n < there {
			continue
		}
		if h.tx.CommitIfFull(); h.tx.Stuck() {
			h.missing = true // the others when there is space
			return
		}
	}
}

// changed takes over what a command of a partition did.
func (h *Hub) changed(p *partition) {
	h.chargePartition(p)
	h.tx.Collect(p.unit)
	h.tx.Schedule(p.unit)
}

// tick drops what has expired.
func (h *Hub) tick(p *partition) {
	h.tx.WriteAs(p.unit)
	p.m.Tick(h.tx.Now(), &h.eff)
	h.changed(p)
}

// touch notes that a partition has new events in the open group.
func (h *Hub) touch(p *partition) {
	if !p.touched {
		p.touched = true
		h.touched = append(h.touched, p)
	}
}
