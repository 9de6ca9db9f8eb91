// SPDX-License-Identifier: Apache-2.0

package eventhubs

import "testing"

func TestBuffersHaveTheSizeThatIsAskedFor(t *testing.T) {
	for _, n := range []int{0, 1, 300, 4095, 4096, 4097, 5000, 30_000, 65_536, 65_537, 500_000, 1 << 19, 1<<19 + 1, 1 << 21} {
		for range 3 {
			b := buffer(n)
			if len(b) != 0 || cap(b) < n || n > 4096 && cap(b) > 2*n {
				t.Errorf("a buffer for %d bytes has %d of %d", n, len(b), cap(b))
			}
			recycle(b[:n])
		}
	}
	recycle(make([]byte, 0, 5000)) // no buffer of ours
	if b := buffer(4097); cap(b) < 4097 {
		t.Errorf("a buffer of %d bytes", cap(b))
	}
}
