// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/repair"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

var update = flag.Bool("update", false, "write the golden store of the current version anew")

// goldenDirs hold a store of each version; the last one is the current.
var goldenDirs = []string{"testdata/v1", "testdata/v2"}

// goldenRecord returns the nth record of the golden store.
func goldenRecord(n int) string { return fmt.Sprintf("golden %d %0*d", n, n*11%300, n) }

// makeGolden writes a store of a few segments, with a truncation, two shards and
// two claims in it.
func makeGolden(t *testing.T, fsys vfs.FS) {
	t.Helper()
	w, err := Open(fsys, Options{SegmentSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	other, _ := claim(t, w, 7)
	var at [40]journal.Position
	for i := range at {
		if i == 30 {
			c, _ = claim(t, w, 1)
		}
		at[i] = appendOne(t, w, c, goldenRecord(i))
		if i%4 == 0 {
			appendOne(t, w, other, "other")
			commit(t, w)
		}
	}
	if err := w.Truncate(ctx, c, journal.Retain{From: at[20], Segments: []uint64{c.Segment(at[5])}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Truncate(ctx, other, journal.Retain{From: at[20]}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenStore reads stores that earlier versions, and this one, wrote. They
// must stay readable; a new version adds its own directory and leaves the
// others alone.
func TestGoldenStore(t *testing.T) {
	if *update {
		current := goldenDirs[len(goldenDirs)-1]
		if err := os.RemoveAll(current); err != nil {
			t.Fatal(err)
		}
		makeGolden(t, vfs.OS(current))
		if err := os.Remove(filepath.Join(current, format.LockName)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range goldenDirs {
		t.Run(dir, func(t *testing.T) {
			disk := loadGolden(t, dir)
			r, err := repair.Verify(disk)
			if err != nil || len(r.Notes) > 0 {
				t.Fatalf("verify: %v, %v", err, r.Notes)
			}
			kept := 0
			for e, err := range repair.Dump(disk) {
				if err != nil {
					t.Fatalf("dump: %v", err)
				}
				if e.Shard == 1 {
					kept++
				}
			}
			if err := wantGolden(disk); err != nil {
				t.Fatal(err)
			}
			if kept <= 20 || r.Records < uint64(kept) {
				t.Errorf("dump shows %d records of the shard, verify %d in all", kept, r.Records)
			}
			// It has the current version now, and is read once more.
			if r, err := repair.Verify(disk); err != nil || len(r.Notes) > 0 {
				t.Errorf("verify after a start: %v, %v", err, r.Notes)
			}
			if found, err := store.ReadCopies(disk); err != nil || found.Manifests[0].Version != format.ManifestVersion || found.Manifests[1].Version != format.ManifestVersion {
				t.Errorf("the manifests after a start: %+v, %v", found, err)
			}
		})
	}
}

// loadGolden puts a golden store on a disk in memory.
func loadGolden(t *testing.T, dir string) *vfs.Mem {
	t.Helper()
	disk := vfs.NewMem()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f, err := disk.Create(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(b, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	return disk
}

// wantGolden opens a golden store, compares what it replays, and closes it.
func wantGolden(disk vfs.FS) error {
	w, err := Open(disk, Options{})
	if err != nil {
		return err
	}
	c, got, err := replayed(w, 1)
	if err != nil {
		return err
	}
	if c.Epoch < 3 || len(got) != 20 {
		return fmt.Errorf("epoch %d and %d records, want 3 or more and 20", c.Epoch, len(got))
	}
	for i, rec := range got {
		if want := goldenRecord(20 + i); string(rec.Payload) != want {
			return fmt.Errorf("record %d: %q, want %q", i, rec.Payload, want)
		}
	}
	return w.Close()
}

// TestGoldenStoreCrashesWhileItIsOpened cuts the power before every call with
// which a store of each version is opened for the first time, and once more in the
// middle of that.
func TestGoldenStoreCrashesWhileItIsOpened(t *testing.T) {
	t.Parallel()
	for _, dir := range goldenDirs {
		t.Run(dir, func(t *testing.T) {
			disk := loadGolden(t, dir)
			points := 0
			crash := func(disk *vfs.Mem, seed uint64) {
				points++
				if err := wantGolden(disk.CrashClone(seed)); err != nil {
					t.Fatalf("crash %d with seed %d: %v", points, seed, err)
				}
			}
			fault := vfs.NewFault(disk)
			fault.Before(func(op vfs.Op, _ string) error {
				for seed := range uint64(crashWays) {
					if !changes(op) {
						break
					}
					left := disk.CrashClone(seed)
					crash(left, 0)
					again := vfs.NewFault(left)
					again.Before(func(op vfs.Op, _ string) error {
						if changes(op) {
							crash(left, seed)
						}
						return nil
					})
					if _, err := Open(again, Options{}); err != nil {
						t.Fatalf("recovery: %v", err)
					}
				}
				return nil
			})
			if err := wantGolden(fault); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d crash points", points)
		})
	}
}

// A13: a store of version 1 whose manifest is lost holds no other. Repair keeps
// what there is, makes no tombstones for segments that were not needed, and says that it
// had to guess.
func TestRepairOfVersion1WithoutManifest(t *testing.T) {
	disk := loadGolden(t, goldenDirs[0])
	remove(t, disk, format.ManifestName)
	done, err := repair.Repair(disk, repair.DropDamaged)
	if err != nil {
		t.Fatalf("repair: %v", err)
	}
	if len(done.Dropped) != 1 || done.Dropped[0].File != format.ManifestName {
		t.Errorf("repair: %+v, want only the manifest to be dropped", done)
	}
	if _, err := repair.Verify(disk); err != nil {
		t.Fatalf("verify after the repair: %v", err)
	}
	w := open(t, disk)
	if _, got, err := replayed(w, 1); err != nil || len(got) < 20 {
		t.Errorf("%d records, %v, want those that were kept, or more", len(got), err)
	}
}

// A store of version 1 may end with a segment that is finished, and the next one was
// not made yet. Nothing of it is lost, and repair has nothing to drop.
func TestRepairOfSoundVersion1(t *testing.T) {
	disk := loadGolden(t, goldenDirs[0])
	files, err := store.List(disk)
	if err != nil {
		t.Fatal(err)
	}
	segs := make(map[uint64]*store.Segment)
	for _, n := range files.Segments {
		if segs[n], err = store.OpenSegment(disk, n, 0); err != nil {
			t.Fatal(err)
		}
	}
	end, err := store.FindEnd(segs, files.Segments[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range files.Segments {
		if n > end.Seg.Number {
			remove(t, disk, store.SegmentName(n))
		}
	}
	if !end.Sealed {
		var b [format.BatchHeader]byte
		seal := format.BatchHead{Kind: format.KindSeal, Length: format.BatchHeader, First: end.Number, Synced: end.Seg.Position(end.Off)}
		seal.Encode(b[:], end.Seg.Seed, end.Off)
		if _, err := end.Seg.File.WriteAt(b[:], int64(end.Off)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := repair.Verify(disk); err != nil {
		t.Fatalf("verify: %v", err)
	}
	if done, err := repair.Repair(disk, repair.DropDamaged); err != nil || len(done.Dropped)+len(done.Restored) > 0 {
		t.Errorf("repair: %+v, %v, want nothing done", done, err)
	}
	if err := wantGolden(disk); err != nil {
		t.Error(err)
	}
}

func remove(t *testing.T, disk *vfs.Mem, name string) {
	t.Helper()
	if err := disk.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := disk.SyncDir("."); err != nil {
		t.Fatal(err)
	}
}

// A segment of another store, whole in itself, is found out by its numbers.
func TestForeignSegmentIsFoundOut(t *testing.T) {
	make := func(size int) *vfs.Mem {
		disk := vfs.NewMem()
		w := open(t, disk)
		c, _ := claim(t, w, 1)
		for c.Segment(appendOne(t, w, c, fmt.Sprintf("%0*d", size, 1))) < 4 {
			commit(t, w)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return disk
	}
	ours, theirs := make(500), make(300)
	b := [16 << 10]byte{}
	from, err := theirs.Open(store.SegmentName(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	to, err := ours.Open(store.SegmentName(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.WriteAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := repair.Verify(ours); !errors.Is(err, format.ErrNumber) {
		t.Errorf("verify: %v, want %v", err, format.ErrNumber)
	}
	w := open(t, ours)
	if _, _, err := replayed(w, 1); !errors.Is(err, format.ErrNumber) || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("replay: %v, want %v", err, format.ErrNumber)
	}
}

// interposed is a disk that does something else before a read of a segment.
type interposed struct {
	vfs.FS
	before func() // once
}

type interposedFile struct {
	vfs.File
	fs *interposed
}

func (d *interposed) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return interposedFile{f, d}, err
}

func (f interposedFile) ReadAt(b []byte, off int64) (int, error) {
	if before := f.fs.before; before != nil {
		f.fs.before = nil
		before()
	}
	return f.File.ReadAt(b, off)
}

// Between finding the file of a record and reading from it, the segment may be
// freed, and its file used again.
func TestReadOfFileThatIsUsedAgain(t *testing.T) {
	disk := &interposed{FS: vfs.NewMem()}
	w := open(t, disk)
	c, _ := claim(t, w, 1)
	first := appendOne(t, w, c, "first")
	commit(t, w)
	disk.before = func() {
		last := first
		for c.Segment(last) < 9 {
			last = appendOne(t, w, c, "first")
			commit(t, w)
			if err := w.Truncate(ctx, c, journal.Retain{From: last}); err != nil {
				t.Error(err)
			}
		}
	}
	if got, err := journal.ReadOne(ctx, w, first, nil); !errors.Is(err, journal.ErrFreed) {
		t.Errorf("read: %q, %v, want %v", got, err, journal.ErrFreed)
	}
}
