// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"
)

const (
	pageBits = 7
	pageLen  = 1 << pageBits // entries: 6 KiB, one size class of the allocator
	dirBits  = 6
	dirLen   = 1 << dirBits // pages
	maxSpare = 2            // emptied pages kept for reuse
)

// store finds the entry of a number in three steps, without a map: directory,
// page, place. A page without messages costs nothing, and one that has lost many
// is packed, so that a few that stay do not keep the memory of all that went.
type store struct {
	dirs []*directory // by number; only those that have messages, and the last
	base uint64       // number of the first of them
	last SeqNo        // highest number ever given; its page is never packed

	expiries  expiryHeap
	spareFull []*[pageLen]entry
	sparePack []*packed // of fewLen entries
}

type directory struct {
	no    uint64
	live  int // pages in use
	pages [dirLen]page
}

// page has its entries in full or in pack; neither if it is empty.
type page struct {
	full   *[pageLen]entry
	pack   *packed
	expiry int64 // no ready entry expires before it; meaningless if the page is empty
	live   int   // entries in use
}

// directory returns the index of directory no, or where it belongs. Without
// gaps it is as far from the first as its number, or as far from the last; only
// between two gaps there is a search.
func (s *store) directory(no uint64) (i int, found bool) {
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

// page returns page n, nil if there is none. Without gaps, which is how it
// nearly always is, it is a few instructions.
func (s *store) page(n uint64) *page {
	if i := n>>dirBits - s.base; i < uint64(len(s.dirs)) {
		if d := s.dirs[i]; d.no == n>>dirBits {
			return &d.pages[n&(dirLen-1)]
		}
	}
	return s.search(n)
}

func (s *store) search(n uint64) *page {
	i, found := s.directory(n >> dirBits)
	if !found {
		return nil
	}
	return &s.dirs[i].pages[n&(dirLen-1)]
}

// get returns the entry of a message, nil if there is none. It is valid until
// the next delete or put.
func (s *store) get(seq SeqNo) *entry {
	p := s.page(uint64(seq) >> pageBits)
	if p == nil {
		return nil
	}
	return p.get(uint8(seq & (pageLen - 1)))
}

func (p *page) get(at uint8) *entry {
	e := p.find(at)
	if e == nil || !e.live() {
		return nil
	}
	return e
}

// find returns the memory for the entry at a place, nil if there is none. It
// does not look at the entry.
func (p *page) find(at uint8) *entry {
	switch {
	case p.full != nil:
		return &p.full[at&(pageLen-1)]
	case p.pack != nil:
		return p.pack.get(at)
	}
	return nil
}

// put makes a place for seq, which must be new, and returns it zeroed. The
// caller sets its state at once: only that makes it live.
func (s *store) put(seq SeqNo) *entry {
	s.last = max(s.last, seq)
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
		p.full, p.expiry = s.newFull(), never
		d.live++
		s.packOlder(n)
	}
	p.live++
	return &p.full[seq&(pageLen-1)]
}

// delete frees the place of seq, which must be in use.
func (s *store) delete(seq SeqNo) {
	n := uint64(seq) >> pageBits
	p := s.page(n)
	*p.get(uint8(seq & (pageLen - 1))) = entry{}
	p.live--
	if p.live == 0 {
		s.drop(n, p)
	} else {
		s.packEmptier(n, p)
	}
}

// drop gives an empty page back, and its directory if that became useless.
func (s *store) drop(n uint64, p *page) {
	s.recycle(p)
	*p = page{}
	i, _ := s.directory(n >> dirBits)
	d := s.dirs[i]
	d.live--
	if d.live == 0 && d.no != uint64(s.last)>>pageBits>>dirBits {
		s.dirs = slices.Delete(s.dirs, i, i+1)
		if len(s.dirs) > 0 {
			s.base = s.dirs[0].no
		}
	}
}

// next returns the first message whose number is not below seq; nil at the end.
func (s *store) next(seq SeqNo) (SeqNo, *entry) {
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
			if place, e := d.pages[p].next(at); e != nil {
				return SeqNo((d.no<<dirBits|p)<<pageBits | place), e
			}
		}
	}
	return 0, nil
}

// next returns the entry of p with the lowest place not below at.
func (p *page) next(at uint64) (place uint64, e *entry) {
	if p.full == nil && p.pack == nil {
		return 0, nil
	}
	for ; at < pageLen; at++ {
		if e := p.get(uint8(at)); e != nil {
			return at, e
		}
	}
	return 0, nil
}
