// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"io"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	pageSize   = 4096
	sectorSize = 512 // what a disk writes whole or not at all
)

type page [pageSize]byte

// pages is the contents of a file; a nil page is zeros.
type pages struct {
	table []*page
	size  int64
}

// inode is a file, independent of its names. Pages are shared between now,
// synced and clones, and copied before the first write after a sync: only the
// pages in dirty belong to now alone.
type inode struct {
	mu     sync.Mutex
	now    pages        // guarded by mu: what a program sees
	dirty  map[int]bool // guarded by mu: pages of now written since the sync
	synced pages        // guarded by mu: what survives for certain
	writes []write      // guarded by mu: all since the sync, oldest first
	// failed are writes whose sync failed, oldest first; guarded by mu. As in a
	// kernel, their pages are in now but no longer dirty, so a later sync does
	// not write them. Only a new write to the page does.
	failed []write

	quota   *quota // guarded by mu: where its space comes from; nil once it has no name
	charged int64  // guarded by mu: the space that it takes
}

// write is one unsynced change: bytes at an offset, or, with no bytes, a new
// size.
type write struct {
	off  int64
	data []byte
}

// set writes data at off; own says which pages may be changed in place.
func (p *pages) set(off int64, data []byte, own map[int]bool) {
	p.resize(max(p.size, off+int64(len(data))), own)
	for len(data) > 0 {
		i, at := int(off/pageSize), int(off%pageSize)
		n := min(len(data), pageSize-at)
		if p.table[i] != nil || !zeros(data[:n]) {
			copy(p.own(i, own)[at:], data[:n])
		}
		data, off = data[n:], off+int64(n)
	}
}

// own returns page i ready to be changed.
func (p *pages) own(i int, own map[int]bool) *page {
	if !own[i] || p.table[i] == nil {
		fresh := new(page)
		if p.table[i] != nil {
			*fresh = *p.table[i]
		}
		p.table[i], own[i] = fresh, true
	}
	return p.table[i]
}

func (p *pages) resize(size int64, own map[int]bool) {
	n := int((size + pageSize - 1) / pageSize)
	if size < p.size {
		clear(p.table[n:])
		p.table = p.table[:n]
		if at := size % pageSize; at != 0 && p.table[n-1] != nil {
			clear(p.own(n-1, own)[at:])
		}
	}
	for len(p.table) < n {
		p.table = append(p.table, nil)
	}
	p.size = size
}

func (p *pages) readAt(b []byte, off int64) int {
	total := 0
	for len(b) > 0 && off < p.size {
		at := int(off % pageSize)
		n := min(len(b), pageSize-at, int(p.size-off))
		if page := p.table[off/pageSize]; page != nil {
			copy(b[:n], page[at:])
		} else {
			clear(b[:n])
		}
		b, off, total = b[n:], off+int64(n), total+n
	}
	return total
}

func (p *pages) clone() pages { return pages{slices.Clone(p.table), p.size} }

func zeros(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), pageSize)
		if string(b[:n]) != string(zeroPage[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

var zeroPage page // never written

// memFile is an open file of a Mem.
type memFile struct {
	*inode
	name   string
	closed atomic.Bool
}

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.check("read", off); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.now.readAt(b, off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.check("write", off); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	if end := off + int64(len(b)); end > f.now.size {
		if got := f.charge(end); got < end {
			b = b[:max(0, got-off)] // what does not fit is left out, as disks do
			err = &fs.PathError{Op: "write", Path: f.name, Err: ErrNoSpace}
		}
	}
	if len(b) > 0 {
		f.now.set(off, b, f.dirty)
		f.writes = append(f.writes, write{off, slices.Clone(b)})
	}
	return len(b), err
}

// Allocate implements File. A crash may leave the file as short as it was.
func (f *memFile) Allocate(size int64) error {
	if err := f.check("allocate", size); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if size <= f.now.size {
		return nil
	}
	got := f.charge(size)
	if got > f.now.size {
		f.now.resize(got, f.dirty)
		f.writes = append(f.writes, write{off: got})
	}
	if got < size {
		return &fs.PathError{Op: "allocate", Path: f.name, Err: ErrNoSpace}
	}
	return nil
}

func (f *memFile) Truncate(size int64) error {
	if err := f.check("truncate", size); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.now.table)
	f.now.resize(size, f.dirty)
	for i := len(f.now.table); i < before; i++ {
		f.dirty[i] = true // if the file grows again the page is zeros, and the sync must write that
	}
	f.refund(size)
	f.writes = append(f.writes, write{off: size})
	return nil
}

func (f *memFile) Sync() error {
	if err := f.check("sync", 0); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = nil // a crash leaves nothing of them now, unless they were written again
	if len(f.writes) == 0 {
		return nil
	}
	own := make(map[int]bool)
	f.synced.resize(f.now.size, own)
	for i := range f.dirty {
		if i < len(f.now.table) {
			f.synced.table[i] = f.now.table[i]
		}
	}
	clear(f.dirty)
	f.writes = nil
	return nil
}

// failSync does to the file what a kernel does when a sync fails: every page
// counts as clean and can still be read, and none of them is known to be on disk.
func (f *memFile) failSync() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.dirty)
	f.failed, f.writes = append(f.failed, f.writes...), nil
}

func (f *memFile) Size() (int64, error) {
	if err := f.check("size", 0); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now.size, nil
}

func (f *memFile) Close() error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	return nil
}

func (f *memFile) check(op string, off int64) error {
	switch {
	case f.closed.Load():
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	case off < 0:
		return &fs.PathError{Op: op, Path: f.name, Err: fs.ErrInvalid}
	}
	return nil
}
