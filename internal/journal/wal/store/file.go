// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/triagemq/triagemq/internal/vfs"
)

// namedFile is an open file whose errors bear the name that it has now. The files
// of a log are renamed while they are open, from spare to segment and back, and
// those below know only the name under which they opened them.
type namedFile struct {
	vfs.File
	name string
}

// Named returns file with that name in its errors.
func Named(file vfs.File, name string) vfs.File {
	if n, ok := file.(namedFile); ok {
		file = n.File
	}
	return namedFile{file, name}
}

func (f namedFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	return n, f.rename(err)
}

func (f namedFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	return n, f.rename(err)
}

func (f namedFile) Sync() error {
	err := f.File.Sync()
	if _, names := errors.AsType[*fs.PathError](err); err != nil && !names {
		return fmt.Errorf("sync %s: %w", f.name, err) // an fdatasync does not say of what
	}
	return f.rename(err)
}

func (f namedFile) Size() (int64, error) {
	n, err := f.File.Size()
	return n, f.rename(err)
}

func (f namedFile) Truncate(size int64) error { return f.rename(f.File.Truncate(size)) }

func (f namedFile) Allocate(size int64) error { return f.rename(f.File.Allocate(size)) }

func (f namedFile) Close() error { return f.rename(f.File.Close()) }

// rename puts the name into err, in the directory that it names. Others may hold
// err too, so it is not changed in place.
func (f namedFile) rename(err error) error {
	e, ok := errors.AsType[*fs.PathError](err)
	if !ok || err != error(e) {
		return err // none, one that names no file, or one that says more than a PathError
	}
	dir := e.Path[:strings.LastIndexAny(e.Path, `/\`)+1]
	return &fs.PathError{Op: e.Op, Path: dir + f.name, Err: e.Err}
}
