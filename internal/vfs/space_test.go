// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"testing"
)

func TestAllocate(t *testing.T) {
	each(t, func(t *testing.T, fsys FS) {
		f := create(t, fsys, "a", "hello")
		for _, size := range []int64{10_000, 3} { // the second size is smaller than the file
			if err := f.Allocate(size); err != nil {
				t.Fatalf("allocate %d: %v", size, err)
			}
			if got := contents(t, fsys, "a"); got != "hello"+string(make([]byte, 9995)) {
				t.Errorf("after allocating %d: %d bytes, %.10q", size, len(got), got)
			}
		}
		mustSync(t, f)
		if s, err := fsys.Space(); err != nil || s.Total <= 0 || s.Free > s.Total {
			t.Errorf("space: %+v, %v", s, err)
		}
	})
}

// TestWriteZeros is what Allocate does where the system cannot.
func TestWriteZeros(t *testing.T) {
	fsys := OS(t.TempDir())
	f := create(t, fsys, "a", "hello")
	if err := writeZeros(f.(osFile).File, 5, 3<<20+1); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, fsys, "a"); got != "hello"+string(make([]byte, 3<<20-4)) {
		t.Errorf("%d bytes, %.10q", len(got), got)
	}
}

// free checks what a disk has left.
func wantFree(t *testing.T, fsys FS, when string, want int64) {
	t.Helper()
	if s, err := fsys.Space(); err != nil || s.Free != want {
		t.Errorf("%s: %d bytes are free, %v, want %d", when, s.Free, err, want)
	}
}

func TestMemHasASize(t *testing.T) {
	m := NewMem()
	m.SetSize(10 * pageSize)
	f := create(t, m, "a", "hello")
	wantFree(t, m, "one file of one page", 9*pageSize)
	if err := f.Allocate(4 * pageSize); err != nil {
		t.Fatal(err)
	}
	wantFree(t, m, "allocated four pages", 6*pageSize)
	put(t, f, 3*pageSize, "within") // needs nothing new
	m.SetOthers(5 * pageSize)
	wantFree(t, m, "others took five", pageSize)

	if n, err := f.WriteAt(make([]byte, 2*pageSize), 4*pageSize); n != pageSize || !errors.Is(err, ErrNoSpace) {
		t.Errorf("write of two pages into one: %d, %v, want %d, %v", n, err, pageSize, ErrNoSpace)
	}
	put(t, f, 0, "HELLO") // over what is there
	if err := f.Allocate(6 * pageSize); !errors.Is(err, ErrNoSpace) {
		t.Errorf("allocate on a full disk: %v, want %v", err, ErrNoSpace)
	}
	m.SetOthers(0)
	wantFree(t, m, "others left", 5*pageSize)
	if err := f.Truncate(1); err != nil {
		t.Fatal(err)
	}
	wantFree(t, m, "cut to one byte", 9*pageSize)

	create(t, m, "b", "two")
	if err := m.Rename("b", "a"); err != nil {
		t.Fatal(err)
	}
	wantFree(t, m, "replaced by one of one page", 9*pageSize)
	if err := m.Remove("a"); err != nil {
		t.Fatal(err)
	}
	wantFree(t, m, "removed", 10*pageSize)
	put(t, f, 0, "has no name") // an unlinked file uses no space of the disk
	wantFree(t, m, "written without a name", 10*pageSize)
}

// TestCrashBringsBackTheSpaceOfRemovedFiles shows a disk that is fuller after a
// crash than before.
func TestCrashBringsBackTheSpaceOfRemovedFiles(t *testing.T) {
	m := NewMem()
	m.SetSize(10 * pageSize)
	mustSync(t, create(t, m, "a", string(make([]byte, 8*pageSize))))
	syncRoot(t, m)
	if err := m.Remove("a"); err != nil {
		t.Fatal(err)
	}
	wantFree(t, m, "removed", 10*pageSize)
	wantFree(t, m.CrashClone(0), "the removal was not synced", 2*pageSize)
	syncRoot(t, m)
	wantFree(t, m.CrashClone(0), "the removal was synced", 10*pageSize)
}

func TestFaultHasASize(t *testing.T) {
	f := NewFault(NewMem())
	wantFree(t, f, "no limit", endless)
	f.SetFree(1000)
	wantFree(t, f, "a limit", 1000)
	a := create(t, f, "a", "")
	if err := a.Allocate(400); err != nil {
		t.Fatal(err)
	}
	wantFree(t, f, "allocated 400", 600)
	if err := a.Allocate(2000); !errors.Is(err, ErrNoSpace) {
		t.Errorf("allocate beyond: %v, want %v", err, ErrNoSpace)
	}
	wantFree(t, f, "used up", 0)
	if err := f.Remove("a"); err != nil {
		t.Fatal(err)
	}
	wantFree(t, f, "removed", 1000)
	f.SetFull()
	wantFree(t, f, "filled", 0)
}
