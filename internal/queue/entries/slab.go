// SPDX-License-Identifier: Apache-2.0

package entries

const (
	slabBits = 7
	SlabLen  = 121 // 121 entries of 56 bytes fill an allocator size class of 6784 bytes

	smallSlab  = 8 // entries of the first slab of a queue: there may be very many short queues
	middleSlab = 32

	keptSlabs  = 64          // numbers that have memory while there is no slab
	spareSlabs = 4           // empty slabs kept for reuse at most, plus one for each sixteen in use
	sparsePart = 4           // an unpinned slab with no more than one in so many entries is compacted
	fewEntries = 4           // the same, even if it seemed to empty in order
	thinSlab   = SlabLen / 2 // a slab inside a run with no more listed entries leaves the run
)

// SlotAddr is the address of an entry: slab id and slot. Zero is none.
//
//	31                     7 6        0
//	+-----------------------+----------+
//	|        slab id        |   slot   |
//	+-----------------------+----------+
type SlotAddr uint32

func (n SlotAddr) slab() uint32 { return uint32(n >> slabBits) }
func (n SlotAddr) slot() int    { return int(n & (1<<slabBits - 1)) }

// slab holds 121 entries; one that short queues share may hold less. Slots are allocated in ascending order and reused only
// after the whole slab is empty: then slot order is the order of arrival, and a
// run can be walked like an array.
//
//	slot   0     1     2     3           used          120
//	     +-----+-----+-----+-----+-   -+-----+-   -+-----+
//	     | free| seq | free| seq | ... |     | ... |     |   56 bytes each
//	     +-----+-----+-----+-----+-   -+-----+-   -+-----+
//	       freed, not reused             next to allocate
//
// Life of a slab:
//
//	filling -> pinned by a run -> draining -> empty -> spare or garbage
//	           or the shared slab    |
//	                                 +-> sparse: its last entries are moved to the
//	                                     shared slab, so that a few old messages do
//	                                     not retain thousands of slabs
type slab struct {
	entries    []Entry // nil: the slab id is free
	next, prev uint32  // neighbours in its run
	used       uint8   // slots allocated
	live       uint8   // entries in use
	inRun      uint8   // of those, entries with flagInRun
	pinned     bool    // a run refers to it, or it is the shared slab
}

// SlabRun is a chain of slabs that holds the tail of one long list in its order.
// The next message is adjacent in memory to the last one, however many messages of
// other lists arrived in between. The zero run is empty.
//
//	first                                        last
//	[. . w w . w w] <-> [w w w w . w w] <-> … <-> [w w w     ]
//	     slot                                          used
//
// A slot counts if its entry has flagInRun (w). A slab without such slots leaves the run
// at once, except the last one, so the next message is at most one slab away. A slab in
// the middle that has few of them leaves, too; its messages are then listed by their
// sequence numbers.
type SlabRun struct {
	first, last uint32 // slab ids; zero if the run is empty
	slot        int    // in first; no slot below it counts
	n           int    // messages in the run
	pending     SeqNo  // allocated at the end, and not yet in the list
}

// Empty reports whether the run has no slabs.
func (r *SlabRun) Empty() bool { return r.first == 0 }

// slabs is the allocator: all entries of a queue.
type slabs struct {
	all         []slab // by slab id; id zero is none
	free        []uint32
	spare       [][]Entry // of SlabLen
	slots       int       // of all slabs and spare ones
	shared      uint32    // slab for entries that are in no run
	sparseSlabs []uint32  // slabs that may have become sparse

	inRuns int64  // messages that runs list
	Visits uint64 // messages, keys and sessions that walks have visited
}

func (s *slabs) at(n SlotAddr) *Entry { return &s.all[n.slab()].entries[n.slot()] }

// entryAt returns the entry at n if it still is that message, else nil. n may be
// stale. A free slot has sequence number zero, which no message has.
func (s *slabs) entryAt(seq SeqNo, n SlotAddr) *Entry {
	if int(n.slab()) >= len(s.all) || seq == 0 {
		return nil
	}
	sh := &s.all[n.slab()]
	if n.slot() >= len(sh.entries) || sh.entries[n.slot()].Seq != seq {
		return nil
	}
	return &sh.entries[n.slot()]
}

