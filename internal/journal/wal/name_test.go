// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"strings"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A15: a segment's file has had other names: it was made as a spare, or was
// another segment before. An error of the disk names it as it is called now, so
// that an operator finds it.
func TestErrorsNameTheFileAsItIsCalledNow(t *testing.T) {
	for what, fsys := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.OS(t.TempDir())} {
		t.Run(what, func(t *testing.T) {
			w, err := Open(fsys, Options{SegmentSize: 16 << 10})
			if err != nil {
				t.Fatal(err)
			}
			c, _ := claim(t, w, 1)
			var at journal.Position
			for c.Segment(at) < 9 { // long enough for every file to be used again
				at = appendOne(t, w, c, numbered(600))
				commit(t, w)
				if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
					t.Fatal(err)
				}
			}
			seg := w.segs[c.Segment(at)]
			if err := seg.File.Close(); err != nil {
				t.Fatal(err)
			}
			_, err = journal.ReadOne(ctx, w, at, nil)
			wantName(t, "read", err, seg.Name)
			for _, err = range w.records(at, w.log.synced) {
				break
			}
			wantName(t, "replay", err, seg.Name)
			appendOne(t, w, c, "never written")
			wantName(t, "commit", w.Commit(), seg.Name)
			if err := w.Close(); err == nil {
				t.Error("close: no error")
			}
		})
	}
}

func wantName(t *testing.T, what string, err error, name string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), store.SpareSuffix) {
		t.Errorf("%s: %v, want it to name %s", what, err, name)
	}
}
