// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"slices"
	"unsafe"

	"github.com/triagemq/triagemq/internal/queue/entries"
)

// scheduledEntry is an item of a schedule.
type scheduledEntry struct {
	At  int64
	Seq entries.SeqNo
	pos int // in order
}

// Schedule has numbers with a time each, without gaps: the scheduled messages, the times of
// retry, the ends of durable locks. Their owners refer to the items by index. Zero is none.
type Schedule struct {
	All   []scheduledEntry
	order []uint32 // a heap: the earliest in front, then the lowest sequence number
}

// Add adds a message and returns its index.
func (s *Schedule) Add(seq entries.SeqNo, at int64) (slot uint32) {
	if len(s.All) == 0 {
		s.All = append(s.All, scheduledEntry{}) // index zero is none
	}
	slot = uint32(len(s.All))
	s.All = append(s.All, scheduledEntry{At: at, Seq: seq, pos: len(s.order)})
	s.order = append(s.order, slot)
	s.up(len(s.order) - 1)
	return slot
}

// Remove removes an item. The last one gets its index: moved is the message of that, zero
// if there is none.
func (s *Schedule) Remove(slot uint32) (moved entries.SeqNo) {
	i, last := s.All[slot].pos, len(s.order)-1
	s.swap(i, last)
	s.order = s.order[:last]
	if i < last {
		s.up(i)
		s.down(i)
	}
	end := uint32(len(s.All) - 1)
	if slot != end {
		s.All[slot] = s.All[end]
		s.order[s.All[slot].pos] = slot
		moved = s.All[slot].Seq
	}
	s.All = shrunk(s.All[:end])
	s.order = shrunk(s.order)
	return moved
}

// shrunk returns s, in less memory if most of it is not used.
func shrunk[T any](s []T) []T {
	const least = 256
	if cap(s) <= least || len(s) > cap(s)/4 {
		return s
	}
	return slices.Clone(s)
}

// Memory returns how many bytes the schedule takes.
func (s *Schedule) Memory() int64 {
	return int64(cap(s.All))*int64(unsafe.Sizeof(scheduledEntry{})) + int64(cap(s.order))*4
}

// Len returns how many items there are.
func (s *Schedule) Len() int { return len(s.order) }

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
