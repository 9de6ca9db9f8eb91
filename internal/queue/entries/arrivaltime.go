// SPDX-License-Identifier: Apache-2.0

package entries

// A reply is ordered by the order time of its request. Its entry has that order time and
// a flag; its own arrival time is in a map, because few messages need it.

// EnqueuedAt returns when a message arrived, which is what consumers see.
func (s *Store) EnqueuedAt(seq SeqNo, e *Entry) int64 {
	if e.Flags&FlagInherited == 0 {
		return e.OrderTime
	}
	at, _ := s.ArrivalTimes.Get(seq)
	return at
}

// SetArrivalTime says that a message arrived later than its order time.
func (s *Store) SetArrivalTime(seq SeqNo, e *Entry, at int64) {
	e.Flags |= FlagInherited
	s.ArrivalTimes.Set(seq, at)
}

// DropArrivalTime removes the arrival time of a message that is being removed.
func (s *Store) DropArrivalTime(seq SeqNo, e *Entry) {
	if e.Flags&FlagInherited != 0 {
		s.ArrivalTimes.Delete(seq)
	}
}
