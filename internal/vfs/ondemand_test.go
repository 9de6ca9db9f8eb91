// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"sync"
	"testing"
)

// Many more files than descriptors are read and written, by many at once, renamed and removed.
// Few are open at a time, and none is mistaken for another.
func TestMoreFilesThanDescriptors(t *testing.T) {
	const stores, each, most = 6, 20, leastFiles
	files := NewFiles(most)
	disk := OS(t.TempDir())
	if err := disk.MkdirAll("."); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range stores {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), 0))
			dir := Sub(disk, fmt.Sprint(n))
			if err := dir.MkdirAll("."); err != nil {
				t.Error(err)
				return
			}
			fsys := OnDemand(dir, files)
			open := make([]File, each)
			names := make([]string, each)
			want := make([][]byte, each)
			for i := range open {
				names[i] = fmt.Sprint("file", i)
				f, err := fsys.Create(names[i])
				if err != nil {
					t.Error(err)
					return
				}
				open[i], want[i] = f, make([]byte, 64)
				if _, err := f.WriteAt(want[i], 0); err != nil {
					t.Error(err)
				}
			}
			for step := range 600 {
				i := rng.IntN(each)
				switch rng.IntN(5) {
				case 0:
					b, at := []byte(fmt.Sprint(n, " ", step)), rng.IntN(40)
					copy(want[i][at:], b)
					if _, err := open[i].WriteAt(b, int64(at)); err != nil {
						t.Error(err)
					}
					if err := open[i].Sync(); err != nil {
						t.Error(err)
					}
				case 1:
					to := fmt.Sprint("renamed", step)
					if err := fsys.Rename(names[i], to); err != nil {
						t.Error(err)
					}
					names[i] = to
				case 2:
					if err := open[i].Close(); err != nil {
						t.Error(err)
					}
					f, err := fsys.Open(names[i])
					if err != nil {
						t.Error(err)
						return
					}
					open[i] = f
				default:
					b := make([]byte, 64)
					if _, err := open[i].ReadAt(b, 0); err != nil || !bytes.Equal(b, want[i]) {
						t.Errorf("store %d, %s: %q, %v, want %q", n, names[i], b, err, want[i])
						return
					}
				}
			}
			for i, f := range open {
				if err := f.Sync(); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					if err := fsys.Remove(names[i]); err != nil {
						t.Error(err)
					}
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := files.Opened(); n != 0 {
		t.Errorf("%d files are open when all are closed", n)
	}
}

// What is written and not synced stays open, and what is synced makes place.
func TestUnsyncedFilesStayOpen(t *testing.T) {
	mem := NewMem()
	var closed []string
	fsys := OnDemand(watched{mem, &closed}, NewFiles(leastFiles))
	var all []File
	for i := range leastFiles {
		f := create(t, fsys, fmt.Sprint(i), "not synced")
		all = append(all, f)
	}
	last := create(t, fsys, "last", "more")
	if len(closed) > 0 {
		t.Fatalf("%v were closed", closed)
	}
	mustSync(t, last)
	mustSync(t, all[3])
	for i := range 3 {
		mustSync(t, create(t, fsys, fmt.Sprint("more", i), "x"))
	}
	for _, name := range closed {
		if name != "3" && name != "last" && name[0] != 'm' {
			t.Errorf("%s was closed", name)
		}
	}
	if len(closed) == 0 {
		t.Error("nothing was closed")
	}
	if got := contents(t, fsys, "3"); got != "not synced" {
		t.Errorf("it contains %q", got)
	}
}

// watched tells which files are closed.
type watched struct {
	FS
	closed *[]string
}

func (w watched) Create(name string) (File, error) {
	f, err := w.FS.Create(name)
	return watchedFile{f, name, w.closed}, err
}

func (w watched) Open(name string) (File, error) {
	f, err := w.FS.Open(name)
	return watchedFile{f, name, w.closed}, err
}

type watchedFile struct {
	File
	name   string
	closed *[]string
}

func (f watchedFile) Close() error {
	*f.closed = append(*f.closed, f.name)
	return f.File.Close()
}

// A file that was removed is never mistaken for a later one of its name.
func TestRemovedFileIsNotOpenedAgain(t *testing.T) {
	fsys := OnDemand(NewMem(), NewFiles(leastFiles))
	old := create(t, fsys, "a", "old")
	mustSync(t, old)
	for i := range leastFiles { // closes it for the system
		mustSync(t, create(t, fsys, fmt.Sprint(i), "x"))
	}
	if err := fsys.Remove("a"); err != nil {
		t.Fatal(err)
	}
	create(t, fsys, "a", "new")
	if n, err := old.ReadAt(make([]byte, 3), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%d, %v", n, err)
	}
}
