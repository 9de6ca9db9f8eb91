// SPDX-License-Identifier: Apache-2.0

package entries

import "math/bits"

// pageSet is a set of slots of a page.
type pageSet [pageLen / 64]uint64

func (b *pageSet) set(at uint64)     { b[at>>6] |= 1 << (at & 63) }
func (b *pageSet) clear(at uint64)   { b[at>>6] &^= 1 << (at & 63) }
func (b *pageSet) is(at uint64) bool { return b[at>>6]&(1<<(at&63)) != 0 }
func (b *pageSet) count() int        { return bits.OnesCount64(b[0]) + bits.OnesCount64(b[1]) }

// before returns how many slots of the set are below at.
func (b *pageSet) before(at uint64) int {
	n := bits.OnesCount64(b[at>>6] & (1<<(at&63) - 1))
	if at >= 64 {
		n += bits.OnesCount64(b[0])
	}
	return n
}

// next returns the lowest slot of the set that is not below at.
func (b *pageSet) next(at uint64) (uint64, bool) {
	for ; at < pageLen; at = at&^63 + 64 {
		if w := b[at>>6] >> (at & 63); w != 0 {
			return at + uint64(bits.TrailingZeros64(w)), true
		}
	}
	return 0, false
}

// packed is the addresses of a page that has lost many, without gaps.
type packed struct {
	has   pageSet // slots that have an address
	addrs [packedLen]SlotAddr
}

// packedLen is the number of messages at or below which a page is packed.
const packedLen = 16

// maxSpare is how many pages of each kind are kept for reuse.
const maxSpare = 1

func (k *packed) get(at uint64) *SlotAddr { return &k.addrs[k.has.before(at)] }

// repack moves the addresses of a page with few messages into a packed page.
func (s *Store) repack(p *page) {
	to := s.newPack()
	to.has = p.has
	for at, ok := p.has.next(0); ok; at, ok = p.has.next(at + 1) {
		*to.get(at) = p.full[at]
	}
	s.recycle(p)
	p.full, p.pack = nil, to
}

// unpack is the inverse of repack.
func (s *Store) unpack(p *page) {
	full := s.newFull()
	for at, ok := p.has.next(0); ok; at, ok = p.has.next(at + 1) {
		full[at] = *p.pack.get(at)
	}
	s.recycle(p)
	p.full, p.pack = full, nil
}

// recycle stores the memory of a page for reuse.
func (s *Store) recycle(p *page) {
	switch {
	case p.full == nil:
	case len(s.spareFull) < maxSpare:
		s.spareFull = append(s.spareFull, p.full)
	default:
		s.fulls--
	}
	switch {
	case p.pack == nil:
	case len(s.sparePack) < maxSpare:
		s.sparePack = append(s.sparePack, p.pack)
	default:
		s.packs--
	}
}

func (s *Store) newFull() *[pageLen]SlotAddr {
	if n := len(s.spareFull); n > 0 {
		full := s.spareFull[n-1]
		s.spareFull = s.spareFull[:n-1]
		return full
	}
	s.fulls++
	return new([pageLen]SlotAddr)
}

func (s *Store) newPack() *packed {
	if n := len(s.sparePack); n > 0 {
		pack := s.sparePack[n-1]
		s.sparePack = s.sparePack[:n-1]
		return pack
	}
	s.packs++
	return new(packed)
}
