// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"fmt"
	"io"
	"sync"
)

// Op names a call to the disk.
type Op string

// The calls that a Fault sees.
const (
	OpCreate   Op = "create"
	OpOpen     Op = "open"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpList     Op = "list"
	OpMkdir    Op = "mkdir"
	OpSyncDir  Op = "syncdir"
	OpLock     Op = "lock"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpSync     Op = "sync"
	OpTruncate Op = "truncate"
	OpAllocate Op = "allocate"
)

// Fault is a disk that fails on demand. It wraps another.
type Fault struct {
	fs FS

	mu     sync.Mutex
	before func(Op, string) error // guarded by mu
	full   bool                   // guarded by mu
	free   int64                  // guarded by mu: bytes left; negative is no limit
	count  map[Op]int             // guarded by mu
}

// NewFault returns fs with no faults yet.
func NewFault(fs FS) *Fault { return &Fault{fs: fs, free: -1, count: make(map[Op]int)} }

// Before calls fn before every call, with the name of its file. If fn returns
// an error, the call is not done and returns the error. A nil fn ends that. A
// sync of a Mem's file that fails this way loses the unsynced bytes: see
// failSync.
func (f *Fault) Before(fn func(op Op, name string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = fn
}

// FailNth makes the nth call of op from now on, counted from 1, fail with err.
// It replaces an earlier Before or FailNth.
func (f *Fault) FailNth(op Op, n int, err error) {
	f.Before(func(got Op, _ string) error {
		if got == op {
			if n--; n == 0 { // calls of Before's function are serialised
				return err
			}
		}
		return nil
	})
}

// SetFree makes the disk full after n more bytes; removing a file frees its
// bytes. The write that does not fit is done in part, as on real disks. A
// negative n removes the limit.
func (f *Fault) SetFree(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = n
}

// SetFull makes the disk reject every new byte until ClearFull, even if files
// are removed.
func (f *Fault) SetFull() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = true
}

// ClearFull ends what Fill began.
func (f *Fault) ClearFull() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = false
}

// Calls returns how often op was called.
func (f *Fault) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count[op]
}

// FlipBit inverts one bit of a file, counted from its start, and makes the
// change durable.
func (f *Fault) FlipBit(name string, bit int64) error {
	file, err := f.fs.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() // synced below
	var b [1]byte
	if _, err := file.ReadAt(b[:], bit/8); err != nil {
		return fmt.Errorf("flip bit %d of %s: %w", bit, name, err)
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := file.WriteAt(b[:], bit/8); err != nil {
		return err
	}
	return file.Sync()
}

// call counts op and asks Before's function. The lock is held while fn runs, so
// that a test's counter in it needs none.
func (f *Fault) call(op Op, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[op]++
	if f.before == nil {
		return nil
	}
	return f.before(op, name)
}

// take uses up to n bytes of the free space and returns how many there were.
func (f *Fault) take(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.full:
		return 0
	case f.free < 0:
		return n
	}
	n = min(n, f.free)
	f.free -= n
	return n
}

func (f *Fault) give(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.free >= 0 {
		f.free += n
	}
}

// Create implements FS.
func (f *Fault) Create(name string) (File, error) { return f.open(OpCreate, name, f.fs.Create) }

// Open implements FS.
func (f *Fault) Open(name string) (File, error) { return f.open(OpOpen, name, f.fs.Open) }

func (f *Fault) open(op Op, name string, open func(string) (File, error)) (File, error) {
	if err := f.call(op, name); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f, name}, nil
}

// Rename implements FS.
func (f *Fault) Rename(oldName, newName string) error {
	if err := f.call(OpRename, oldName); err != nil {
		return err
	}
	size := f.size(newName)
	if err := f.fs.Rename(oldName, newName); err != nil {
		return err
	}
	f.give(size)
	return nil
}

// Remove implements FS.
func (f *Fault) Remove(name string) error {
	if err := f.call(OpRemove, name); err != nil {
		return err
	}
	size := f.size(name)
	if err := f.fs.Remove(name); err != nil {
		return err
	}
	f.give(size)
	return nil
}

// size returns the bytes of a file, none if it cannot be opened.
func (f *Fault) size(name string) int64 {
	file, err := f.fs.Open(name)
	if err != nil {
		return 0
	}
	defer file.Close() // only read
	n, err := file.Size()
	if err != nil {
		return 0
	}
	return n
}

// List implements FS.
func (f *Fault) List(dir string) ([]string, error) {
	if err := f.call(OpList, dir); err != nil {
		return nil, err
	}
	return f.fs.List(dir)
}

// MkdirAll implements FS.
func (f *Fault) MkdirAll(dir string) error {
	if err := f.call(OpMkdir, dir); err != nil {
		return err
	}
	return f.fs.MkdirAll(dir)
}

// SyncDir implements FS.
func (f *Fault) SyncDir(dir string) error {
	if err := f.call(OpSyncDir, dir); err != nil {
		return err
	}
	return f.fs.SyncDir(dir)
}

// Space implements FS. It is not among the calls that fail.
func (f *Fault) Space() (Space, error) {
	s, err := f.fs.Space()
	if err != nil {
		return Space{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.full:
		s.Free = 0
	case f.free >= 0:
		s.Free = min(s.Free, f.free)
	}
	return s, nil
}

// Lock implements FS.
func (f *Fault) Lock(name string) (io.Closer, error) {
	if err := f.call(OpLock, name); err != nil {
		return nil, err
	}
	return f.fs.Lock(name)
}
