// SPDX-License-Identifier: Apache-2.0

package lease

import "github.com/triagemq/triagemq/internal/queue/entries"

// scheduledEntry is a scheduled message.
type scheduledEntry struct {
	At  int64
	Seq entries.SeqNo
	pos int // in order
}

// Schedule has the scheduled messages; entries refer to them by index. Zero is none.
type Schedule struct {
	All   []scheduledEntry
	free  []uint32
	order []uint32 // a heap: the earliest in front, then the lowest sequence number
}

func (s *Schedule) Add(seq entries.SeqNo, at int64) (slot uint32) {
	if k := len(s.free); k > 0 {
		slot, s.free = s.free[k-1], s.free[:k-1]
	} else {
		if len(s.All) == 0 {
			s.All = append(s.All, scheduledEntry{}) // index zero is none
		}
		s.All = append(s.All, scheduledEntry{})
		slot = uint32(len(s.All) - 1)
	}
	s.All[slot] = scheduledEntry{At: at, Seq: seq, pos: len(s.order)}
	s.order = append(s.order, slot)
	s.up(len(s.order) - 1)
	return slot
}

func (s *Schedule) Remove(slot uint32) {
	i, last := s.All[slot].pos, len(s.order)-1
	s.swap(i, last)
	s.order = s.order[:last]
	if i < last {
		s.up(i)
		s.down(i)
	}
	s.All[slot] = scheduledEntry{}
	s.free = append(s.free, slot)
}

// First returns the next message that is due, and when; Never if there is none.
func (s *Schedule) First() (entries.SeqNo, int64) {
	if len(s.order) == 0 {
		return 0, entries.Never
	}
	a := s.All[s.order[0]]
	return a.Seq, a.At
}

func (s *Schedule) less(i, j int) bool {
	a, b := s.All[s.order[i]], s.All[s.order[j]]
	return entries.OrderKey{At: a.At, Seq: a.Seq}.Before(entries.OrderKey{At: b.At, Seq: b.Seq})
}

func (s *Schedule) swap(i, j int) {
	s.order[i], s.order[j] = s.order[j], s.order[i]
	s.All[s.order[i]].pos, s.All[s.order[j]].pos = i, j
}

func (s *Schedule) up(i int) {
	for i > 0 && s.less(i, (i-1)/2) {
		s.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (s *Schedule) down(i int) {
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
