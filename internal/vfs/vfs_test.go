// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// each runs a test on every kind of disk.
func each(t *testing.T, test func(*testing.T, FS)) {
	t.Run("OS", func(t *testing.T) { test(t, OS(t.TempDir())) })
	t.Run("Mem", func(t *testing.T) { test(t, NewMem()) })
	t.Run("Fault", func(t *testing.T) { test(t, NewFault(NewMem())) })
	t.Run("OnDemand", func(t *testing.T) { test(t, OnDemand(OS(t.TempDir()), NewFiles(0))) })
	t.Run("Sub", func(t *testing.T) {
		fsys := Sub(NewMem(), "a/b")
		if err := fsys.MkdirAll("."); err != nil {
			t.Fatal(err)
		}
		test(t, fsys)
	})
}

func create(t *testing.T, fsys FS, name, contents string) File {
	t.Helper()
	f, err := fsys.Create(name)
	if err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			t.Errorf("close %s: %v", name, err)
		}
	})
	put(t, f, 0, contents)
	return f
}

func put(t *testing.T, f File, off int64, contents string) {
	t.Helper()
	if n, err := f.WriteAt([]byte(contents), off); n != len(contents) || err != nil {
		t.Fatalf("write: %d, %v", n, err)
	}
}

func mustSync(t *testing.T, f File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatalf("sync: %v", err)
	}
}

func syncRoot(t *testing.T, fsys FS) {
	t.Helper()
	if err := fsys.SyncDir("."); err != nil {
		t.Fatalf("sync directory: %v", err)
	}
}

// contents returns a file's bytes, or what is wrong with it.
func contents(t *testing.T, fsys FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "does not exist"
		}
		t.Fatalf("open %s: %v", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); int64(n) != size || err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("read %s: %d of %d, %v", name, n, size, err)
	}
	return string(b)
}

func TestFiles(t *testing.T) {
	each(t, func(t *testing.T, fsys FS) {
		f := create(t, fsys, "a", "hello")
		put(t, f, 5000, "far")
		put(t, f, 1, "E")
		want := "hEllo" + string(make([]byte, 4995)) + "far"
		if got := contents(t, fsys, "a"); got != want {
			t.Errorf("after writes: %d bytes, %.10q, want %d", len(got), got, len(want))
		}
		if err := f.Truncate(3); err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(6); err != nil {
			t.Fatal(err)
		}
		mustSync(t, f)
		if got := contents(t, fsys, "a"); got != "hEl\x00\x00\x00" {
			t.Errorf("after truncating to 3 and to 6: %q", got)
		}
		if n, err := f.ReadAt(make([]byte, 10), 3); n != 3 || !errors.Is(err, io.EOF) {
			t.Errorf("read past the end: %d, %v, want 3, %v", n, err, io.EOF)
		}
		if _, err := fsys.Create("a"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create again: %v, want %v", err, fs.ErrExist)
		}
		if _, err := fsys.Open("b"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open what is not there: %v, want %v", err, fs.ErrNotExist)
		}
	})
}

func TestDirectories(t *testing.T) {
	each(t, func(t *testing.T, fsys FS) {
		if err := fsys.MkdirAll("d/e"); err != nil {
			t.Fatal(err)
		}
		create(t, fsys, "d/one", "1")
		create(t, fsys, "d/two", "2")
		if err := fsys.Rename("d/one", "d/two"); err != nil {
			t.Fatal(err)
		}
		if got := contents(t, fsys, "d/two"); got != "1" {
			t.Errorf("after renaming over it: %q, want %q", got, "1")
		}
		if got, err := fsys.List("d"); err != nil || !slices.Equal(got, []string{"e", "two"}) {
			t.Errorf("list: %v, %v", got, err)
		}
		if err := fsys.Remove("d/two"); err != nil {
			t.Fatal(err)
		}
		if err := fsys.Remove("d/two"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("remove again: %v, want %v", err, fs.ErrNotExist)
		}
		if err := fsys.SyncDir("d"); err != nil {
			t.Errorf("sync directory: %v", err)
		}
	})
}

