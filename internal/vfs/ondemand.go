// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"container/list"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Files bounds how many descriptors the files of stores take that are opened with [OnDemand].
// All its methods may be called from any goroutine.
//
//	file      ──► use ──► opened, if it is not ──► read, write, sync ──► at the newest end
//	Files          │                                                           │
//	               └── too many are open: the one unused longest is closed ◄───┘
type Files struct {
	most int // fixed

	mu    sync.Mutex
	freed sync.Cond  // of mu: a use has ended
	open  *list.List // guarded by mu: of *lazyFile that are open, unused longest first
	using int        // guarded by mu: uses that are under way
	n     int        // guarded by mu: files that are open, or are being opened
}

// leastFiles is how many files may be open at least.
const leastFiles = 8

// NewFiles returns a bound of so many open files.
func NewFiles(most int) *Files {
	p := &Files{most: max(most, leastFiles), open: list.New()}
	p.freed.L = &p.mu
	return p
}

// Most returns how many files may be open.
func (p *Files) Most() int { return p.most }

// Opened returns how many files are open.
func (p *Files) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// enter waits until there is place for one more open file, which it counts, and closes another
// for it. While all files are in use it waits for one to become free. A file that is written and
// not synced stays open, since with its descriptor the system may forget that it could not
// write. If there are only such files, there is one too many for a moment: they are synced
// without another file being opened.
func (p *Files) enter() error {
	for {
		p.mu.Lock()
		for p.n >= p.most {
			victim := p.victim()
			if victim != nil {
				p.mu.Unlock()
				err := victim.shut()
				victim.mu.Unlock()
				if err != nil {
					return err
				}
				p.mu.Lock()
				continue
			}
			if p.using == 0 {
				break
			}
			p.freed.Wait()
		}
		p.n++
		p.mu.Unlock()
		return nil
	}
}

// victim returns the file that was unused longest and can be closed, locked; nil if there is
// none. p.mu is held.
func (p *Files) victim() *lazyFile {
	for e := p.open.Front(); e != nil; e = e.Next() {
		f := e.Value.(*lazyFile)
		if !f.mu.TryLock() {
			continue // it is being used, opened or closed
		}
		if f.file != nil && f.users.Load() == 0 && f.writes.Load() == f.synced.Load() && !f.gone {
			return f
		}
		f.mu.Unlock()
	}
	return nil
}

// begun notes that a file is open and in use.
func (p *Files) begun(f *lazyFile) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.using++
	if f.place == nil {
		f.place = p.open.PushBack(f)
	} else {
		p.open.MoveToBack(f.place)
	}
}

// ended notes that a use is over.
func (p *Files) ended() {
	p.mu.Lock()
	p.using--
	p.mu.Unlock()
	p.freed.Broadcast()
}

// left notes that a file is closed; f is nil if it could not be opened.
func (p *Files) left(f *lazyFile) {
	p.mu.Lock()
	p.n--
	if f != nil && f.place != nil {
		p.open.Remove(f.place)
		f.place = nil
	}
	p.mu.Unlock()
	p.freed.Broadcast()
}

// onDemand is a file system whose files are opened when they are used.
type onDemand struct {
	FS
	files *Files

	mu    sync.Mutex
	named map[string]map[*lazyFile]bool // guarded by mu: files that are not closed, by name
}

// OnDemand returns fsys with files that are open for the system only while they are used, or as
// long as there are descriptors: a store may have more files than those. A lock of it is taken
// and given back, for it would take a descriptor for as long as it is held: its user must
// have locked a directory above, as the other users must.
func OnDemand(fsys FS, files *Files) FS {
	return &onDemand{FS: fsys, files: files, named: make(map[string]map[*lazyFile]bool)}
}

// Create implements [FS].
func (d *onDemand) Create(name string) (File, error) { return d.openNow(name, d.FS.Create) }

// Open implements [FS].
func (d *onDemand) Open(name string) (File, error) { return d.openNow(name, d.FS.Open) }

