// SPDX-License-Identifier: Apache-2.0

package lease

import "unsafe"

const chunkLen = 128

// fifo is a first-in first-out list in chunks, so that a long one wastes at most two of
// them and never copies its items.
type fifo[T any] struct {
	chunks []*[chunkLen]T // those before first are nil
	first  int            // chunk of the head
	head   int            // index of the head in its chunk
	n      int            // items
	popped uint64         // items ever popped
	spare  *[chunkLen]T
}

func (f *fifo[T]) push(x T) {
	end := f.head + f.n
	if f.first+end/chunkLen == len(f.chunks) {
		f.grow()
	}
	f.chunks[f.first+end/chunkLen][end%chunkLen] = x
	f.n++
}

func (f *fifo[T]) grow() {
	if f.first > 16 && f.first > len(f.chunks)/2 { // close the gap in front
		n := copy(f.chunks, f.chunks[f.first:])
		clear(f.chunks[n:])
		f.chunks, f.first = f.chunks[:n], 0
	}
	c := f.spare
	f.spare = nil
	if c == nil {
		c = new([chunkLen]T)
	}
	f.chunks = append(f.chunks, c)
}

// at returns the item i positions behind the head.
func (f *fifo[T]) at(i int) *T {
	i += f.head
	return &f.chunks[f.first+i/chunkLen][i%chunkLen]
}

func (f *fifo[T]) pop() T {
	x := *f.at(0)
	f.n--
	f.popped++
	f.head++
	switch {
	case f.head == chunkLen:
		f.spare, f.chunks[f.first] = f.chunks[f.first], nil
		f.first++
		f.head = 0
		if f.n == 0 {
			*f = fifo[T]{popped: f.popped, spare: f.spare}
		}
	case f.n == 0: // begin again at the front of the same chunk
		f.head = 0
	}
	return x
}

// memory returns how many bytes the list takes.
func (f *fifo[T]) memory() int64 {
	n := len(f.chunks) - f.first
	if f.spare != nil {
		n++
	}
	return int64(n)*int64(unsafe.Sizeof([chunkLen]T{})) + int64(cap(f.chunks))*8
}
