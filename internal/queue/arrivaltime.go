// SPDX-License-Identifier: Apache-2.0

package queue

// A reply is ordered by the time of its request. The entry of such a message has
// that order time and a flag; when the message itself arrived is kept in a map,
// because few messages need it.

// enqueuedAt returns when a message arrived, which is what consumers see.
func (s *store) enqueuedAt(seq SeqNo, e *entry) int64 {
	if e.flags&flagInherited == 0 {
		return e.orderTime
	}
	return s.arrivalTimes[seq]
}

// setArrivalTime says that a message arrived later than its order time.
func (s *store) setArrivalTime(seq SeqNo, e *entry, at int64) {
	if s.arrivalTimes == nil {
		s.arrivalTimes = make(map[SeqNo]int64)
	}
	e.flags |= flagInherited
	s.arrivalTimes[seq] = at
}

// dropArrivalTime removes the arrival time of a message that is being removed.
func (s *store) dropArrivalTime(seq SeqNo, e *entry) {
	if e.flags&flagInherited != 0 {
		delete(s.arrivalTimes, seq)
	}
}
