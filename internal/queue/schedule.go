// SPDX-License-Identifier: Apache-2.0

package queue

// appointment is a scheduled message.
type scheduledEntry struct {
	at  int64
	seq SeqNo
	pos int // in order
}

// schedule keeps appointments; entries refer to them by index. Zero is none.
type schedule struct {
	all   []scheduledEntry
	free  []uint32
	order []uint32 // a heap: the earliest in front, then the lowest number
}

func (s *schedule) add(seq SeqNo, at int64) (slot uint32) {
	if k := len(s.free); k > 0 {
		slot, s.free = s.free[k-1], s.free[:k-1]
	} else {
		if len(s.all) == 0 {
			s.all = append(s.all, scheduledEntry{}) // slot zero is none
		}
		s.all = append(s.all, scheduledEntry{})
		slot = uint32(len(s.all) - 1)
	}
	s.all[slot] = scheduledEntry{at: at, seq: seq, pos: len(s.order)}
	s.order = append(s.order, slot)
	s.up(len(s.order) - 1)
	return slot
}

func (s *schedule) remove(slot uint32) {
	i, last := s.all[slot].pos, len(s.order)-1
	s.swap(i, last)
	s.order = s.order[:last]
	if i < last {
		s.up(i)
		s.down(i)
	}
	s.all[slot] = scheduledEntry{}
	s.free = append(s.free, slot)
}

// first returns the next message due, and when; never if there is none.
func (s *schedule) first() (SeqNo, int64) {
	if len(s.order) == 0 {
		return 0, never
	}
	a := s.all[s.order[0]]
	return a.seq, a.at
}

func (s *schedule) less(i, j int) bool {
	a, b := s.all[s.order[i]], s.all[s.order[j]]
	return orderKey{a.at, a.seq}.before(orderKey{b.at, b.seq})
}

func (s *schedule) swap(i, j int) {
	s.order[i], s.order[j] = s.order[j], s.order[i]
	s.all[s.order[i]].pos, s.all[s.order[j]].pos = i, j
}

func (s *schedule) up(i int) {
	for i > 0 && s.less(i, (i-1)/2) {
		s.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (s *schedule) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s.order); c++ {
			if s.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		s.swap(i, least)
		i = least
	}
}
