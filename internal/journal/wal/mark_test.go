// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A13: the last page of the log holds many small batches, each of which proves
// that those before it were synced. If the page is zeroed nothing in the log tells
// that they were there. The manifest does, a second after the last of them.
func TestZeroedLastPageIsDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMem()
		w, err := Open(disk, Options{SegmentSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		var at journal.Position
		for range 50 {
			at = appendOne(t, w, c, "acknowledged")
			synctest.Wait()
		}
		time.Sleep(markEvery + time.Millisecond)
		synctest.Wait()
		killed := disk.CrashClone(0)
		stop()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := repair.Verify(killed); err != nil {
			t.Fatalf("verify before any damage: %v", err)
		}

		file, err := killed.Open(store.SegmentName(1))
		if err != nil {
			t.Fatal(err)
		}
		page := int64(at) % (64 << 10) / 4096 * 4096
		if _, err := file.WriteAt(make([]byte, 4096), max(page, format.HeaderSize)); err != nil {
			t.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
		if _, err := repair.Verify(killed); !errors.Is(err, format.ErrShort) {
			t.Errorf("verify: %v, want %v", err, format.ErrShort)
		}
		if _, err := Open(killed, Options{}); !errors.Is(err, format.ErrShort) || !errors.Is(err, journal.ErrCorrupt) {
			t.Errorf("open: %v, want %v", err, format.ErrShort)
		}
		done, err := repair.Repair(killed, repair.DropDamaged)
		if err != nil || len(done.Dropped) == 0 {
			t.Errorf("repair: %+v, %v, want it to say that the end is lost", done, err)
		}
		if _, err := repair.Verify(killed); err != nil {
			t.Errorf("verify after the repair: %v", err)
		}
	})
}

// The mark is written at most once a second, however many commits there are, and
// not at all while there are none. No commit waits for it.
func TestMarkIsWrittenSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewFault(vfs.NewMem())
		w, err := Open(disk, Options{SegmentSize: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		stop := runInBackground(t, w)
		c, _ := claim(t, w, 1)
		time.Sleep(2 * markEvery)
		synctest.Wait()

		var marks atomic.Int64
		disk.Before(func(op vfs.Op, name string) error {
			if op == vfs.OpWrite && name == format.ManifestName {
				marks.Add(1)
			}
			return nil
		})
		for range 1000 { // for ten seconds
			appendOne(t, w, c, "acknowledged")
			time.Sleep(10 * time.Millisecond)
		}
		if n := marks.Load(); n < 5 || n > 10 {
			t.Errorf("%d marks in ten seconds of commits, want about one in a second", n)
		}
		time.Sleep(2 * markEvery)
		synctest.Wait()
		marks.Store(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := marks.Load(); n > 0 {
			t.Errorf("%d marks in an hour without a commit, want none", n)
		}
		stop()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
