// SPDX-License-Identifier: Apache-2.0

package stream

import "testing"

// The values are those that the author of the hash gives in its source.
func TestLookup3IsThePublishedHash(t *testing.T) {
	for _, c := range []struct {
		key  string
		c, b uint32
	}{
		{"", 0xdeadbeef, 0xdeadbeef},
		{"Four score and seven years ago", 0x17770551, 0xce7226e6},
	} {
		if gotC, gotB := lookup3(c.key); gotC != c.c || gotB != c.b {
			t.Errorf("%q: %08x %08x, want %08x %08x", c.key, gotC, gotB, c.c, c.b)
		}
	}
}

func TestPartitionOfIsInRange(t *testing.T) {
	seen := make(map[int]bool)
	for i := range 10_000 {
		p := PartitionOf(string(rune('a'+i%26))+string(rune(i)), 7)
		if p < 0 || p >= 7 {
			t.Fatalf("partition %d of 7", p)
		}
		seen[p] = true
	}
	if len(seen) != 7 {
		t.Errorf("only partitions %v are used", seen)
	}
}
