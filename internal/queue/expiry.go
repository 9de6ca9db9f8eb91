// SPDX-License-Identifier: Apache-2.0

package queue

// Lives end page by page: a page knows a moment before which none of its ready
// messages expires, and a heap orders the pages by it. That costs no memory for
// each message, and settled ones leave nothing behind but a needless look.

// expiryHeap orders pages by their moment. A page that found an earlier moment
// is in it twice; the later item is stale and skipped.
type expiryHeap = heap[pageExpiry]

type pageExpiry struct {
	at   int64
	page uint64
}

func (a pageExpiry) before(b pageExpiry) bool { return a.at < b.at }

// noteExpiry says that a message is ready and expires at some moment.
func (s *store) noteExpiry(seq SeqNo, at int64) {
	if at == never {
		return
	}
	n := uint64(seq) >> pageBits
	if p := s.page(n); at < p.expiry {
		p.expiry = at
		s.expiries.push(pageExpiry{at, n})
	}
}

// nextExpiry returns the page that must be looked at first, and when.
func (s *store) nextExpiry() (n uint64, at int64) {
	for len(s.expiries) > 0 {
		top := s.expiries[0]
		if p := s.page(top.page); p != nil && p.has != (places{}) && p.expiry == top.at {
			return top.page, top.at
		}
		s.expiries.pop()
	}
	return 0, never
}

// expired appends to due the ready messages of page n that have expired, and
// works out when the page must be looked at again.
func (s *store) expired(n uint64, now int64, due []SeqNo) []SeqNo {
	p := s.page(n)
	p.expiry = never
	next := int64(never)
	for at, e := s.nextOf(p, 0); e != nil; at, e = s.nextOf(p, at+1) {
		if !e.is(Ready) {
			continue
		}
		if x := e.expiry(); x <= now {
			due = append(due, SeqNo(n<<pageBits|at))
		} else {
			next = min(next, x)
		}
	}
	if next != never {
		p.expiry = next
		s.expiries.push(pageExpiry{next, n})
	}
	return due
}
