// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"cmp"
	"slices"
)

const (
	pageBits = 7
	pageLen  = 1 << pageBits // addresses
	dirBits  = 4
	dirLen   = 1 << dirBits // pages
)

// Store finds the entry of a sequence number without a map:
//
//	sequence number  | directory | page (4) | slot in page (7) |
//	                       |          |             |
//	        dirs (sorted) -+          |             |
//	                 directory.pages -+             |
//	                    page.full[i] or page.pack --+--> slotAddr --> slab, slot
//
// Directories exist only where there are messages. An empty page takes no memory beyond
// its header. A page that has lost most of its messages is packed: a bit set and up to
// sixteen addresses instead of 128.
//
// Removing a message clears its bit in the page and leaves the address: writing it would
// load a cache line for nothing. Outside of pages an address may become stale, too;
// entryAt recognises that by the sequence number in the entry.
type Store struct {
	slabs
	dirs []*directory // sorted; only those that have messages, and the last
	base uint64       // number of the first directory
	Last SeqNo        // highest sequence number ever assigned; its page is never packed
	Hint SlotAddr     // address of the message that is probably read next

	expiries  []pageExpiry // a heap
	spareFull []*[pageLen]SlotAddr
	sparePack []*packed

	fulls, packs int // allocated, with the spare ones

	ArrivalTimes Table[SeqNo, int64] // of messages with FlagInherited
}

type directory struct {
	no    uint64
	live  int // pages in use
	pages [dirLen]page
}

// page has its addresses in full or in pack; neither if it is empty.
type page struct {
	full   *[pageLen]SlotAddr
	pack   *packed
	has    pageSet // addresses that are valid
	expiry uint32  // its index in expiries plus one; zero: none of its ready messages expires
}

// directory returns the index of directory no, or where to insert it. Without gaps the
// index follows from the first or the last directory number; only between two gaps a
// search is needed.
func (s *Store) directory(no uint64) (i int, found bool) {
	n := len(s.dirs)
	if n == 0 || no < s.dirs[0].no {
		return 0, false
	}
	if no > s.dirs[n-1].no {
		return n, false
	}
	if i := no - s.dirs[0].no; i < uint64(n) && s.dirs[i].no == no {
		return int(i), true
	}
	if i := s.dirs[n-1].no - no; i < uint64(n) && s.dirs[n-1-int(i)].no == no {
		return n - 1 - int(i), true
	}
	return slices.BinarySearchFunc(s.dirs, no, func(d *directory, no uint64) int {
		return cmp.Compare(d.no, no)
	})
}

// page returns page n, nil if there is none. Without gaps, the usual case, it takes
// a few instructions.
func (s *Store) page(n uint64) *page {
	if i := n>>dirBits - s.base; i < uint64(len(s.dirs)) {
		if d := s.dirs[i]; d.no == n>>dirBits {
			return &d.pages[n&(dirLen-1)]
		}
	}
	return s.search(n)
}

func (s *Store) search(n uint64) *page {
	i, found := s.directory(n >> dirBits)
	if !found {
		return nil
	}
	return &s.dirs[i].pages[n&(dirLen-1)]
}

// Get returns the entry of a message, nil if there is none. It is valid until the next
// Delete or Put.
func (s *Store) Get(seq SeqNo) *Entry {
	if e := s.entryAt(seq, s.Hint); e != nil {
		return e
	}
	p := s.page(uint64(seq) >> pageBits)
	if p == nil {
		return nil
	}
	at := uint64(seq) & (pageLen - 1)
	if !p.has.is(at) {
		return nil
	}
	s.Hint = *p.get(at)
	return s.at(s.Hint)
}

// addrOf returns the address of a message that exists.
func (s *Store) addrOf(seq SeqNo) SlotAddr {
	if s.entryAt(seq, s.Hint) == nil {
		s.Hint = *s.page(uint64(seq) >> pageBits).get(uint64(seq) & (pageLen - 1))
	}
	return s.Hint
}

// get returns the address field of a slot that the page has.
func (p *page) get(at uint64) *SlotAddr {
	if p.full != nil {
		return &p.full[at&(pageLen-1)]
	}
	return p.pack.get(at)
}

