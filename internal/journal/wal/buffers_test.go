// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"testing"

	"github.com/triagemq/triagemq/internal/vfs"
)

// When more comes than the disk takes, several batches wait. Their buffers are used again,
// until the store is idle.
func TestBuffersAreUsedAgain(t *testing.T) {
	w := open(t, vfs.NewMem())
	c, _ := claim(t, w, 1)
	large := string(make([]byte, 15<<10)) // so that each is in a batch of its own
	fill := func() {
		for range 2 * maxUnused {
			appendOne(t, w, c, large)
		}
	}
	fill()
	commit(t, w)
	if n := len(w.log.unused); n != maxUnused {
		t.Fatalf("%d buffers are kept, want %d", n, maxUnused)
	}
	kept := make(map[*batch]bool)
	for _, b := range w.log.unused {
		kept[b] = true
	}
	fill()
	n := 0
	for _, b := range w.log.pending {
		if kept[b] {
			n++
		}
	}
	if n != maxUnused {
		t.Errorf("%d of %d buffers are used again", n, maxUnused)
	}
	commit(t, w)
	if err := w.trim(); err != nil {
		t.Fatal(err)
	}
	if n := len(w.log.unused); n != 1 {
		t.Errorf("%d buffers are kept by an idle store", n)
	}
}
