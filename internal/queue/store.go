// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"slices"
)

const (
	pageBits = 7
	pageLen  = 1 << pageBits // spots
	dirBits  = 6
	dirLen   = 1 << dirBits // pages
)

// store finds the entry of a number without a map: directory, page, spot. A page
// without messages costs nothing, and one that has lost nearly all is packed.
type store struct {
	shelves
	dirs []*directory // by number; only those that have messages, and the last
	base uint64       // number of the first of them
	last SeqNo        // highest number ever given; its page is never packed
	hot  spot         // where the next message to be asked for probably lies: a hint

	expiries  []pageExpiry // a heap
	spareFull []*[pageLen]spot
	sparePack []*packed
}

type directory struct {
	no    uint64
	live  int // pages in use
	pages [dirLen]page
}

// page has its spots in full or in pack; neither if it is empty. A message that
// goes leaves its spot behind: to clear it would fetch memory that nobody needs.
type page struct {
	full   *[pageLen]spot
	pack   *packed
	has    places // spots that count
	expiry uint32 // its place in expiries, from 1; zero is that none of its ready messages expires
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
	if e := s.lies(seq, s.hot); e != nil {
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
	s.hot = *p.get(at)
	return s.at(s.hot)
}

// spotOf returns where a message lies that is there.
func (s *store) spotOf(seq SeqNo) spot {
	if s.lies(seq, s.hot) == nil {
		s.hot = *s.page(uint64(seq) >> pageBits).get(uint64(seq) & (pageLen - 1))
	}
	return s.hot
}

// get returns the memory for the spot at a place that the page has.
func (p *page) get(at uint64) *spot {
	if p.full != nil {
		return &p.full[at&(pageLen-1)]
	}
	return p.pack.get(at)
}

// put makes a place for seq, which must be new, at the end of a row, or with the
// rest if that is nil. But for its number it is zero; the caller sets its state.
func (s *store) put(seq SeqNo, r *row) *entry {
	s.clearSparse()
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
		p.full = s.newFull()
		d.live++
	}
	to := s.lay(r)
	p.has.set(uint64(seq) & (pageLen - 1))
	p.full[seq&(pageLen-1)] = to
	e := s.at(to)
	e.seq = seq
	return e
}

// move moves a message to the end of a row, or to the rest if that is nil, and
// returns where it is now.
func (s *store) move(seq SeqNo, r *row) *entry {
	n := s.page(uint64(seq) >> pageBits).get(uint64(seq) & (pageLen - 1))
	from, to := *n, s.lay(r)
	e := s.at(to)
	*e, *n = *s.at(from), to
	s.vacate(from)
	return e
}

// clearSparse moves what is left on sparse shelves to the rest.
func (s *store) clearSparse() {
	for len(s.left) > 0 {
		k := len(s.left) - 1
		no := s.left[k]
		s.left = s.left[:k]
		sh := s.all[no]
		if sh.entries == nil || sh.kept || sh.live > sparse {
			continue // it was emptied, or is in use again
		}
		for i := range sh.used {
			if e := &sh.entries[i]; e.live() {
				s.move(e.seq, nil)
			}
		}
	}
}

// delete frees the place of seq, which must be in use.
func (s *store) delete(seq SeqNo) {
	n, at := uint64(seq)>>pageBits, uint64(seq)&(pageLen-1)
	p := s.page(n)
	if s.lies(seq, s.hot) == nil {
		s.hot = *p.get(at)
	}
	s.vacate(s.hot)
	p.has.clear(at)
	switch live := p.has.count(); {
	case live == 0:
		s.drop(n, p)
	case live == fewLen && p.full != nil && n != uint64(s.last)>>pageBits:
		s.repack(p)
	}
	s.clearSparse()
}

// drop gives an empty page back, and its directory if that became useless.
func (s *store) drop(n uint64, p *page) {
	s.forgetExpiry(p)
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
			if place, e := s.nextOf(&d.pages[p], at); e != nil {
				s.visits++
				return SeqNo((d.no<<dirBits|p)<<pageBits | place), e
			}
		}
	}
	return 0, nil
}

// nextOf returns the entry of p with the lowest place not below at.
func (s *store) nextOf(p *page, at uint64) (place uint64, e *entry) {
	place, ok := p.has.next(at)
	if !ok {
		return 0, nil
	}
	return place, s.at(*p.get(place))
}
