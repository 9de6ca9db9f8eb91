// SPDX-License-Identifier: Apache-2.0

package queue

const (
	shelfBits = 7
	shelfLen  = 121          // entries: they fill a size class of the allocator, 6784 bytes
	minSpare  = 4            // emptied shelves kept for reuse, and one for each sixteen in use
	sparse    = shelfLen / 4 // a shelf nobody walks along that has no more is cleared
	few       = 4            // the same, also if the rest seemed to go soon
)

// spot says where the entry of a message lies: on which shelf, at which place.
// Zero is nowhere.
type spot uint32

func (n spot) shelf() uint32 { return uint32(n >> shelfBits) }
func (n spot) place() int    { return int(n & (1<<shelfBits - 1)) }

// shelf is memory for entries. Its places are given away in turn, and not again
// before all are free.
type shelf struct {
	entries *[shelfLen]entry // nil: the number is free
	used    int32            // places given away
	live    int32            // entries in use
	next    uint32           // the shelf behind it in its row
	kept    bool             // a row refers to it
}

// row is shelves one behind the other, along which a long line waits in its
// order: whoever walks along it finds the next message next to the last one,
// however many others have come in between. The zero row is empty.
type row struct {
	first, last uint32 // shelves; zero if there is none
	place       int    // of the head, on first
	n           int    // places from the head to the end
	fresh       SeqNo  // laid at the end, and not yet in the line
}

// shelves is all entries of a queue.
type shelves struct {
	all   []shelf // number zero is none
	free  []uint32
	spare []*[shelfLen]entry
	rest  uint32   // shelf on which those are laid who wait in no row
	left  []uint32 // shelves that may have become sparse
}

func (s *shelves) at(n spot) *entry { return &s.all[n.shelf()].entries[n.place()] }

// lies returns the entry of a message if it lies at n, which need not be a place
// any more, nil if it does not. Nobody has number zero, but a free place does.
func (s *shelves) lies(seq SeqNo, n spot) *entry {
	if int(n.shelf()) >= len(s.all) || seq == 0 {
		return nil
	}
	sh := &s.all[n.shelf()]
	if sh.entries == nil || sh.entries[n.place()].seq != seq {
		return nil
	}
	return &sh.entries[n.place()]
}

// lay makes a place at the end of a row, or with the rest if it is nil.
func (s *shelves) lay(r *row) spot {
	if r == nil {
		if s.rest == 0 || s.all[s.rest].used == shelfLen {
			old := s.rest
			s.rest = s.build()
			s.letGo(old)
		}
		return s.give(s.rest)
	}
	if r.last == 0 {
		r.last = s.build()
		r.first = r.last
	} else if s.all[r.last].used == shelfLen {
		n := s.build()
		s.all[r.last].next = n
		r.last = n
	}
	r.n++
	return s.give(r.last)
}

// give gives away the next place of a shelf.
func (s *shelves) give(n uint32) spot {
	sh := &s.all[n]
	sh.used++
	sh.live++
	return spot(n)<<shelfBits | spot(sh.used-1)
}

// build returns an empty shelf, which is kept.
func (s *shelves) build() uint32 {
	if len(s.all) == 0 {
		s.all = append(s.all, shelf{kept: true})
	}
	n := uint32(len(s.all))
	if k := len(s.free); k > 0 {
		n, s.free = s.free[k-1], s.free[:k-1]
	} else {
		s.all = append(s.all, shelf{})
	}
	sh := &s.all[n]
	sh.kept = true
	if k := len(s.spare); k > 0 {
		sh.entries, s.spare = s.spare[k-1], s.spare[:k-1]
	} else {
		sh.entries = new([shelfLen]entry)
	}
	return n
}

// vacate frees a place.
func (s *shelves) vacate(n spot) {
	sh := &s.all[n.shelf()]
	sh.entries[n.place()] = entry{}
	sh.live--
	if !sh.kept && (sh.live == 0 || sh.live == few || sh.live == sparse && !sh.drained()) {
		s.thinOut(n.shelf())
	}
}

// drained reports whether what is gone from a shelf was in front of what is left.
// Most likely the rest goes soon, too, and need not be moved.
func (sh *shelf) drained() bool {
	for i := sh.used - sh.live; i < sh.used; i++ {
		if !sh.entries[i].live() {
			return false
		}
	}
	return true
}

// letGo says that no row refers to a shelf any more.
func (s *shelves) letGo(n uint32) {
	sh := &s.all[n]
	sh.kept = n == 0
	if sh.live <= sparse {
		s.thinOut(n)
	}
}

// thinOut takes an empty shelf away. A sparse one is noted: to clear it moves
// entries that a caller may look at.
func (s *shelves) thinOut(n uint32) {
	sh := &s.all[n]
	switch {
	case sh.entries == nil:
	case sh.live > 0:
		s.left = append(s.left, n)
	default:
		s.spare = append(s.spare, sh.entries)
		*sh = shelf{}
		s.free = append(s.free, n)
		for inUse := len(s.all) - len(s.free); len(s.spare) > minSpare+inUse/16; {
			s.spare[len(s.spare)-1] = nil
			s.spare = s.spare[:len(s.spare)-1]
		}
	}
}

// head returns where the head of a row lies that is not empty. The message may be
// gone, or not wait here.
func (r *row) head() spot { return spot(r.first)<<shelfBits | spot(r.place) }

// step goes on to the next place of a row, and leaves the row when it is at the end.
func (s *shelves) step(r *row) {
	r.n--
	r.place++
	if r.n == 0 {
		s.leave(r)
		return
	}
	if r.place == shelfLen {
		old := r.first
		r.first, r.place = s.all[old].next, 0
		s.letGo(old)
	}
}

// leave lets go of a whole row, which is empty then. The entries stay where they
// are.
func (s *shelves) leave(r *row) {
	for n := r.first; n != 0; {
		next := s.all[n].next
		s.letGo(n)
		n = next
	}
	*r = row{}
}

// leaveAll lets go of every row there is. The rows must not be used again.
func (s *shelves) leaveAll() {
	for n := 1; n < len(s.all); n++ {
		if uint32(n) != s.rest && s.all[n].kept {
			s.letGo(uint32(n))
		}
	}
}
