// SPDX-License-Identifier: Apache-2.0

package vfs

import (
	"errors"
	"io"
)

// File is one open file. All methods may be called from any goroutine.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync returns when everything written so far survives a power cut. After an
	// error it is unknown what did; the file must not be written again.
	Sync() error
	Size() (int64, error)
	Truncate(size int64) error
	// Allocate allocates blocks for the first size bytes of the file and makes it
	// at least that long; unwritten bytes read as zeros. Writes within them need no
	// further space. It costs less than writing, but the first write to each block
	// and its sync cost more. ErrNoSpace leaves the file shorter.
	Allocate(size int64) error
	Close() error
}

// FS is a directory tree. Names are slash-separated, relative to its root, and
// cannot leave it; "." is the root itself.
type FS interface {
	// Create makes a new file and opens it; a name that exists is fs.ErrExist.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// Rename replaces what newName was, atomically.
	Rename(oldName, newName string) error
	// Remove removes a file, or a directory in which there is nothing.
	Remove(name string) error
	// List returns the names in a directory, sorted, without the directory.
	List(dir string) ([]string, error)
	MkdirAll(dir string) error
	// SyncDir makes the creates, renames and removes in dir survive a power
	// cut; the contents of its files are the files' own business.
	SyncDir(dir string) error
	// Lock takes the lock file of that name, creating it if needed, until the
	// closer is closed or the process ends. If another process has the lock, it
	// returns ErrLocked.
	Lock(name string) (io.Closer, error)
	// Space returns how large the disk is and how much of it is free. It is what
	// the system says: others use the disk, too, and quotas may not show.
	Space() (Space, error)
}

// Space is the size and the free space of a disk, in bytes.
type Space struct {
	Total int64
	Free  int64 // that this process may use
}

// Errors of a file system, beside those of package io/fs.
var (
	// ErrLocked means that another process has the lock.
	ErrLocked = errors.New("vfs: locked by another process")
	// ErrNoSpace means that the disk, or our share of it, is full.
	ErrNoSpace = errors.New("vfs: no space left")
	// ErrTooManyFiles means that the process or the system has no file
	// descriptor left. Nothing was done; it may be tried again.
	ErrTooManyFiles = errors.New("vfs: too many open files")
)
