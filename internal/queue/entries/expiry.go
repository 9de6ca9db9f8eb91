// SPDX-License-Identifier: Apache-2.0

package entries

// Expiry is tracked by page, not by message. A page has a lower bound of the expiry
// times of its ready messages, and a heap orders the pages by that bound:
//
//	heap   [t=10 page 7] [t=12 page 3] [t=90 page 4] …
//	page 7   m m . m m . …   the earliest of its messages expires at 10 or later
//
// That takes no memory per message. The bound is not raised when a message is
// settled, so it may be too early: then one scan of the page (at most 128 entries)
// finds nothing and sets the exact bound. A page is in the heap at most once; a
// lower bound moves it up.

// keptExpiries is how many have memory while there is none.
const keptExpiries = 64

// pageExpiry is the bound of a page. The page has its index in the heap, so that it can
// be moved, and removed with the page.
type pageExpiry struct {
	at   int64
	page uint64
}

// NoteExpiry says that a message is ready and expires at a time.
func (s *Store) NoteExpiry(seq SeqNo, at int64) {
	if at == Never {
		return
	}
	n := uint64(seq) >> pageBits
	p := s.page(n)
	switch {
	case p.expiry == 0:
		s.expiries = append(s.expiries, pageExpiry{})
		s.expiryUp(len(s.expiries)-1, pageExpiry{at, n})
	case at < s.expiries[p.expiry-1].at:
		s.expiryUp(int(p.expiry-1), pageExpiry{at, n})
	}
}

// NextExpiry returns the page that must be scanned first, and when.
func (s *Store) NextExpiry() (n uint64, at int64) {
	if len(s.expiries) == 0 {
		return 0, Never
	}
	return s.expiries[0].page, s.expiries[0].at
}

// Expired appends to due the ready messages of page n that have expired, and
// computes when the page must be scanned again.
func (s *Store) Expired(n uint64, now int64, due []SeqNo) []SeqNo {
	p := s.page(n)
	next := int64(Never)
	for at, e := s.nextOf(p, 0); e != nil; at, e = s.nextOf(p, at+1) {
		if !e.Is(Ready) {
			continue
		}
		if x := e.Expiry(); x <= now {
			due = append(due, SeqNo(n<<pageBits|at))
		} else {
			next = min(next, x)
		}
	}
	if next == Never {
		s.forgetExpiry(p)
	} else {
		s.expiryDown(int(p.expiry-1), pageExpiry{next, n})
	}
	return due
}

// forgetExpiry removes a page from the heap, if it is there.
func (s *Store) forgetExpiry(p *page) {
	if p.expiry == 0 {
		return
	}
	i, end := int(p.expiry-1), len(s.expiries)-1
	p.expiry = 0
	last := s.expiries[end]
	s.expiries = s.expiries[:end]
	if end == 0 && cap(s.expiries) > keptExpiries {
		s.expiries = nil
	}
	switch {
	case i == end:
	case i > 0 && last.at < s.expiries[(i-1)/2].at:
		s.expiryUp(i, last)
	default:
		s.expiryDown(i, last)
	}
}

// expiryUp inserts x at i or nearer to the top.
func (s *Store) expiryUp(i int, x pageExpiry) {
	for i > 0 && x.at < s.expiries[(i-1)/2].at {
		s.setExpiry(i, s.expiries[(i-1)/2])
		i = (i - 1) / 2
	}
	s.setExpiry(i, x)
}

// expiryDown inserts x at i or below.
func (s *Store) expiryDown(i int, x pageExpiry) {
	for {
		least := 2*i + 1
		if least >= len(s.expiries) {
			break
		}
		if right := least + 1; right < len(s.expiries) && s.expiries[right].at < s.expiries[least].at {
			least = right
		}
		if x.at <= s.expiries[least].at {
			break
		}
		s.setExpiry(i, s.expiries[least])
		i = least
	}
	s.setExpiry(i, x)
}

func (s *Store) setExpiry(i int, x pageExpiry) {
	s.expiries[i] = x
	s.page(x.page).expiry = uint32(i + 1)
}
