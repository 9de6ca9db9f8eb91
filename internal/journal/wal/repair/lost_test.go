// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/triagemq/triagemq/internal/journal"
	"github.com/triagemq/triagemq/internal/journal/wal"
	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/journal/wal/store"
	"github.com/triagemq/triagemq/internal/vfs"
)

// makeKilled makes a store like makeStored, of a process that was killed, with
// records in its last segment.
func makeKilled(t testing.TB) stored {
	t.Helper()
	s := stored{disk: vfs.NewMem(), records: make(map[journal.Position]string)}
	w, err := wal.Open(s.disk, wal.Options{SegmentSize: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	c := claim(t, w, 1)
	other := claim(t, w, 2)
	var at journal.Position
	fill := func(upTo uint64) {
		for i := 0; c.Segment(at) < upTo; i++ {
			at = appendOne(t, w, c, numbered(i*37))
			s.records[at] = numbered(i * 37)
			s.order = append(s.order, at)
			appendOne(t, w, other, "of another shard")
			commit(t, w)
		}
	}
	fill(4)
	from := at
	if err := w.Truncate(ctx, c, journal.Retain{From: from, Segments: []uint64{2}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Truncate(ctx, other, journal.Retain{From: from}); err != nil {
		t.Fatal(err)
	}
	fill(7)
	maps.DeleteFunc(s.records, func(at journal.Position, _ string) bool { return at < from && c.Segment(at) != 2 })
	s.order = slices.DeleteFunc(s.order, func(at journal.Position) bool { return at < from })
	s.disk = s.disk.CrashClone(0)
	if _, err := Verify(s.disk); err != nil {
		t.Fatalf("verify: %v", err)
	}
	return s
}

// wipe overwrites the whole file with zeros.
func wipe(t *testing.T, disk *vfs.Mem, name string) {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// tearManifest leaves the first half of a file and garbage behind it.
func tearManifest(t *testing.T, disk *vfs.Mem, name string) {
	t.Helper()
	f, err := disk.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("garbage of another time"), 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

var waysToLose = map[string]func(*testing.T, *vfs.Mem, string){
	"removed": remove,
	"zeroed":  wipe,
	"torn":    tearManifest,
	"emptied": func(t *testing.T, d *vfs.Mem, name string) { cut(t, d, name, 0) },
}

// A13: either file of the manifest is enough, whatever happened to the other, and
// the next start makes it whole again.
func TestOneManifestIsEnough(t *testing.T) {
	for what, made := range map[string]stored{"closed": makeStored(t), "killed": makeKilled(t)} {
		for way, lose := range waysToLose {
			for _, name := range store.CopyNames {
				t.Run(fmt.Sprint(what, " ", way, " ", name), func(t *testing.T) {
					disk := made.disk.CrashClone(0)
					lose(t, disk, name)
					r, err := Verify(disk)
					if err != nil || len(r.Notes) != 1 {
						t.Errorf("verify: %v, %v, want a note and no damage", err, r.Notes)
					}
					w, err := wal.Open(disk, wal.Options{})
					if err != nil {
						t.Fatalf("open: %v", err)
					}
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
					if r, err := Verify(disk); err != nil || len(r.Notes) > 0 {
						t.Errorf("verify after a start: %v, %v", err, r.Notes)
					}
					made.wantAll(t, disk)
				})
			}
		}
	}
}

// A13: with both files of the manifest lost the store does not open, as what
// happened to it is not known; repair finds the manifest in the log, and nothing is
// lost.
func TestLostManifestIsFoundInTheLog(t *testing.T) {
	for what, made := range map[string]stored{"closed": makeStored(t), "killed": makeKilled(t)} {
		for way, lose := range waysToLose {
			t.Run(what+" "+way, func(t *testing.T) {
				disk := made.disk.CrashClone(0)
				for _, name := range store.CopyNames {
					lose(t, disk, name)
				}
				if _, err := wal.Open(disk, wal.Options{}); !errors.Is(err, journal.ErrCorrupt) {
					t.Fatalf("open: %v, want %v", err, journal.ErrCorrupt)
				}
				if _, err := Verify(disk); !errors.Is(err, journal.ErrCorrupt) {
					t.Errorf("verify: %v, want %v", err, journal.ErrCorrupt)
				}
				done, err := Repair(disk, DropDamaged)
				if err != nil {
					t.Fatalf("repair: %v", err)
				}
				if len(done.Dropped) > 0 || len(done.Restored) != 1 {
					t.Errorf("repair: %+v, want nothing dropped", done)
				}
				if _, err := Verify(disk); err != nil {
					t.Errorf("verify after the repair: %v", err)
				}
				made.wantAll(t, disk)
			})
		}
	}
}

// A13: segments that are lost at the end of the log are found to be lost, although
// nothing behind them says so but empty segments, or nothing at all.
func TestLostEndOfTheLogIsDamage(t *testing.T) {
	fresh := func() *vfs.Mem {
		disk := vfs.NewMem()
		w, err := wal.Open(disk, wal.Options{SegmentSize: 16 << 10})
		if err != nil {
			t.Fatal(err)
		}
		c := claim(t, w, 1)
		appendOne(t, w, c, "the only one")
		commit(t, w)
		return disk.CrashClone(0)
	}
	killed := makeKilled(t).disk
	names, err := killed.List(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(names)
	for _, tt := range []struct {
		what string
		disk *vfs.Mem
		lost []uint64
	}{
		{"the last with records", killed, []uint64{7}},
		{"the last with records and one that was ready", killed, []uint64{7, 8}},
		{"all from the last with records on", killed, []uint64{7, 8, 9}},
		{"the last two with records", killed, []uint64{6, 7}},
		{"the only one", fresh(), []uint64{1}},
		{"the only one, and those that were ready", fresh(), []uint64{1, 2, 3}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			disk := tt.disk.CrashClone(0)
			for _, n := range tt.lost {
				remove(t, disk, store.SegmentName(n))
			}
			_, err := wal.Open(disk, wal.Options{})
			damage, ok := errors.AsType[*format.DamageError](err)
			if !ok || damage.File != store.SegmentName(tt.lost[0]) {
				t.Errorf("open: %v, want %s to be missed", err, store.SegmentName(tt.lost[0]))
			}
			if _, err := Verify(disk); !errors.Is(err, journal.ErrCorrupt) {
				t.Errorf("verify: %v, want %v", err, journal.ErrCorrupt)
			}
			done, err := Repair(disk, DropDamaged)
			if err != nil || len(done.Dropped) == 0 {
				t.Fatalf("repair: %+v, %v", done, err)
			}
			if _, err := Verify(disk); err != nil {
				t.Errorf("verify after the repair: %v", err)
			}
			w := open(t, disk)
			c := claim(t, w, 1)
			appendOne(t, w, c, "goes on")
			commit(t, w)
		})
	}
}

// A segment that was ready and empty is no loss as long as the one before it has
// not been finished.
func TestLostEmptySegmentIsNoDamage(t *testing.T) {
	killed := makeKilled(t)
	for _, lost := range [][]uint64{{8}, {9}, {8, 9}} {
		disk := killed.disk.CrashClone(0)
		for _, n := range lost {
			remove(t, disk, store.SegmentName(n))
		}
		if _, err := Verify(disk); err != nil {
			t.Errorf("without %v: verify: %v", lost, err)
		}
		killed.wantAll(t, disk)
	}
}

// A manifest of a later version is not damage, and nothing that repair may touch.
func TestManifestOfALaterVersion(t *testing.T) {
	s := makeStored(t)
	found, err := store.ReadCopies(s.disk)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := found.Best()
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	later := append([]byte(nil), b...)
	later[len("triagemq-journal ")] = '3'
	if _, err := format.DecodeManifest(format.ManifestName, later); !errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("with another digit: %v, want %v", err, journal.ErrCorrupt)
	}
	_, body, _ := bytes.Cut(b, []byte{'\n'})
	later = fmt.Appendf(nil, format.ManifestFormat, 3, format.SumManifest(3, body), len(body))
	later = append(later, body...)
	if _, err := format.DecodeManifest(format.ManifestName, later); err == nil || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("with the checksum of version 3: %v, want another error than %v", err, journal.ErrCorrupt)
	}
	for _, name := range store.CopyNames {
		if err := store.Install(s.disk, name, later); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Repair(s.disk, DropDamaged); err == nil || errors.Is(err, journal.ErrCorrupt) {
		t.Errorf("repair: %v, want it to leave the store alone", err)
	}
}
