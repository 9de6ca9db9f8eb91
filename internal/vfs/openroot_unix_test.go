// SPDX-License-Identifier: Apache-2.0

//go:build unix

package vfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// hogDescriptors lowers the limit of the process and opens every descriptor
// that is left, as many connections would. It returns a function that closes
// some of them.
func hogDescriptors(t *testing.T) (giveBack func(n int)) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	low := was
	low.Cur = min(was.Cur, 256)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	var hogged []*os.File
	giveBack = func(n int) {
		for _, f := range hogged[:n] {
			f.Close()
		}
		hogged = hogged[n:]
	}
	t.Cleanup(func() {
		giveBack(len(hogged))
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
			t.Error(err)
		}
	})
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return giveBack
		}
		hogged = append(hogged, f)
	}
}

// A11: a locked disk can create, rename, sync and remove files although
// connections use every descriptor of the process.
func TestLockedDiskWorksWithoutFreeDescriptors(t *testing.T) {
	fsys := OS(t.TempDir())
	lock, err := fsys.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	giveBack := hogDescriptors(t)
	var files []File
	for i := range reserved {
		name := fmt.Sprint("file", i)
		f, err := fsys.Create(name)
		if err != nil {
			t.Fatalf("create number %d: %v", i, err)
		}
		files = append(files, f)
		if err := errors.Join(fsys.Rename(name, name+".seg"), fsys.SyncDir(".")); err != nil {
			t.Fatalf("rename and sync: %v", err)
		}
	}
	if _, err := fsys.Create("one too many"); !errors.Is(err, ErrTooManyFiles) {
		t.Errorf("create without a reserve: %v, want %v", err, ErrTooManyFiles)
	}
	if err := errors.Join(fsys.Remove("file0.seg"), fsys.SyncDir(".")); err != nil {
		t.Errorf("remove without a reserve: %v", err)
	}

	// The descriptor of a closed file goes to the reserve, not to the connections.
	if err := files[0].Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(os.DevNull); err == nil {
		f.Close()
		t.Error("a descriptor that the disk closed was not put into its reserve")
	}
	if files[0], err = fsys.Create("again"); err != nil {
		t.Errorf("create after a close: %v", err)
	}

	// When the connections are closed the reserve fills again.
	giveBack(reserved)
	if err := fsys.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	if got := len(fsys.(*disk).opened.reserve); got != reserved {
		t.Errorf("%d descriptors in reserve, want %d", got, reserved)
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}

// A disk that is not locked keeps nothing open.
func TestUnlockedDiskHasNothingOpen(t *testing.T) {
	fsys := OS(t.TempDir())
	lock, err := fsys.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	f := create(t, fsys, "a", "one")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	h := &fsys.(*disk).opened
	if h.root != nil || h.dir != nil || len(h.reserve) > 0 {
		t.Errorf("open after the lock was released: %v, %v, %d in reserve", h.root, h.dir, len(h.reserve))
	}
}
