// SPDX-License-Identifier: Apache-2.0

package queueserver

// reorder has the messages of a queue put into the order that was configured.
func (s *Shard) reorder(hq *hostedQueue) {
	if hq.reordering {
		return // it goes on with the new one
	}
	hq.reordering = true
	s.tx.Start(s.inSteps(hq.entity.ID, func(s *Shard) (bool, error) {
		if s.entities[hq.entity.ID] != hq.entity {
			return true, nil // dropped meanwhile
		}
		hq.reordering = hq.q.Reorder(s.opts.VisitStep)
		s.touch(hq) // another message may be first now
		return !hq.reordering, nil
	}, nil))
}
