// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A small store takes less than 1 MiB when it is new, takes records of any size, has the
// segments of a large one when it is used like that, and gives back what an idle one does not
// need.
func TestSmallStoreGrows(t *testing.T) {
	disk := vfs.NewMem()
	w := openWith(t, disk, Options{Small: true})
	c, _ := claim(t, w, 1)
	commit(t, w)
	if n := size(t, disk); n >= 1<<20 {
		t.Errorf("a new store takes %d KiB", n>>10)
	}
	put := func(size int) {
		t.Helper()
		var at [1]journal.Position
		g := &journal.Group{Records: [][]byte{[]byte(strings.Repeat("x", size))}, At: at[:], Use: journal.Ordinary}
		for range 3 {
			if err := w.Append(c, g); !errors.Is(err, journal.ErrBusy) {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			commit(t, w)
		}
		if at[0] == 0 {
			t.Fatal("it stays busy")
		}
		commit(t, w)
	}
	put(100)
	put(3 << 20)
	for range 150 {
		put(1 << 20)
	}
	if got := w.log.active.Head.Capacity; got < defaultSegmentSize/4 {
		t.Errorf("after 150 MiB a segment has %d KiB", got>>10)
	}
	if w.pool.base < baseReserve {
		t.Errorf("the base of the reserve is %d KiB", w.pool.base>>10)
	}
	if err := w.trim(); err != nil {
		t.Fatal(err)
	}
	ready := uint64(0)
	for _, s := range w.pool.ready {
		ready += s.Head.Capacity
	}
	if ready > smallIdle {
		t.Errorf("%d KiB are ready when it is idle", ready>>10)
	}
}