// allocSlot allocates a slot at the end of a run, or in the shared slab if r is nil.
func (s *slabs) allocSlot(r *SlabRun) SlotAddr {
	if r == nil {
		if s.shared == 0 || int(s.all[s.shared].used) == len(s.all[s.shared].entries) {
			old := s.shared
			s.shared = s.newSlab(s.nextShared())
			s.unpin(old)
		}
		return s.takeSlot(s.shared)
	}
	if r.last == 0 {
		r.last = s.newSlab(SlabLen)
		r.first, r.slot = r.last, 0
	} else if s.all[r.last].used == SlabLen {
		n := s.newSlab(SlabLen)
		s.all[r.last].next, s.all[n].prev = n, r.last
		r.last = n
	}
	return s.takeSlot(r.last)
}

// takeSlot allocates the next slot of a slab.
func (s *slabs) takeSlot(n uint32) SlotAddr {
	sh := &s.all[n]
	sh.used++
	sh.live++
	return SlotAddr(n)<<slabBits | SlotAddr(sh.used-1)
}

// inUse returns how many slabs there are.
func (s *slabs) inUse() int { return len(s.all) - min(len(s.all), 1) - len(s.free) }

// nextShared returns how many entries the next shared slab should have. It grows while most
// messages stay, and shrinks again when few do.
func (s *slabs) nextShared() int {
	if s.inUse() > 2 {
		return SlabLen
	}
	if s.shared == 0 {
		return smallSlab
	}
	old := &s.all[s.shared]
	switch n := len(old.entries); {
	case int(old.live) > n/2 && n == smallSlab:
		return middleSlab
	case int(old.live) > n/2:
		return SlabLen
	case int(old.live) <= smallSlab/2:
		return smallSlab
	default:
		return n
	}
}

// newSlab returns an empty slab, which is pinned.
func (s *slabs) newSlab(size int) uint32 {
	if len(s.all) == 0 {
		s.all = append(s.all, slab{pinned: true})
	}
	n := uint32(len(s.all))
	if k := len(s.free); k > 0 {
		n, s.free = s.free[k-1], s.free[:k-1]
	} else {
		s.all = append(s.all, slab{})
	}
	sh := &s.all[n]
	sh.pinned = true
	if k := len(s.spare); k > 0 && size == SlabLen {
		sh.entries, s.spare = s.spare[k-1], s.spare[:k-1]
	} else {
		sh.entries = make([]Entry, size)
		s.slots += size
	}
	return n
}

// freeSlot frees a slot.
func (s *slabs) freeSlot(n SlotAddr) {
	sh := &s.all[n.slab()]
	sh.entries[n.slot()] = Entry{}
	sh.live--
	switch {
	case sh.live > uint8(sh.sparse()):
	case !sh.pinned:
		if sh.live == 0 || int(sh.live) == sh.few() || int(sh.live) == sh.sparse() && !sh.drainedInOrder() {
			s.reclaim(n.slab())
		}
	case n.slab() == s.shared:
		s.dropShared()
	}
}

// dropShared frees the shared slab of a queue that has become empty, unless it is small.
func (s *slabs) dropShared() {
	sh := &s.all[s.shared]
	if s.shared == 0 || sh.live > 0 || sh.used == 0 || len(sh.entries) == smallSlab || s.inUse() > 1 {
		return
	}
	n := s.shared
	s.shared = 0
	s.unpin(n)
}

// sparse returns the number of entries at or below which a slab that is not pinned is compacted.
func (sh *slab) sparse() int { return len(sh.entries) / sparsePart }

// few returns the number at which it is compacted even if it seemed to empty in order.
func (sh *slab) few() int { return min(fewEntries, sh.sparse()/2) }

// drainedInOrder reports whether only slots at the front were freed. Then the remaining
// entries are probably freed next, and need not be moved.
func (sh *slab) drainedInOrder() bool {
	for i := sh.used - sh.live; i < sh.used; i++ {
		if !sh.entries[i].live() {
			return false
		}
	}
	return true
}

// unpin says that no run refers to a slab any more.
func (s *slabs) unpin(n uint32) {
	sh := &s.all[n]
	sh.pinned = n == 0
	if int(sh.live) <= sh.sparse() {
		s.reclaim(n)
	}
}

