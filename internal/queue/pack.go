// SPDX-License-Identifier: Apache-2.0

package queue

import "math/bits"

// packed is the entries of a page that has lost many, without the gaps.
type packed struct {
	has     [pageLen / 64]uint64 // places that entries has room for
	entries []entry              // in the order of their places
}

const (
	fewLen = 8  // a page with no more messages is packed at once
	young  = 64 // pages: one this close to the last is likely to be emptied soon
)

// get returns the entry at a place, nil if there is no room for it.
func (k *packed) get(at uint8) *entry {
	w, bit := at>>6, uint64(1)<<(at&63)
	if k.has[w]&bit == 0 {
		return nil
	}
	i := bits.OnesCount64(k.has[w] & (bit - 1))
	if w > 0 {
		i += bits.OnesCount64(k.has[0])
	}
	return &k.entries[i]
}

// room returns for how many entries the page has memory.
func (p *page) room() int {
	if p.pack != nil {
		return len(p.pack.entries)
	}
	return pageLen
}

// drained reports whether what is gone from a page was in front of what is
// left, as it is when messages go in the order they came.
func (p *page) drained() bool {
	var entries []entry
	if p.pack != nil {
		entries = p.pack.entries
	} else {
		entries = p.full[:]
	}
	for i := range entries {
		if entries[i].live() {
			return len(entries)-i == p.live
		}
	}
	return true
}

// packEmptier packs page n, which just lost a message, if it is nearly empty, or
// old and half empty. One that is young, or drained from the front, will most
// likely lose the rest soon.
func (s *store) packEmptier(n uint64, p *page) {
	last := uint64(s.last) >> pageBits
	few := p.live == fewLen && p.room() > fewLen
	half := p.live > fewLen && p.live == p.room()/2 && n+young < last
	if n != last && (few || half && !p.drained()) {
		s.repack(p)
	}
}

// packOlder looks, when page n is new, at a few pages that came before it. What
// is in them by now will stay for a while.
func (s *store) packOlder(n uint64) {
	for back := uint64(young); back <= n && back <= 64*64*young; back *= 8 {
		if p := s.page(n - back); p != nil && p.live > fewLen && 8*p.live <= 7*p.room() {
			s.repack(p)
		}
	}
}

// repack moves the entries of a page into a smaller one that they fill.
func (s *store) repack(p *page) {
	to := s.newPack(p.live)
	i := 0
	for at, e := p.next(0); e != nil; at, e = p.next(at + 1) {
		to.has[at>>6] |= 1 << (at & 63)
		to.entries[i] = *e
		*e = entry{}
		i++
	}
	s.recycle(p)
	p.full, p.pack = nil, to
}

// unpack is the inverse of repack.
func (s *store) unpack(p *page) {
	full := s.newFull()
	for at, e := p.next(0); e != nil; at, e = p.next(at + 1) {
		full[at] = *e
		*e = entry{}
	}
	s.recycle(p)
	p.full, p.pack = full, nil
}

// recycle keeps the memory of a page, whose entries are all zero, if it is of
// use.
func (s *store) recycle(p *page) {
	if p.full != nil && len(s.spareFull) < maxSpare {
		s.spareFull = append(s.spareFull, p.full)
	}
	if p.pack != nil && len(p.pack.entries) == fewLen && len(s.sparePack) < maxSpare {
		s.sparePack = append(s.sparePack, p.pack)
	}
}

func (s *store) newFull() *[pageLen]entry {
	if n := len(s.spareFull); n > 0 {
		full := s.spareFull[n-1]
		s.spareFull = s.spareFull[:n-1]
		return full
	}
	return new([pageLen]entry)
}

func (s *store) newPack(live int) *packed {
	if n := len(s.sparePack); n > 0 && live == fewLen {
		pack := s.sparePack[n-1]
		s.sparePack = s.sparePack[:n-1]
		clear(pack.has[:])
		return pack
	}
	return &packed{entries: make([]entry, live)}
}
