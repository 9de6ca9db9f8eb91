// SPDX-License-Identifier: Apache-2.0

package order

// listHeap is a heap of lists, each of which has its position, so that it can be moved.
type listHeap[O heapOrder] []*keyList

// heapOrder compares two lists, and returns where a list stores its position.
type heapOrder interface {
	before(a, b *keyList) bool
	slot(l *keyList) *int
}

// byAge orders lists by their heads.
type byAge struct{}

func (byAge) before(a, b *keyList) bool { return a.first.Before(b.first) }
func (byAge) slot(l *keyList) *int      { return &l.headIndex }

func (h *listHeap[O]) push(l *keyList) {
	var by O
	*by.slot(l) = len(*h)
	*h = append(*h, l)
	h.fix(l)
}

func (h *listHeap[O]) remove(l *keyList) {
	var by O
	s, i := *h, *by.slot(l)
	last := s[len(s)-1]
	*h = s[:len(s)-1]
	if last != l {
		s[i], *by.slot(last) = last, i
		h.fix(last)
	}
}

// fix restores the order after the key of l has changed.
func (h *listHeap[O]) fix(l *keyList) {
	var by O
	s, i := *h, *by.slot(l)
	for i > 0 && by.before(l, s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		*by.slot(s[i]) = i
		i = (i - 1) / 2
	}
	for {
		c := 2*i + 1
		if c >= len(s) {
			break
		}
		if c+1 < len(s) && by.before(s[c+1], s[c]) {
			c++
		}
		if !by.before(s[c], l) {
			break
		}
		s[i] = s[c]
		*by.slot(s[i]) = i
		i = c
	}
	s[i], *by.slot(l) = l, i
}