// reclaim frees an empty slab. A sparse one is only recorded: compacting it moves
// entries, which the caller may hold pointers to.
func (s *slabs) reclaim(n uint32) {
	sh := &s.all[n]
	switch {
	case sh.entries == nil:
	case sh.live > 0:
		s.sparseSlabs = append(s.sparseSlabs, n)
	default:
		if len(sh.entries) == SlabLen {
			s.spare = append(s.spare, sh.entries)
		} else {
			s.slots -= len(sh.entries)
		}
		*sh = slab{}
		s.free = append(s.free, n)
		for inUse := s.inUse(); len(s.spare) > min(inUse/2, spareSlabs)+inUse/16; {
			s.spare[len(s.spare)-1] = nil
			s.spare = s.spare[:len(s.spare)-1]
			s.slots -= SlabLen
		}
		switch s.inUse() {
		case 0:
			if cap(s.all) > keptSlabs {
				s.all, s.free, s.sparseSlabs = []slab{{pinned: true}}, nil, nil
			}
		case 1:
			s.dropShared()
		}
	}
}

// enterRun adds a message to the run at whose end it was allocated.
func (s *slabs) enterRun(r *SlabRun, e *Entry) {
	e.Flags |= flagInRun
	s.all[r.last].inRun++
	s.inRuns++
	r.n++
	r.pending = 0
}

// runHead returns the address of the first message of a run, which is not empty.
func (s *slabs) runHead(r *SlabRun) SlotAddr {
	for sh := &s.all[r.first]; sh.entries[r.slot].Flags&flagInRun == 0; {
		r.slot++
	}
	return SlotAddr(r.first)<<slabBits | SlotAddr(r.slot)
}

// runEnd returns the address of the last message of a run, which is not empty.
func (s *slabs) runEnd(r *SlabRun) SlotAddr {
	n := r.last
	if s.all[n].inRun == 0 {
		n = s.all[n].prev
	}
	slot := int(s.all[n].used) - 1
	for s.all[n].entries[slot].Flags&flagInRun == 0 {
		slot--
	}
	return SlotAddr(n)<<slabBits | SlotAddr(slot)
}

// popRun removes the first message of a run, if it is e and its slab has others.
func (s *slabs) popRun(r *SlabRun, e *Entry) bool {
	sh := &s.all[r.first]
	if &sh.entries[r.slot] != e || sh.inRun == 1 {
		return false
	}
	e.Flags &^= flagInRun
	sh.inRun--
	s.inRuns--
	r.n--
	r.slot++
	return true
}

// exitRun removes the message at n from a run. It reports whether the slab has
// become thin and should leave the run.
func (s *slabs) exitRun(r *SlabRun, n SlotAddr) (isThin bool) {
	sh := &s.all[n.slab()]
	sh.entries[n.slot()].Flags &^= flagInRun
	sh.inRun--
	s.inRuns--
	r.n--
	switch {
	case r.n == 0:
		s.dropRun(r)
	case sh.inRun == 0 && n.slab() != r.last:
		s.unlinkSlab(r, n.slab())
	default:
		return sh.inRun <= thinSlab && n.slab() != r.first && n.slab() != r.last
	}
	return false
}

// unlinkSlab takes a slab out of a run that has others.
func (s *slabs) unlinkSlab(r *SlabRun, n uint32) {
	sh := &s.all[n]
	if sh.prev != 0 {
		s.all[sh.prev].next = sh.next
	} else {
		r.first, r.slot = sh.next, 0
	}
	if sh.next != 0 {
		s.all[sh.next].prev = sh.prev
	} else {
		r.last = sh.prev
	}
	sh.prev, sh.next, sh.inRun = 0, 0, 0
	s.unpin(n)
}

// dropRun unpins the slabs of a run that has become empty.
func (s *slabs) dropRun(r *SlabRun) {
	for n := r.first; n != 0; {
		next := s.all[n].next
		s.all[n].prev, s.all[n].next = 0, 0
		s.unpin(n)
		n = next
	}
	*r = SlabRun{}
}

// ClearFirstSlab takes the first slab out of a run that is discarded, and returns
// how many slots it had. The count of the run is not maintained any more.
func (s *slabs) ClearFirstSlab(r *SlabRun) int {
	n := r.first
	sh := &s.all[n]
	used := int(sh.used)
	for i := range used {
		sh.entries[i].Flags &^= flagInRun
	}
	s.inRuns -= int64(sh.inRun)
	s.Visits += uint64(used)
	r.first = sh.next
	sh.prev, sh.next, sh.inRun = 0, 0, 0
	s.unpin(n)
	return used
}
