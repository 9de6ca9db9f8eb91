// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/triagemq/triagemq/internal/journal/wal/format"
	"github.com/triagemq/triagemq/internal/vfs"
)

// CopyNames are the files of the manifest, in the order in which they are written.
var CopyNames = [2]string{format.ManifestName, format.ManifestCopy}

// Copies are the two files that hold the manifest.
//
// Each manifest is written over the one before it, first to one file and, when
// that is synced, to the other. So whenever the power fails one of the two is
// whole, and once write has returned both hold the same: the loss of either, at
// any time, loses nothing. Written space is written over, so no write needs any
// that is free, unless the manifest has outgrown its files; and the files are
// enlarged in good time.
type Copies struct {
	fs    vfs.FS
	files [2]vfs.File
	Sizes [2]uint64 // of the files
	first int       // the one to begin with: if one is not whole, that one
}

// NewCopies returns copies of which no file is open.
func NewCopies(fsys vfs.FS) Copies { return Copies{fs: fsys} }

// FoundCopies is what there is of a manifest.
type FoundCopies struct {
	Manifests [2]*format.Manifest // nil is missing or damaged
	errs      [2]error            // why it is nil; each a *DamageError
}

// ReadCopies reads both files. The error is one of the disk, or says that the
// store was written by a later version.
func ReadCopies(fsys vfs.FS) (FoundCopies, error) {
	var found FoundCopies
	for i, name := range CopyNames {
		m, err := readManifest(fsys, name)
		if _, damaged := errors.AsType[*format.DamageError](err); err != nil && !damaged {
			return found, err
		}
		found.Manifests[i], found.errs[i] = m, err
	}
	return found, nil
}

func readManifest(fsys vfs.FS, name string) (*format.Manifest, error) {
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &format.DamageError{File: name, Offset: 0, Err: format.ErrMissing}
	}
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	defer file.Close() // only read
	size, err := file.Size()
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	b := make([]byte, min(size, format.ManifestLimit))
	if _, err := file.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return format.DecodeManifest(name, b)
}

// Best returns the manifest that counts, and which it is: the later of the two,
// since nothing is done that needs a manifest before it is whole in both. If both
// are missing it is nil; the error is that both are lost.
func (f FoundCopies) Best() (*format.Manifest, int, error) {
	one, two := f.Manifests[0], f.Manifests[1]
	switch {
	case one == nil && two == nil && errors.Is(f.errs[0], format.ErrMissing) && errors.Is(f.errs[1], format.ErrMissing):
		return nil, 0, nil
	case one == nil && two == nil && errors.Is(f.errs[0], format.ErrMissing):
		return nil, 0, f.errs[1]
	case one == nil && two == nil:
		return nil, 0, f.errs[0]
	case one == nil || two != nil && two.Generation > one.Generation:
		return two, 1, nil
	}
	return one, 0, nil
}

// Lost returns what is wrong with the file that is not needed, if anything.
// Version 1 had no second one.
func (f FoundCopies) Lost() error {
	for i, m := range f.Manifests {
		if m == nil && f.Manifests[1-i] != nil && f.Manifests[1-i].Version > 1 {
			return f.errs[i]
		}
	}
	return nil
}

// grownSize returns the size that a file for n bytes should have, so that the next
// ones fit too.
func grownSize(n uint64) uint64 { return (2*n + 16<<10 + 4095) &^ 4095 }

// Secure opens the file that best was read from and writes it once more, although
// it does not change: a process whose sync failed may have left it in the page
// cache only, see LogEnd.Secure. Until it is safe nothing may be done that relies
// on it, and the other file must not be touched.
func (c *Copies) Secure(m *format.Manifest, best int) error {
	b, err := m.Encode()
	if err == nil {
		err = c.openOne(best, b)
	}
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

// Open opens the other file, or both if m is of version 1, and makes it the
// manifest m.
func (c *Copies) Open(m *format.Manifest, best int) error {
	order := []int{1 - best}
	if m.Version == 1 {
		order = []int{1, 0} // the old one stays until the new one is there
		m.Generation = 1
	}
	b, err := m.Encode()
	if err != nil {
		return err
	}
	for _, i := range order {
		if err := c.openOne(i, b); err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	m.Version = format.ManifestVersion
	return nil
}

// openOne opens a file, or makes it, and writes b to it.
func (c *Copies) openOne(i int, b []byte) error {
	if c.files[i] == nil {
		file, err := c.fs.Open(CopyNames[i])
		if errors.Is(err, fs.ErrNotExist) {
			if err = Install(c.fs, CopyNames[i], b); err == nil {
				file, err = c.fs.Open(CopyNames[i])
			}
		}
		if err != nil {
			return err
		}
		size, err := file.Size()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		c.files[i], c.Sizes[i] = file, uint64(size)
	}
	n := uint64(len(b))
	for _, to := range []uint64{n, grownSize(n)} {
		if err := c.reserve(i, n, to); err != nil {
			return err
		}
	}
	return c.writeOne(i, b)
}

// Install makes b the contents of the named file, whatever that was before.
func Install(fsys vfs.FS, name string, b []byte) error {
	file, err := fsys.Create(format.ManifestNext)
	if errors.Is(err, fs.ErrExist) {
		file, err = fsys.Open(format.ManifestNext)
	}
	if err != nil {
		return err
	}
	_, err = file.WriteAt(b, 0)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = extend(file, grownSize(uint64(len(b))))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(format.ManifestNext, name); err != nil {
		return err
	}
	return fsys.SyncDir(".")
}

// extend gives a file of the manifest the size that it should have, if there is
// space. If not it is left as it was.
func extend(file vfs.File, to uint64) error {
	size, err := file.Size()
	if err != nil || uint64(size) >= to {
		return err
	}
	err = Zero(file, uint64(size), to)
	if errors.Is(err, vfs.ErrNoSpace) {
		return file.Truncate(size)
	}
	return err
}

// Write makes m the manifest; it is durable when write returns. ErrNoSpace means
// that one of the files, at least, is as it was: both, unless to overwrite takes
// space.
func (c *Copies) Write(m *format.Manifest) error {
	b, err := m.Encode()
	if err != nil {
		return err
	}
	n := uint64(len(b))
	for _, to := range []uint64{n, grownSize(n)} { // what is needed, for both, goes first
		for i := range c.files {
			if err := c.reserve(i, n, to); err != nil {
				return fmt.Errorf("write manifest: %w", err)
			}
		}
	}
	for _, i := range [2]int{c.first, 1 - c.first} {
		if err := c.writeOne(i, b); err != nil {
			c.first = i
			return fmt.Errorf("write manifest: %w", err)
		}
	}
	c.first = 0
	return nil
}

// reserve sees to it that n bytes can be written to a file, and gives it the size
// that it should have if there is space and half of it is in use.
func (c *Copies) reserve(i int, n, to uint64) error {
	if 2*n <= c.Sizes[i] {
		return nil
	}
	if err := extend(c.files[i], to); err != nil {
		return err
	}
	size, err := c.files[i].Size()
	if err != nil {
		return err
	}
	if c.Sizes[i] = uint64(size); n > c.Sizes[i] {
		return vfs.ErrNoSpace
	}
	return nil
}

func (c *Copies) writeOne(i int, b []byte) error {
	if _, err := c.files[i].WriteAt(b, 0); err != nil {
		return err
	}
	return c.files[i].Sync()
}

// Close closes both files.
func (c *Copies) Close() error {
	var errs []error
	for i, f := range c.files {
		if f != nil {
			errs = append(errs, f.Close())
			c.files[i] = nil
		}
	}
	return errors.Join(errs...)
}
