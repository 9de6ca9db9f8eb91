// SPDX-License-Identifier: Apache-2.0

package entries

import "unsafe"

const (
	entryBytes     = int64(unsafe.Sizeof(Entry{}))
	slabHeadBytes  = int64(unsafe.Sizeof(slab{}))
	directoryBytes = 704 // the allocator's size class of a directory
	fullBytes      = int64(unsafe.Sizeof([pageLen]SlotAddr{}))
	packBytes      = int64(unsafe.Sizeof(packed{}))
	expiryBytes    = int64(unsafe.Sizeof(pageExpiry{}))

	// entryCost is about what a message takes in a long queue: its entry, and its address
	// in a page.
	entryCost = 64
	// ListedCost is about what a message takes in a list of sequence numbers: eight
	// bytes, in chunks of which a part is empty.
	ListedCost = 16
)

// Memory returns how many bytes the store has allocated, which is not less than what its
// messages take: slabs and pages are freed as a whole. It visits nothing.
func (s *Store) Memory() int64 {
	return s.slabs.memory() +
		int64(len(s.dirs))*directoryBytes + int64(cap(s.dirs))*8 +
		int64(s.fulls)*fullBytes + int64(s.packs)*packBytes +
		int64(cap(s.expiries))*expiryBytes +
		s.ArrivalTimes.Memory()
}

func (s *slabs) memory() int64 {
	return int64(s.slots)*entryBytes + int64(cap(s.all))*slabHeadBytes + int64(cap(s.free))*4
}

// Growth returns about how many bytes the store grows by if n messages are added. In a
// short queue the first message of a slab allocates all of it.
func (s *Store) Growth(n int) int64 {
	const few = 3 // slabs
	if s.inUse() > few {
		return int64(n) * entryCost
	}
	grown, size := int64(0), smallSlab
	if s.shared != 0 {
		sh := &s.all[s.shared]
		n -= len(sh.entries) - int(sh.used)
		size = min(4*len(sh.entries), SlabLen)
	}
	n -= len(s.spare) * SlabLen
	if len(s.dirs) == 0 {
		grown = directoryBytes + 2*fullBytes + 2*slabHeadBytes
	}
	for ; n > 0; n, size = n-size, min(4*size, SlabLen) {
		grown += int64(size)*entryBytes + fullBytes/2
	}
	return grown
}

// InRuns returns how many messages are listed by the slabs that they are in, which takes
// no memory.
func (s *Store) InRuns() int64 { return s.inRuns }
