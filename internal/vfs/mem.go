// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
)

// Mem is a disk in memory that records what was synced, so that it can simulate
// a crash: see CrashClone.
type Mem struct {
	quota *quota

	mu     sync.Mutex
	names  map[string]*inode // guarded by mu: what a program sees
	dirs   map[string]bool   // guarded by mu
	locked map[string]bool   // guarded by mu

	// synced is names as a crash would find them with no entry of entries
	// applied; guarded by mu.
	synced map[string]*inode
	// entries are the creates, renames and removes not yet covered by a
	// SyncDir, oldest first; guarded by mu.
	entries []entry
}

// entry is one change to a directory. A create has no from, a remove no to.
type entry struct {
	from, to string
	file     *inode
}

func (e entry) dir() string { return path.Dir(max(e.from, e.to)) }

// NewMem returns an empty disk of unlimited size; SetSize limits it.
func NewMem() *Mem {
	return &Mem{
		quota:  &quota{size: endless},
		names:  make(map[string]*inode),
		synced: make(map[string]*inode),
		dirs:   map[string]bool{".": true},
		locked: make(map[string]bool),
	}
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check("create", name); err != nil {
		return nil, err
	}
	if m.names[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	f := &inode{dirty: make(map[int]bool), quota: m.quota}
	m.change(entry{to: name, file: f})
	return &memFile{inode: f, name: name}, nil
}

// Open implements FS.
func (m *Mem) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	return &memFile{inode: f, name: name}, nil
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.find("rename", oldName)
	if err != nil {
		return err
	}
	if err := m.check("rename", newName); err != nil {
		return err
	}
	if path.Dir(oldName) != path.Dir(newName) {
		return fmt.Errorf("vfs: rename %s to %s: another directory", oldName, newName)
	}
	m.change(entry{from: oldName, to: newName, file: f})
	return nil
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirs[name] && name != "." {
		return m.removeDir(name)
	}
	f, err := m.find("remove", name)
	if err != nil {
		return err
	}
	m.change(entry{from: name, file: f})
	return nil
}

// removeDir removes an empty directory; mu is held. That survives a crash at once, as
// its creation does.
func (m *Mem) removeDir(dir string) error {
	for name := range m.names {
		if path.Dir(name) == dir {
			return &fs.PathError{Op: "remove", Path: dir, Err: errNotEmpty}
		}
	}
	for name := range m.dirs {
		if name != dir && path.Dir(name) == dir {
			return &fs.PathError{Op: "remove", Path: dir, Err: errNotEmpty}
		}
	}
	delete(m.dirs, dir)
	m.entries = slices.DeleteFunc(m.entries, func(e entry) bool { return e.dir() == dir })
	maps.DeleteFunc(m.synced, func(name string, _ *inode) bool { return path.Dir(name) == dir })
	return nil
}

var errNotEmpty = errors.New("directory is not empty")

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[dir] {
		return nil, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrNotExist}
	}
	var names []string
	for name := range m.names {
		if path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	for name := range m.dirs {
		if name != "." && path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// MkdirAll implements FS. Directories survive crashes at once.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !fs.ValidPath(dir) {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrInvalid}
	}
	for ; dir != "."; dir = path.Dir(dir) {
		m.dirs[dir] = true
	}
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirs[dir] {
		return &fs.PathError{Op: "sync", Path: dir, Err: fs.ErrNotExist}
	}
	m.entries = slices.DeleteFunc(m.entries, func(e entry) bool {
		if e.dir() != dir {
			return false
		}
		e.apply(m.synced)
		return true
	})
	return nil
}

// Lock implements FS. The lock does not survive CrashClone: the process that
// had it was killed.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.check("lock", name); err != nil {
		return nil, err
	}
	if m.locked[name] {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	m.locked[name] = true
	return &memLock{m, name}, nil
}

type memLock struct {
	m    *Mem
	name string
}

func (l *memLock) Close() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if !l.m.locked[l.name] {
		return fs.ErrClosed
	}
	delete(l.m.locked, l.name)
	return nil
}

// change applies e to what the program sees; mu is held.
func (m *Mem) change(e entry) {
	if over := m.names[e.to]; over != nil && over != e.file {
		over.unlinked()
	}
	if e.to == "" {
		e.file.unlinked()
	}
	e.apply(m.names)
	m.entries = append(m.entries, e)
}

func (e entry) apply(names map[string]*inode) {
	if e.from != "" {
		delete(names, e.from)
	}
	if e.to != "" {
		names[e.to] = e.file
	}
}

func (m *Mem) find(op, name string) (*inode, error) {
	if err := m.check(op, name); err != nil {
		return nil, err
	}
	f := m.names[name]
	if f == nil {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

func (m *Mem) check(op, name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if !m.dirs[path.Dir(name)] {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return nil
}

// snapshot returns the fields that CrashClone works on.
func (m *Mem) snapshot() (names map[string]*inode, entries []entry, dirs map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.synced), slices.Clone(m.entries), maps.Clone(m.dirs)
}
