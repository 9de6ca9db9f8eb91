// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file system that cannot sync a directory, as that of /proc, is used without.
func TestDirectoryThatCannotBeSynced(t *testing.T) {
	f, err := os.Open("/proc")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	if f.Sync() == nil {
		t.Skip("it can be synced here")
	}
	if err := syncDir(f); err != nil {
		t.Errorf("sync: %v", err)
	}
}

// The root is created with the directories above it. A file of that name is an
// error.
func TestRootIsMade(t *testing.T) {
	dir := t.TempDir()
	for _, root := range []string{filepath.Join(dir, "a", "b", "c"), filepath.Join(dir, "a", "d") + "/", dir} {
		if err := OS(root).MkdirAll("."); err != nil {
			t.Errorf("%s: %v", root, err)
		}
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			t.Errorf("%s: %v, %v", root, info, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{file, filepath.Join(file, "x")} {
		if err := OS(root).MkdirAll("."); err == nil {
			t.Errorf("%s: created, although a file has that name", root)
		}
	}
}

// A file that was copied may be as long as it should be and have no blocks.
func TestAllocateFillsHoles(t *testing.T) {
	fsys := OS(t.TempDir())
	f := create(t, fsys, "a", "hello")
	const size = 1 << 20
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	file := f.(osFile).File
	if err := allocate(file, 0, 4096); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err := f.Allocate(size); err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if got := st.Blocks * 512; got < size || st.Size != size {
		t.Errorf("the file has %d bytes and blocks for %d, want %d", st.Size, got, size)
	}
	if got := contents(t, fsys, "a"); got[:5] != "hello" {
		t.Errorf("it contains %.10q", got)
	}
}