// Put allocates the entry of seq, which must be new, at the end of a run, or in the
// shared slab if r is nil. All fields but seq are zero; the caller sets the state.
func (s *Store) Put(seq SeqNo, r *SlabRun) *Entry {
	s.clearSparse()
	s.Last = max(s.Last, seq)
	n := uint64(seq) >> pageBits
	i, found := s.directory(n >> dirBits)
	if !found {
		s.dirs = slices.Insert(s.dirs, i, &directory{no: n >> dirBits})
		s.base = s.dirs[0].no
	}
	d := s.dirs[i]
	p := &d.pages[n&(dirLen-1)]
	switch {
	case p.pack != nil:
		s.unpack(p)
	case p.full == nil:
		p.full = s.newFull()
		d.live++
	}
	to := s.allocSlot(r)
	p.has.set(uint64(seq) & (pageLen - 1))
	p.full[seq&(pageLen-1)] = to
	e := s.at(to)
	e.Seq = seq
	return e
}

// Move moves an entry to the end of a run, or to the shared slab if r is nil, and
// returns it.
func (s *Store) Move(seq SeqNo, r *SlabRun) *Entry {
	n := s.page(uint64(seq) >> pageBits).get(uint64(seq) & (pageLen - 1))
	from, to := *n, s.allocSlot(r)
	e := s.at(to)
	*e, *n = *s.at(from), to
	s.freeSlot(from)
	return e
}

// clearSparse moves the last entries of sparse slabs to the shared slab.
func (s *Store) clearSparse() {
	for len(s.sparseSlabs) > 0 {
		k := len(s.sparseSlabs) - 1
		no := s.sparseSlabs[k]
		s.sparseSlabs = s.sparseSlabs[:k]
		sh := s.all[no]
		if sh.entries == nil || sh.pinned || int(sh.live) > sh.sparse() {
			continue // it was emptied, or is in use again
		}
		for i := range sh.used {
			if e := &sh.entries[i]; e.live() {
				s.Move(e.Seq, nil)
			}
		}
	}
}

// Delete frees the entry of seq, which must exist.
func (s *Store) Delete(seq SeqNo) {
	n, at := uint64(seq)>>pageBits, uint64(seq)&(pageLen-1)
	p := s.page(n)
	if s.entryAt(seq, s.Hint) == nil {
		s.Hint = *p.get(at)
	}
	s.freeSlot(s.Hint)
	p.has.clear(at)
	switch live := p.has.count(); {
	case live == 0:
		s.drop(n, p)
	case live == packedLen && p.full != nil && n != uint64(s.Last)>>pageBits:
		s.repack(p)
	}
	s.clearSparse()
}

// drop frees an empty page, and its directory if that became empty.
func (s *Store) drop(n uint64, p *page) {
	s.forgetExpiry(p)
	s.recycle(p)
	*p = page{}
	i, _ := s.directory(n >> dirBits)
	d := s.dirs[i]
	d.live--
	if d.live == 0 && d.no != uint64(s.Last)>>pageBits>>dirBits {
		s.dirs = slices.Delete(s.dirs, i, i+1)
		if len(s.dirs) > 0 {
			s.base = s.dirs[0].no
		}
	}
}

// Next returns the first message whose sequence number is not below seq; nil at the end.
func (s *Store) Next(seq SeqNo) (SeqNo, *Entry) {
	n, at := uint64(seq)>>pageBits, uint64(seq)&(pageLen-1)
	i, found := s.directory(n >> dirBits)
	for ; i < len(s.dirs); i, found = i+1, false {
		d, from := s.dirs[i], uint64(0)
		if found {
			from = n & (dirLen - 1)
		} else {
			at = 0
		}
		for p := from; p < dirLen; p, at = p+1, 0 {
			if slot, e := s.nextOf(&d.pages[p], at); e != nil {
				s.Visits++
				return SeqNo((d.no<<dirBits|p)<<pageBits | slot), e
			}
		}
	}
	return 0, nil
}

// nextOf returns the entry of p with the lowest slot not below at.
func (s *Store) nextOf(p *page, at uint64) (slot uint64, e *Entry) {
	slot, ok := p.has.next(at)
	if !ok {
		return 0, nil
	}
	return slot, s.at(*p.get(slot))
}

// usage is how much memory the store uses: slabs, pages, and pages that have messages
// which expire.
type usage struct{ Slabs, Pages, Expiries int }

// Usage counts what the store uses.
func (s *Store) Usage() (u usage) {
	for i := range s.all {
		if s.all[i].entries != nil {
			u.Slabs++
		}
	}
	for _, d := range s.dirs {
		u.Pages += d.live
	}
	u.Expiries = len(s.expiries)
	return u
}
