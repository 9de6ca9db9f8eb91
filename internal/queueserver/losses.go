// SPDX-License-Identifier: Apache-2.0

package queueserver

import (
	"maps"
	"slices"
)

// Loss is what a queue has lost because a repair of the journal has dropped records.
type Loss struct {
	Queue QueueID
	// Entity is the name of the entity; empty if its definition is lost, and the queue
	// with it.
	Entity string
	// Missing is about how many messages are lost, as far as the records tell. If the
	// definition is lost it is how many records of the queue cannot be used.
	Missing int
}

// Losses returns how many records a repair has dropped where the history of the shard may
// have had them, and what is known to be lost. Some of the records may have been of other
// shards; none is an undamaged history. It is for the owner that has just opened the shard.
func (s *Shard) Losses() (records uint64, losses []Loss) {
	engine := s.Engine.Losses()
	for _, e := range s.sorted() {
		for _, hq := range e.parts {
			if n := hq.q.Missing(); n > 0 {
				losses = append(losses, Loss{QueueID{e.ID, hq.part}, e.Name, n})
			}
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(engine.Undefined)) {
		id := QueueID{ID(unit / parts), SubQueue(unit % parts)}
		losses = append(losses, Loss{Queue: id, Missing: engine.Undefined[unit]})
	}
	return engine.Records, losses
}

// confirmNumbers has the queues log the numbers that a damaged history left uncertain,
// before anything else is done.
func (s *Shard) confirmNumbers() {
	s.confirmed = true
	if s.Engine.Losses().Records == 0 {
		return
	}
	for _, e := range s.sorted() {
		for _, hq := range e.parts {
			hq.q.ConfirmLast(s.out(hq))
			s.collectEffects(hq)
		}
	}
}
