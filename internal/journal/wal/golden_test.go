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
	"github.com/triagemq/triagemq/internal/vfs"
)

var update = flag.Bool("update", false, "write the golden store of the current version anew")

const goldenDir = "testdata/v1"

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
	if err := w.Truncate(c, journal.Keep{From: at[20], Blocks: []uint64{c.Block(at[5])}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Truncate(other, journal.Keep{From: at[20]}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenStore reads a store that version 1 wrote. It must be readable for
// ever; a new version adds its own directory and leaves this one alone.
func TestGoldenStore(t *testing.T) {
	if *update {
		if err := os.RemoveAll(goldenDir); err != nil {
			t.Fatal(err)
		}
		makeGolden(t, vfs.OS(goldenDir))
	}
	disk := vfs.NewMem()
	entries, err := os.ReadDir(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(goldenDir, e.Name()))
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
	}
	r, err := Verify(disk)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	kept := 0
	for e, err := range Dump(disk) {
		if err != nil {
			t.Fatalf("dump: %v", err)
		}
		if e.Shard == 1 {
			kept++
		}
	}
	w := open(t, disk)
	c, got := claim(t, w, 1)
	if c.Epoch != 3 || len(got) != 20 {
		t.Fatalf("epoch %d and %d records, want 3 and 20", c.Epoch, len(got))
	}
	for i, payload := range got {
		if want := goldenRecord(20 + i); payload != want {
			t.Errorf("record %d: %q, want %q", i, payload, want)
		}
	}
	if kept <= len(got) || r.Records < uint64(kept) {
		t.Errorf("dump shows %d records of the shard, replay %d, verify %d in all", kept, len(got), r.Records)
	}
}

// A segment of another store, whole in itself, is found out by its numbers.
func TestForeignSegmentIsFoundOut(t *testing.T) {
	make := func(size int) *vfs.Mem {
		disk := vfs.NewMem()
		w := open(t, disk)
		c, _ := claim(t, w, 1)
		for c.Block(appendOne(t, w, c, fmt.Sprintf("%0*d", size, 1))) < 4 {
			commit(t, w)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return disk
	}
	ours, theirs := make(500), make(300)
	b := [16 << 10]byte{}
	from, err := theirs.Open(segmentName(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.ReadAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	to, err := ours.Open(segmentName(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.WriteAt(b[:], 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(ours); !errors.Is(err, errNumber) {
		t.Errorf("verify: %v, want %v", err, errNumber)
	}
	w := open(t, ours)
	if _, _, err := replayed(w, 1); !errors.Is(err, errNumber) || !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("replay: %v, want %v", err, errNumber)
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
		for c.Block(last) < 9 {
			last = appendOne(t, w, c, "first")
			commit(t, w)
			if err := w.Truncate(c, journal.Keep{From: last}); err != nil {
				t.Error(err)
			}
		}
	}
	if got, err := w.Read(first, nil); !errors.Is(err, journal.ErrGone) {
		t.Errorf("read: %q, %v, want %v", got, err, journal.ErrGone)
	}
}
