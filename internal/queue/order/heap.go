// SPDX-License-Identifier: Apache-2.0

package order

// ordered is an item that can be compared.
type ordered[T any] interface{ before(T) bool }

// heap has its least item in front. It is container/heap without the interface
// values, which would allocate for each item.
type heap[T ordered[T]] []T

func (h *heap[T]) push(x T) {
	*h = append(*h, x)
	h.up(len(*h) - 1)
}

func (h *heap[T]) pop() T {
	s := *h
	top, n := s[0], len(s)-1
	s[0] = s[n]
	*h = s[:n]
	h.down(0)
	return top
}

func (h heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (h heap[T]) down(i int) {
	for {
		least, left, right := i, 2*i+1, 2*i+2
		if left < len(h) && h[left].before(h[least]) {
			least = left
		}
		if right < len(h) && h[right].before(h[least]) {
			least = right
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