func (d *onDemand) openNow(name string, open func(string) (File, error)) (File, error) {
	f := &lazyFile{fs: d, name: name}
	f.mu.Lock()
	err := f.openWith(open)
	if err == nil {
		d.mu.Lock()
		d.know(f)
		d.mu.Unlock()
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f.end()
	return f, nil
}

// Rename implements [FS]. Files that are not closed keep their contents and have the new name.
func (d *onDemand) Rename(oldName, newName string) error {
	d.mu.Lock()
	moved := slices.Collect(maps.Keys(d.named[oldName]))
	replaced := slices.Collect(maps.Keys(d.named[newName]))
	d.mu.Unlock()
	lockAll(moved)
	defer unlockAll(moved)
	err := d.detach(replaced, func() error { return d.FS.Rename(oldName, newName) })
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range moved {
		d.forget(f)
		f.name = newName
		if !f.closed {
			d.know(f)
		}
	}
	return nil
}

// know notes the name of a file; mu is held.
func (d *onDemand) know(f *lazyFile) {
	if d.named[f.name] == nil {
		d.named[f.name] = make(map[*lazyFile]bool)
	}
	d.named[f.name][f] = true
}

// forget undoes know; mu is held.
func (d *onDemand) forget(f *lazyFile) {
	if files := d.named[f.name]; files[f] {
		if delete(files, f); len(files) == 0 {
			delete(d.named, f.name)
		}
	}
}

// Remove implements [FS].
func (d *onDemand) Remove(name string) error {
	d.mu.Lock()
	files := slices.Collect(maps.Keys(d.named[name]))
	d.mu.Unlock()
	return d.detach(files, func() error { return d.FS.Remove(name) })
}

// detach does what takes the name from files. Those that are open can be used until they are
// closed, as on any disk; the others cannot be opened again.
func (d *onDemand) detach(files []*lazyFile, do func() error) error {
	lockAll(files)
	defer unlockAll(files)
	if err := do(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range files {
		f.gone = true
		d.forget(f)
	}
	return nil
}

func lockAll(files []*lazyFile) {
	for _, f := range files {
		f.mu.Lock()
	}
}

func unlockAll(files []*lazyFile) {
	for _, f := range files {
		f.mu.Unlock()
	}
}

// Lock implements [FS]: it finds out that the lock is free.
func (d *onDemand) Lock(name string) (io.Closer, error) {
	lock, err := d.FS.Lock(name)
	if err != nil {
		return nil, err
	}
	return noLock{}, lock.Close()
}

// noLock is a lock that is not held.
type noLock struct{}

// Close implements [io.Closer].
func (noLock) Close() error { return nil }

// lazyFile is a file that is opened when it is used.
type lazyFile struct {
	fs    *onDemand
	place *list.Element // guarded by Files.mu; nil while it is not open

	mu     sync.Mutex // held while the file is opened, closed or renamed, and not while it is used
	name   string     // guarded by mu
	file   File       // guarded by mu; nil while it is not open
	gone   bool       // guarded by mu: nothing has its name any more, or something else has
	closed bool       // guarded by mu

	users  atomic.Int32  // rises with mu held
	writes atomic.Uint64 // that were begun, by users
	synced atomic.Uint64 // of those, how many are synced
}

var _ File = (*lazyFile)(nil)

// begin opens the file, if it is not, for a use that ends with end.
func (f *lazyFile) begin(op string) (File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, &fs.PathError{Op: op, Path: f.name, Err: fs.ErrClosed}
	case f.file != nil:
		f.users.Add(1)
		f.fs.files.begun(f)
		return f.file, nil
	case f.gone:
		return nil, &fs.PathError{Op: op, Path: f.name, Err: fs.ErrNotExist}
	}
	if err := f.openWith(f.fs.FS.Open); err != nil {
		return nil, err
	}
	return f.file, nil
}

// openWith opens the file, and counts one use of it; mu is held.
func (f *lazyFile) openWith(open func(string) (File, error)) error {
	p := f.fs.files
	if err := p.enter(); err != nil {
		return err
	}
	file, err := open(f.name)
	for errors.Is(err, ErrTooManyFiles) && p.spare() { // others have used up what was ours
		file, err = open(f.name)
	}
	if err != nil {
		p.left(nil)
		return err
	}
	f.file = file
	f.users.Add(1)
	p.begun(f)
	return nil
}

// spare closes a file for the sake of its descriptor, and reports whether there was one.
func (p *Files) spare() bool {
	p.mu.Lock()
	victim := p.victim()
	p.mu.Unlock()
	if victim == nil {
		return false
	}
	defer victim.mu.Unlock()
	return victim.shut() == nil
}

func (f *lazyFile) end() {
	f.users.Add(-1)
	f.fs.files.ended()
}

// shut closes the file for the system; mu is held.
func (f *lazyFile) shut() error {
	err := f.file.Close()
	f.file = nil
	f.fs.files.left(f)
	return err
}

// ReadAt implements [File].
func (f *lazyFile) ReadAt(b []byte, off int64) (int, error) {
	file, err := f.begin("read")
	if err != nil {
		return 0, err
	}
	defer f.end()
	return file.ReadAt(b, off)
}

// WriteAt implements [File].
func (f *lazyFile) WriteAt(b []byte, off int64) (n int, err error) {
	file, err := f.begin("write")
	if err != nil {
		return 0, err
	}
	defer f.end()
	f.writes.Add(1) // so that it is not closed before it is synced
	return file.WriteAt(b, off)
}

// Sync implements [File].
func (f *lazyFile) Sync() error {
	file, err := f.begin("sync")
	if err != nil {
		return err
	}
	defer f.end()
	writes := f.writes.Load()
	if err := file.Sync(); err != nil {
		return err
	}
	for was := f.synced.Load(); was < writes && !f.synced.CompareAndSwap(was, writes); was = f.synced.Load() {
	}
	return nil
}

// Size implements [File].
func (f *lazyFile) Size() (int64, error) {
	file, err := f.begin("size")
	if err != nil {
		return 0, err
	}
	defer f.end()
	return file.Size()
}

// Truncate implements [File].
func (f *lazyFile) Truncate(size int64) error {
	file, err := f.begin("truncate")
	if err != nil {
		return err
	}
	defer f.end()
	return file.Truncate(size)
}

// Allocate implements [File]. What is allocated is not written: nothing of it can be lost.
func (f *lazyFile) Allocate(size int64) error {
	file, err := f.begin("allocate")
	if err != nil {
		return err
	}
	defer f.end()
	return file.Allocate(size)
}

// Close implements [File].
func (f *lazyFile) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	f.fs.mu.Lock()
	f.fs.forget(f)
	f.fs.mu.Unlock()
	if f.file == nil {
		return nil
	}
	return f.shut()
}
