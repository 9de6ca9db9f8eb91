// SPDX-License-Identifier: Apache-2.0

package shard

// reorder has the messages of a queue put into the order that was configured.
func (s *Shard) reorder(sl *slot) {
	if sl.reordering {
		return // it goes on with the new one
	}
	sl.reordering = true
	s.tx.Start(s.inSteps(func(s *Shard) (bool, error) {
		if s.entities[sl.entity.ID] != sl.entity {
			return true, nil // dropped meanwhile
		}
		sl.reordering = sl.q.Reorder(s.opts.VisitStep)
		s.touch(sl) // another message may be first now
		return !sl.reordering, nil
	}, nil))
}
