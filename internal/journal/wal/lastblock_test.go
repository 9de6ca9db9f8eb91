// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A file system that is full to the last block needs one to give a file of the reserve its
// new name. Another file of the reserve is given up for that.
func TestReserveIsUsableWithoutAFreeBlock(t *testing.T) {
	disk := vfs.NewMem()
	disk.SetSize(24 << 20)
	fault := vfs.NewFault(disk)
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	w.Reserve(c, journal.Reservation{Settling: 6 << 20})
	commit(t, w)
	fillUp(t, w, c)
	disk.SetOthers(1 << 40)
	removed := 0
	fault.Before(func(op vfs.Op, _ string) error {
		switch {
		case op == vfs.OpRemove:
			removed++
		case op == vfs.OpRename && removed == 0:
			return fmt.Errorf("directory: %w", vfs.ErrNoSpace)
		}
		return nil
	})
	record := string(make([]byte, 10_000))
	for n := range 100 {
		if _, err := keepUp(w, c, record); err != nil {
			t.Fatalf("append %d for upkeep: %v, %+v", n, err, w.Stats())
		}
		commit(t, w)
	}
	if removed == 0 {
		t.Error("no file of the reserve was needed; the test shows nothing")
	}
}
