// SPDX-License-Identifier: Apache-2.0

package queue

const (
	shelfBits = 7
	shelfLen  = 121          // entries: they fill a size class of the allocator, 6784 bytes
	minSpare  = 4            // emptied shelves kept for reuse, and one for each sixteen in use
	sparse    = shelfLen / 4 // a shelf nobody walks along that has no more is cleared
	few       = 4            // the same, also if the rest seemed to go soon
	thin      = shelfLen / 2 // a shelf inside a row in which no more wait is taken out of it
)

// spot says where the entry of a message lies: on which shelf, at which place.
// Zero is nowhere.
type spot uint32

func (n spot) shelf() uint32 { return uint32(n >> shelfBits) }
func (n spot) place() int    { return int(n & (1<<shelfBits - 1)) }

// shelf is memory for entries. Its places are given away in turn, and not again
// before all are free.
type shelf struct {
	entries    *[shelfLen]entry // nil: the number is free
	next, prev uint32           // the shelves behind it and before it in its row
	used       uint8            // places given away
	live       uint8            // entries in use
	waiting    uint8            // of those, entries with flagRow
	kept       bool             // a row refers to it
}

// row is shelves one behind the other, along which a long line waits in its
// order: whoever walks along it finds the next message next to the last one,
// however many others have come in between. The zero row is empty.
//
//	first                                        last
//	[. . w w . w w] <-> [w w w w . w w] <-> … <-> [w w w     ]
//	     place                                         used
//
// A place counts if the entry on it has flagRow (w). A shelf without such places is
// taken out of the row at once, but for the last, so that the way to the next
// message is never longer than a shelf. One in the middle that has few of them is
// taken out, too: those messages wait without a row then.
type row struct {
	first, last uint32 // shelves; zero if there is none
	place       int    // on first; nobody waits before it
	n           int    // messages that wait
	fresh       SeqNo  // laid at the end, and not yet in the line
}

// shelves is all entries of a queue.
type shelves struct {
	all   []shelf // number zero is none
	free  []uint32
	spare []*[shelfLen]entry
	rest  uint32   // shelf on which those are laid who wait in no row
	left  []uint32 // shelves that may have become sparse

	visits uint64 // messages, keys and sessions that walks have looked at
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
		r.first, r.place = r.last, 0
	} else if s.all[r.last].used == shelfLen {
		n := s.build()
		s.all[r.last].next, s.all[n].prev = n, r.last
		r.last = n
	}
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

// enter lets a message wait that was laid at the end of a row.
func (s *shelves) enter(r *row, e *entry) {
	e.flags |= flagRow
	s.all[r.last].waiting++
	r.n++
	r.fresh = 0
}

// head returns where the first message of a row lies; the row is not empty.
func (s *shelves) head(r *row) spot {
	for sh := &s.all[r.first]; sh.entries[r.place].flags&flagRow == 0; {
		r.place++
	}
	return spot(r.first)<<shelfBits | spot(r.place)
}

// end returns where the last message of a row lies; the row is not empty.
func (s *shelves) end(r *row) spot {
	n := r.last
	if s.all[n].waiting == 0 {
		n = s.all[n].prev
	}
	place := int(s.all[n].used) - 1
	for s.all[n].entries[place].flags&flagRow == 0 {
		place--
	}
	return spot(n)<<shelfBits | spot(place)
}

// pop removes the first message of a row, if it is e and others wait on its shelf.
func (s *shelves) pop(r *row, e *entry) bool {
	sh := &s.all[r.first]
	if &sh.entries[r.place] != e || sh.waiting == 1 {
		return false
	}
	e.flags &^= flagRow
	sh.waiting--
	r.n--
	r.place++
	return true
}

// exit says that the message at n waits in a row no more. It reports whether the
// shelf has become thin, and should be taken out of the row.
func (s *shelves) exit(r *row, n spot) (isThin bool) {
	sh := &s.all[n.shelf()]
	sh.entries[n.place()].flags &^= flagRow
	sh.waiting--
	r.n--
	switch {
	case r.n == 0:
		s.leave(r)
	case sh.waiting == 0 && n.shelf() != r.last:
		s.unlink(r, n.shelf())
	default:
		return sh.waiting <= thin && n.shelf() != r.first && n.shelf() != r.last
	}
	return false
}

// unlink takes a shelf out of a row that has others.
func (s *shelves) unlink(r *row, n uint32) {
	sh := &s.all[n]
	if sh.prev != 0 {
		s.all[sh.prev].next = sh.next
	} else {
		r.first, r.place = sh.next, 0
	}
	if sh.next != 0 {
		s.all[sh.next].prev = sh.prev
	} else {
		r.last = sh.prev
	}
	sh.prev, sh.next, sh.waiting = 0, 0, 0
	s.letGo(n)
}

// leave lets go of a row in which nobody waits any more.
func (s *shelves) leave(r *row) {
	for n := r.first; n != 0; {
		next := s.all[n].next
		s.all[n].prev, s.all[n].next = 0, 0
		s.letGo(n)
		n = next
	}
	*r = row{}
}

// clearFirst takes the first shelf out of a row that is given up, and returns how many
// entries it had. What waits in the row is not counted any more.
func (s *shelves) clearFirst(r *row) int {
	n := r.first
	sh := &s.all[n]
	used := int(sh.used)
	for i := range used {
		sh.entries[i].flags &^= flagRow
	}
	s.visits += uint64(used)
	r.first = sh.next
	sh.prev, sh.next, sh.waiting = 0, 0, 0
	s.letGo(n)
	return used
}
