// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// disk is the real file system below a directory.
type disk struct {
	root   string
	opened openRoot
}

// OS returns the real disk below the directory root, which need not exist yet:
// MkdirAll(".") makes it. While it is locked, the directory stays open and some
// descriptors are kept in reserve, so that a store continues to work in a
// process that has run out of them.
func OS(root string) FS { return &disk{root: root} }

// within runs fn inside the root, which symbolic links cannot leave either. When
// there is no descriptor left fn must have done nothing, and runs again with one
// from the reserve.
func (d *disk) within(fn func(*os.Root) error) error {
	for {
		err := d.try(fn)
		if err == nil || !isTooManyFiles(err) {
			d.opened.refill()
			return noSpace(err)
		}
		if !d.opened.freeReserve() {
			return fmt.Errorf("%w: %w", ErrTooManyFiles, err)
		}
	}
}

func (d *disk) try(fn func(*os.Root) error) error {
	if root := d.opened.directory(); root != nil {
		return fn(root)
	}
	root, err := os.OpenRoot(d.root)
	if err != nil {
		return err
	}
	defer root.Close() // opened for reading only: nothing to lose
	return fn(root)
}

func (d *disk) open(name string, flag int) (File, error) {
	var f *os.File
	err := d.within(func(root *os.Root) (err error) {
		f, err = root.OpenFile(filepath.FromSlash(name), flag, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	return osFile{f, &d.opened}, nil
}

func (d *disk) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *disk) Open(name string) (File, error) { return d.open(name, os.O_RDWR) }

func (d *disk) Rename(oldName, newName string) error {
	return d.within(func(root *os.Root) error {
		return root.Rename(filepath.FromSlash(oldName), filepath.FromSlash(newName))
	})
}

func (d *disk) Remove(name string) error {
	return d.within(func(root *os.Root) error { return root.Remove(filepath.FromSlash(name)) })
}

func (d *disk) List(dir string) ([]string, error) {
	var names []string
	err := d.within(func(root *os.Root) error {
		entries, err := fs.ReadDir(root.FS(), dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func (d *disk) MkdirAll(dir string) error {
	if dir == "." {
		return noSpace(makeDirs(filepath.Clean(d.root)))
	}
	return d.within(func(root *os.Root) error { return root.MkdirAll(filepath.FromSlash(dir), 0o700) })
}

// makeDirs makes a directory, and those above it that are missing, so that they
// survive a power cut: what is synced within them would be lost with them.
func makeDirs(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(name)
	if parent != name {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		return err
	}
	f, err := os.Open(parent)
	if errors.Is(err, fs.ErrPermission) {
		return nil // the directory may be writable and not readable
	}
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading only
	return syncDir(f)
}

func (d *disk) SyncDir(dir string) error {
	return d.within(func(root *os.Root) error {
		if f := d.opened.self(); f != nil && dir == "." {
			return syncDir(f)
		}
		f, err := root.Open(filepath.FromSlash(dir))
		if err != nil {
			return err
		}
		defer f.Close() // opened for reading only
		return syncDir(f)
	})
}

func (d *disk) Lock(name string) (io.Closer, error) {
	f, err := d.open(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f.(osFile).File); err != nil {
		f.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.root, name), err)
	}
	if err := d.opened.take(d.root); err != nil {
		f.Close()
		return nil, err
	}
	return &diskLock{f, &d.opened}, nil
}

// diskLock is a taken lock with the open directory.
type diskLock struct {
	File
	opened *openRoot
}

func (l *diskLock) Close() error {
	err := l.File.Close()
	if errors.Is(err, fs.ErrClosed) {
		return err
	}
	return errors.Join(err, l.opened.release())
}

func (d *disk) Space() (Space, error) {
	s, err := diskSpace(d.root)
	if err != nil {
		return Space{}, fmt.Errorf("free space of %s: %w", d.root, err)
	}
	return s, nil
}

// osFile is a file of the real disk.
type osFile struct {
	*os.File
	opened *openRoot
}

func (f osFile) Close() error {
	err := f.File.Close()
	f.opened.refill() // before the rest of the process uses the descriptor
	return err
}

func (f osFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(p, off)
	return n, noSpace(err)
}

func (f osFile) Sync() error { return noSpace(syncData(f.File)) }

func (f osFile) Truncate(size int64) error { return noSpace(f.File.Truncate(size)) }

func (f osFile) Allocate(size int64) error {
	old, err := f.Size()
	if err != nil || size <= 0 {
		return err
	}
	err = allocate(f.File, 0, size) // not only the end: a copy of a file may be sparse
	if errors.Is(err, errors.ErrUnsupported) {
		err = writeZeros(f.File, old, size)
	}
	return noSpace(err)
}

// writeZeros allocates blocks for [from, to) by writing zeros, where the system
// has no faster way.
func writeZeros(f *os.File, from, to int64) error {
	b := make([]byte, min(1<<20, max(0, to-from)))
	for from < to {
		n, err := f.WriteAt(b[:min(int64(len(b)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// noSpace turns the different errors of systems for a full disk into
// ErrNoSpace.
func noSpace(err error) error {
	if err != nil && isNoSpace(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}
