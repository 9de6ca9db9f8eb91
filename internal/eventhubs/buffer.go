// SPDX-License-Identifier: Apache-2.0

package eventhubs

import (
	"math/bits"
	"sync"
)

// Buffers of batches are used again, by sizes: each class has the buffers of one power of
// two. Smaller ones are cheap to make, and larger ones rare.
const (
	leastShift = 12 // 4 KiB
	mostShift  = 19 // 512 KiB
)

var buffers [mostShift - leastShift + 1]sync.Pool // of *[]byte

// buffer returns an empty buffer for n bytes.
func buffer(n int) []byte {
	shift := bits.Len(uint(max(n-1, 0)))
	if shift < leastShift || shift > mostShift {
		return make([]byte, 0, n)
	}
	if b, ok := buffers[shift-leastShift].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 1<<shift)
}

// recycle takes back a buffer that nobody uses any more.
func recycle(b []byte) {
	shift := bits.Len(uint(cap(b))) - 1
	if shift >= leastShift && shift <= mostShift && cap(b) == 1<<shift {
		buffers[shift-leastShift].Put(&b)
	}
}