func TestNamesStayWithin(t *testing.T) {
	each(t, func(t *testing.T, fsys FS) {
		for _, name := range []string{"../a", "/a", "x/../../a"} {
			if _, err := fsys.Create(name); err == nil {
				t.Errorf("create %q: no error", name)
			}
			if err := fsys.Remove(name); err == nil {
				t.Errorf("remove %q: no error", name)
			}
		}
	})
	outside, inside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(inside, "link")); err != nil {
		t.Skip(err)
	}
	if _, err := OS(inside).Create("link/a"); err == nil {
		t.Error("create through a link that leads out: no error")
	}
}

func TestLock(t *testing.T) {
	each(t, func(t *testing.T, fsys FS) {
		if _, ok := fsys.(*onDemand); ok {
			t.Skip("it holds no lock")
		}
		l, err := fsys.Lock("LOCK")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fsys.Lock("LOCK"); !errors.Is(err, ErrLocked) {
			t.Errorf("lock again: %v, want %v", err, ErrLocked)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, err = fsys.Lock("LOCK")
		if err != nil {
			t.Fatalf("lock after release: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCrashKeepsWhatWasSynced(t *testing.T) {
	m := NewMem()
	f := create(t, m, "a", "synced")
	mustSync(t, f)
	syncRoot(t, m)
	for seed := range uint64(100) {
		if got := contents(t, m.CrashClone(seed), "a"); got != "synced" {
			t.Fatalf("seed %d: %q", seed, got)
		}
	}
	if got := contents(t, m, "a"); got != "synced" {
		t.Errorf("the original changed: %q", got)
	}
}

// What is not synced can be lost, kept, torn and reordered: over many seeds each
// of these is seen, and nothing that no disk would do.
func TestCrashLosesWhatWasNot(t *testing.T) {
	m := NewMem()
	old, one, two := bytes.Repeat([]byte{'o'}, 4*sectorSize), bytes.Repeat([]byte{'1'}, 4*sectorSize), bytes.Repeat([]byte{'2'}, sectorSize)
	f := create(t, m, "a", string(old))
	mustSync(t, f)
	syncRoot(t, m)
	put(t, f, 0, string(one))
	put(t, f, int64(len(old)), string(two))

	seen := make(map[string]bool)
	for seed := range uint64(400) {
		got := contents(t, m.CrashClone(seed), "a")
		if again := contents(t, m.CrashClone(seed), "a"); again != got {
			t.Fatalf("seed %d gives two results", seed)
		}
		var shape strings.Builder
		for at := 0; at < len(got); at += sectorSize {
			sector := got[at:min(at+sectorSize, len(got))]
			if len(sector) != sectorSize || sector != string(bytes.Repeat([]byte{sector[0]}, sectorSize)) {
				t.Fatalf("seed %d: a sector is torn", seed)
			}
			shape.WriteString(sector[:1])
		}
		seen[shape.String()] = true
	}
	for shape, what := range map[string]string{
		"oooo": "nothing kept", "11112": "all kept", "1111": "the later write lost", "oooo2": "the earlier write lost", "11oo": "the earlier write torn",
	} {
		if !seen[shape] {
			t.Errorf("never seen: %s (%s)", what, shape)
		}
	}
}

func TestCrashLosesNamesThatWereNotSynced(t *testing.T) {
	m := NewMem()
	mustSync(t, create(t, m, "old", "1"))
	syncRoot(t, m)
	mustSync(t, create(t, m, "new", "2"))
	if err := m.Rename("new", "old"); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for seed := range uint64(100) {
		c := m.CrashClone(seed)
		seen[contents(t, c, "old")+", new "+contents(t, c, "new")] = true
	}
	for _, want := range []string{"1, new does not exist", "1, new 2", "2, new does not exist"} {
		if !seen[want] {
			t.Errorf("never seen: old is %s", want)
		}
		delete(seen, want)
	}
	for got := range seen {
		t.Errorf("impossible: old is %s", got)
	}
	syncRoot(t, m)
	if got := contents(t, m.CrashClone(0), "old"); got != "2" {
		t.Errorf("after syncing the directory: %q, want %q", got, "2")
	}
}

func TestCrashCloneIsIndependent(t *testing.T) {
	m := NewMem()
	f := create(t, m, "a", "before")
	mustSync(t, f)
	syncRoot(t, m)
	l, err := m.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := m.CrashClone(0)
	put(t, f, 0, "after!")
	if got := contents(t, c, "a"); got != "before" {
		t.Errorf("the clone follows the original: %q", got)
	}
	if _, err := c.Lock("LOCK"); err != nil {
		t.Errorf("the lock of a dead process: %v", err)
	}
}

var errTest = errors.New("test")

func TestFaults(t *testing.T) {
	f := NewFault(NewMem())
	file := create(t, f, "a", "hello")
	f.FailNth(OpSync, 2, errTest)
	mustSync(t, file)
	if err := file.Sync(); !errors.Is(err, errTest) {
		t.Errorf("second sync: %v, want %v", err, errTest)
	}
	mustSync(t, file)
	if got := f.Calls(OpSync); got != 3 {
		t.Errorf("%d syncs counted, want 3", got)
	}

	f.SetFree(4)
	if n, err := file.WriteAt([]byte("LOWORLD"), 3); n != 6 || !errors.Is(err, ErrNoSpace) {
		t.Errorf("write of 5 new bytes into 4: %d, %v, want 6, %v", n, err, ErrNoSpace)
	}
	put(t, file, 0, "HEL") // over bytes that are there: needs no space
	if got := contents(t, f, "a"); got != "HELLOWORL" {
		t.Errorf("got %q", got)
	}
	if err := f.Remove("a"); err != nil {
		t.Fatal(err)
	}
	create(t, f, "b", "ninebytes")

	f.SetFree(-1)
	f.SetFull()
	b, err := f.Open("b")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := b.WriteAt([]byte("x"), 9); !errors.Is(err, ErrNoSpace) {
		t.Errorf("write to a full disk: %v, want %v", err, ErrNoSpace)
	}
	f.ClearFull()
	put(t, b, 9, "x")

	if err := f.FlipBit("b", 8); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, f, "b"); got != "nhnebytesx" {
		t.Errorf("after flipping the lowest bit of the second byte: %q", got)
	}
}

// A8: a kernel that could not write a page counts it as clean, so that the next
// sync succeeds and does nothing.
func TestFailedSyncIsNotRepairedByTheNext(t *testing.T) {
	mem := NewMem()
	fault := NewFault(mem)
	f := create(t, fault, "a", "one")
	mustSync(t, f)
	syncRoot(t, fault)
	put(t, f, 0, "two")
	put(t, f, pageSize, "far")
	fault.FailNth(OpSync, 1, io.ErrUnexpectedEOF)
	if err := f.Sync(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("sync: %v", err)
	}
	want := "two" + string(make([]byte, pageSize-3)) + "far"
	if got := contents(t, mem, "a"); got != want {
		t.Errorf("after the failed sync: %q", got)
	}
	mustSync(t, f)
	put(t, f, pageSize+1, "A")
	mustSync(t, f)
	for seed := range uint64(crashWays) {
		lost := "one" + string(make([]byte, pageSize-3)) + "fAr"
		if got := contents(t, mem.CrashClone(seed), "a"); got != lost {
			t.Errorf("seed %d: after a power cut: %q, want the page that was not written again to be lost", seed, got)
		}
	}
	put(t, f, 0, "two")
	mustSync(t, f)
	if got, want := contents(t, mem.CrashClone(0), "a"), "two"; got[:3] != want {
		t.Errorf("written again and synced, after a power cut: %q", got[:3])
	}
}

func TestTruncatedPagesAreZerosAfterACrash(t *testing.T) {
	mem := NewMem()
	f := create(t, mem, "a", string(bytes.Repeat([]byte("x"), 3*pageSize)))
	mustSync(t, f)
	syncRoot(t, mem)
	for _, size := range []int64{10, 3 * pageSize} {
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	mustSync(t, f)
	want := "xxxxxxxxxx" + string(make([]byte, 3*pageSize-10))
	if got := contents(t, mem.CrashClone(0), "a"); got != want {
		t.Errorf("%d bytes, want %d, or others", len(got), len(want))
	}
}
