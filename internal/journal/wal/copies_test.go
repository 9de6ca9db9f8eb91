// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/vfs"
)

// A7: the manifest is written where the last one was, so that a disk which other
// processes have filled to the last byte does not prevent truncation. If it has
// outgrown its files a spare is given up for it.
func TestManifestNeedsNoFreeSpace(t *testing.T) {
	mem := vfs.NewMem()
	fault := vfs.NewFault(mem)
	w, err := Open(fault, Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 1)
	at := appendOne(t, w, c, "first")
	commit(t, w)
	if got := w.Stats(); got.Spares == 0 {
		t.Fatalf("%+v: there is no spare to be given up", got)
	}

	fault.SetFull() // and what is freed is taken by others at once
	for range 100 {
		if err := w.Truncate(ctx, c, journal.Retain{From: at}); err != nil {
			t.Fatalf("truncate on a full disk: %v", err)
		}
	}
	fault.ClearFull()
	fault.SetFree(0)
	if _, _, err := w.Claim(ctx, numbersBelow(500)...); err != nil {
		t.Fatalf("claim of 500 shards: %v, want a spare to be given up for its manifest", err)
	}
	w.mu.Lock()
	spares := len(w.pool.spares)
	w.mu.Unlock()
	if spares > 0 {
		t.Errorf("%d spares are left, want none", spares)
	}

	fault.SetFree(0)
	if _, _, err := w.Claim(ctx, numbersBelow(5000)...); !errors.Is(err, journal.ErrFull) {
		t.Fatalf("claim of 5000 shards on a full disk: %v, want %v", err, journal.ErrFull)
	}
	if got := open(t, mem.CrashClone(0)).Shards(); got != 500 {
		t.Errorf("after a crash: %d shards, want 500", got)
	}
	fault.SetFree(-1)
	if _, _, err := w.Claim(ctx, numbersBelow(5000)...); err != nil {
		t.Errorf("claim of 5000 shards when there is space: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// torn is a disk that, once, writes only half of what a named file is given, and
// then does something else.
type torn struct {
	vfs.FS
	name string
	then func() error
}

type tornFile struct {
	vfs.File
	fs   *torn
	name string
}

func (d *torn) Open(name string) (vfs.File, error) {
	f, err := d.FS.Open(name)
	return tornFile{f, d, name}, err
}

func (f tornFile) WriteAt(b []byte, off int64) (int, error) {
	if f.name != f.fs.name || f.fs.then == nil {
		return f.File.WriteAt(b, off)
	}
	then := f.fs.then
	f.fs.then = nil
	n, err := f.File.WriteAt(b[:len(b)/2], off)
	if err != nil {
		return n, err
	}
	if err := f.Sync(); err != nil {
		return n, err
	}
	if err := then(); err != nil {
		return n, err
	}
	return f.File.WriteAt(b, off)
}

// Where overwriting takes space, the second file may be left half written. It is
// the first to be written again: were it the other, and the power failed, neither
// would be whole.
func TestHalfWrittenManifestIsWrittenFirst(t *testing.T) {
	mem := vfs.NewMem()
	disk := &torn{FS: mem}
	w := open(t, disk)
	if _, _, err := w.Claim(ctx, numbersBelow(9)...); err != nil {
		t.Fatal(err)
	}
	c, _ := claim(t, w, 9) // comes last in the manifest
	at := [2]journal.Position{appendOne(t, w, c, "one"), appendOne(t, w, c, "two")}
	commit(t, w)
	var killed *vfs.Mem
	disk.name, disk.then = format.ManifestCopy, func() error {
		disk.name, disk.then = format.ManifestName, func() error {
			killed = mem.CrashClone(0)
			return nil
		}
		return fmt.Errorf("copy on write: %w", vfs.ErrNoSpace)
	}
	for w.giveUpSpare() {
		continue
	}
	if err := w.Truncate(ctx, c, journal.Retain{From: at[0]}); !errors.Is(err, journal.ErrFull) {
		t.Fatalf("truncate: %v, want %v", err, journal.ErrFull)
	}
	if err := w.Truncate(ctx, c, journal.Retain{From: at[1]}); err != nil {
		t.Fatalf("truncate again: %v", err)
	}
	if killed == nil {
		t.Fatal("the manifest was not written again")
	}
	if _, got := claim(t, open(t, killed), 9); len(got) == 0 {
		t.Error("no record is left")
	}
}

// To note how far the log is synced is no reason to give up the reserve.
func TestMarkDoesNotTakeTheReserve(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	w := open(t, fault)
	c, _ := claim(t, w, 1)
	w.Reserve(c, journal.Reservation{Snapshots: 50_000})
	commit(t, w)
	fault.Before(func(op vfs.Op, name string) error {
		if op == vfs.OpWrite && (name == format.ManifestName || name == format.ManifestCopy) {
			return fmt.Errorf("copy on write: %w", vfs.ErrNoSpace)
		}
		return nil
	})
	appendOne(t, w, c, "one")
	before := w.Stats().Spares
	if err := w.commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.writeMark(); !errors.Is(err, journal.ErrFull) {
		t.Errorf("mark: %v, want %v", err, journal.ErrFull)
	}
	if got := w.Stats().Spares; got < before {
		t.Errorf("%d spares, and %d after a mark", before, got)
	}
	fault.Before(nil)
	if _, err := w.writeMark(); err != nil {
		t.Errorf("mark: %v", err)
	}
}
